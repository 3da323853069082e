package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/jackc/pglogrepl"

	"synchro/internal/pgtest"
)

// measureBacklog lets changes pile up while no worker runs, and compares the time that the worker takes to materialize them
// with the time that pg_recvlogical takes to decode the same WAL to nowhere.
func measureBacklog(ctx context.Context, b *bench) error {
	for _, load := range []struct {
		name string
		rows int
		make func(ctx context.Context, s *stage, run int) error
		want float64
	}{
		{"backlog of 100 000 single-row transactions", 100_000, singleTransactions, 0.25},
		{"backlog of one 100 000-row transaction", 100_000, func(ctx context.Context, s *stage, run int) error {
			return s.fill(ctx, "item", 1+run*200_000, 100_000, 100)
		}, 0.3},
	} {
		var worker, decoder series
		parts := map[string]series{}
		for run := range b.runs {
			m, err := backlogRun(ctx, func(s *stage) error { return load.make(ctx, s, run) })
			if err != nil {
				return err
			}
			rows := float64(load.rows)
			worker, decoder = append(worker, rows/m.worker), append(decoder, rows/m.decoder)
			for name, seconds := range m.used {
				parts[name] = append(parts[name], seconds*1e6/rows)
			}
		}
		b.against(load.name, "rows/s", worker, decoder, load.want, 0)
		for _, name := range processes {
			b.figure(load.name+": "+name, "µs/row", parts[name], 0, 0)
		}
	}
	return nil
}

// processes that materialize, by the processor time that they take.
var processes = []string{"apply backend", "walsender", "core"}

func singleTransactions(ctx context.Context, s *stage, run int) error {
	return s.exec(ctx, fmt.Sprintf(`DO $$ BEGIN
		FOR i IN %[1]d..%[1]d + 99999 LOOP
			INSERT INTO bench.item VALUES (i, 'u' || i %% 100, 0, repeat(md5(i::text), 5)); COMMIT;
		END LOOP; END $$`, 1+run*200_000))
}

// catchUp is how long each took for the same WAL, in seconds, and the processor time of the worker's processes.
type catchUp struct {
	worker, decoder float64
	used            map[string]float64
}

func backlogRun(ctx context.Context, load func(*stage) error) (m catchUp, err error) {
	s, err := newStage(ctx)
	if err != nil {
		return m, err
	}
	defer s.close()
	if err := s.table(ctx, "item", true); err != nil {
		return m, err
	}
	if err := s.exec(ctx, "SELECT pg_create_logical_replication_slot('bench', 'pgoutput')"); err != nil {
		return m, err
	}
	if err := s.restart(ctx, "synchro.database = ''", "synchronous_commit = off"); err != nil {
		return m, err
	}
	if err := load(s); err != nil {
		return m, err
	}
	end, err := s.mark(ctx)
	if err != nil {
		return m, err
	}
	if m.decoder, err = timed(func() error { return s.recvlogical(ctx, "bench", end) }); err != nil {
		return m, err
	}
	if err := s.restart(ctx, "synchro.database = '"+pgtest.Database+"'"); err != nil {
		return m, err
	}
	if err := s.reached(ctx, end); err != nil {
		return m, err
	}
	// It streams since its connection began: pg_recvlogical's time has a connection in it, too.
	err = s.conn.QueryRow(ctx, `SELECT extract(epoch FROM clock_timestamp() - backend_start)::float8 FROM pg_stat_activity
		WHERE application_name = 'synchro stream'`).Scan(&m.worker)
	if err != nil {
		return m, fmt.Errorf("the worker's stream: %w", err)
	}
	c, err := s.capture(ctx)
	m.used = map[string]float64{"apply backend": cpu(c.apply), "walsender": cpu(c.walsender), "core": cpu(c.core)}
	return m, err
}

func (s *stage) restart(ctx context.Context, settings ...string) error {
	s.conn.Close(ctx)
	if err := s.Configure(settings...); err != nil {
		return err
	}
	if err := s.Restart(ctx, pgtest.Fast); err != nil {
		return err
	}
	return s.connect(ctx)
}

// recvlogical decodes the slot's WAL up to end and throws it away.
func (s *stage) recvlogical(ctx context.Context, slot string, end pglogrepl.LSN) error {
	cmd := exec.CommandContext(ctx, s.Installation().Bin("pg_recvlogical"), "-d", s.TCPDSN("postgres", ""), "--slot", slot, "--start",
		"--endpos", end.String(), "-f", "/dev/null", "--no-loop", "-o", "proto_version=1", "-o", "publication_names=synchro", "-o", "messages=true")
	cmd.Env = os.Environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pg_recvlogical: %w: %s", err, out)
	}
	return nil
}
