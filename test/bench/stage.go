package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"synchro/internal/pgtest"
)

// stage is a cluster with the extension and the table bench.item, registered or not.
type stage struct {
	*pgtest.Cluster
	conn *pgx.Conn
}

const itemTable = `
CREATE SCHEMA IF NOT EXISTS bench;
CREATE TABLE bench.%[1]s (id bigint PRIMARY KEY, owner text NOT NULL, n int NOT NULL DEFAULT 0, body text NOT NULL);
GRANT USAGE ON SCHEMA bench TO synchro_owner, synchro_worker;
GRANT SELECT ON bench.%[1]s TO synchro_owner, synchro_worker;`

const itemRegistration = `
SELECT synchro.synchro_prepare_projection_view('bench.%[1]s', 'bench_%[1]s', '{id,owner}');
CREATE FUNCTION bench.%[1]s_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'user:' || i.owner FROM synchro_projection.bench_%[1]s i WHERE i.id = p_row_key; END;
REVOKE EXECUTE ON FUNCTION bench.%[1]s_scopes(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION bench.%[1]s_scopes(bigint) TO synchro_worker;
SELECT synchro.synchro_register_table('bench.%[1]s', 'bench.%[1]s_scopes', p_push_policy => 'read_only');`

// newStage starts a cluster of its own with production-like settings.
func newStage(ctx context.Context) (*stage, error) {
	cluster, err := pgtest.New(ctx, pgtest.Config{Fsync: true, Settings: []string{
		"shared_buffers = '512MB'", "max_wal_size = '8GB'", "checkpoint_timeout = '30min'", "work_mem = '32MB'",
		"autovacuum_naptime = '10s'", "synchro.verify_digests = off",
	}})
	if err != nil {
		return nil, err
	}
	s := &stage{Cluster: cluster}
	if err := s.open(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stage) open(ctx context.Context) error {
	if err := s.Start(ctx); err != nil {
		return err
	}
	if err := s.CreateExtension(ctx); err != nil {
		return err
	}
	return s.connect(ctx)
}

func (s *stage) connect(ctx context.Context) (err error) {
	s.conn, err = s.Conn(ctx, "postgres", pgtest.Database)
	return err
}

func (s *stage) close() {
	if s.conn != nil {
		s.conn.Close(context.Background())
	}
	if err := s.Destroy(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

func (s *stage) exec(ctx context.Context, sql string, args ...any) error {
	_, err := s.conn.Exec(ctx, sql, args...)
	return err
}

// table makes bench.<name>, registers it if asked, and waits until the registration is active.
func (s *stage) table(ctx context.Context, name string, registered bool) error {
	if err := s.exec(ctx, fmt.Sprintf(itemTable, name)); err != nil {
		return err
	}
	if !registered {
		return nil
	}
	if err := s.register(ctx, name); err != nil {
		return err
	}
	return s.activated(ctx)
}

func (s *stage) register(ctx context.Context, name string) error {
	return s.exec(ctx, "BEGIN;"+fmt.Sprintf(itemRegistration, name)+"COMMIT")
}

// activated waits until the worker has activated every registration.
func (s *stage) activated(ctx context.Context) error {
	return pgtest.WaitFor(ctx, 5*time.Minute, "activation", func() (bool, error) {
		var done bool
		err := s.conn.QueryRow(ctx, `SELECT slot_name IS NOT NULL AND registry_generation = (SELECT max(generation) FROM synchro.registry_generation)
			FROM synchro.progress`).Scan(&done)
		return done, err
	})
}

// mark puts a marker into the WAL: once progress has seen it, everything committed so far is materialized.
func (s *stage) mark(ctx context.Context) (pglogrepl.LSN, error) {
	var text string
	if err := s.conn.QueryRow(ctx, "SELECT synchro._emit_marker()::text").Scan(&text); err != nil {
		return 0, err
	}
	return pglogrepl.ParseLSN(text)
}

// materialized waits until everything that was committed so far is materialized.
func (s *stage) materialized(ctx context.Context) error {
	target, err := s.mark(ctx)
	if err != nil {
		return err
	}
	return s.reached(ctx, target)
}

// stuck is how long progress may take to reach a marker before the bench gives up.
const stuck = 10 * time.Minute

// reached polls progress closely until it has passed the marker.
func (s *stage) reached(ctx context.Context, target pglogrepl.LSN) error {
	for start := time.Now(); ; {
		var done bool
		if err := s.conn.QueryRow(ctx, "SELECT seen_lsn >= $1::text::pg_lsn FROM synchro.progress", target.String()).Scan(&done); err != nil {
			return err
		}
		if done {
			return nil
		}
		if time.Since(start) > stuck {
			return fmt.Errorf("the worker does not come to the end: %s", s.Health(ctx))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// fill inserts rows of about 200 octets, spread over owners.
func (s *stage) fill(ctx context.Context, table string, from, rows, owners int) error {
	return s.exec(ctx, fmt.Sprintf(`INSERT INTO bench.%s SELECT i, 'u' || i %% $3, 0, repeat(md5(i::text), 5)
		FROM generate_series($1::bigint, $1::bigint + $2::bigint - 1) i`, table), from, rows, owners)
}

// corePID is the process that the Go core runs in.
func (s *stage) corePID(ctx context.Context) (int, error) {
	var pid int
	err := s.conn.QueryRow(ctx, "SELECT coalesce(core_pid, pid) FROM synchro._worker_status() WHERE pid IS NOT NULL").Scan(&pid)
	return pid, err
}

// capture are the processes that materialize.
type capture struct{ apply, walsender, core int }

func (s *stage) capture(ctx context.Context) (c capture, err error) {
	err = s.conn.QueryRow(ctx, `SELECT a.pid, w.pid FROM pg_stat_activity a, pg_stat_activity w
		WHERE a.application_name = 'synchro apply' AND w.application_name = 'synchro stream'`).Scan(&c.apply, &c.walsender)
	if err != nil {
		return c, fmt.Errorf("the worker's connections: %w", err)
	}
	c.core, err = s.corePID(ctx)
	return c, err
}

// timed is the duration of f in seconds.
func timed(f func() error) (float64, error) {
	start := time.Now()
	err := f()
	return time.Since(start).Seconds(), err
}
