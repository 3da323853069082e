package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

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
		for run := range b.runs {
			w, d, err := backlogRun(ctx, func(s *stage) error { return load.make(ctx, s, run) })
			if err != nil {
				return err
			}
			worker, decoder = append(worker, float64(load.rows)/w), append(decoder, float64(load.rows)/d)
		}
		b.against(load.name, "rows/s", worker, decoder, load.want, 0)
	}
	return nil
}

func singleTransactions(ctx context.Context, s *stage, run int) error {
	return s.exec(ctx, fmt.Sprintf(`DO $$ BEGIN
		FOR i IN %[1]d..%[1]d + 99999 LOOP
			INSERT INTO bench.item VALUES (i, 'u' || i %% 100, 0, repeat(md5(i::text), 5)); COMMIT;
		END LOOP; END $$`, 1+run*200_000))
}

// backlogRun returns the seconds of the worker and of pg_recvlogical for one load.
func backlogRun(ctx context.Context, load func(*stage) error) (worker, decoder float64, err error) {
	s, err := newStage(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer s.close()
	if err := s.table(ctx, "item", true); err != nil {
		return 0, 0, err
	}
	if err := s.exec(ctx, "SELECT pg_create_logical_replication_slot('bench', 'pgoutput')"); err != nil {
		return 0, 0, err
	}
	if err := s.restart(ctx, "synchro.database = ''", "synchronous_commit = off"); err != nil {
		return 0, 0, err
	}
	if err := load(s); err != nil {
		return 0, 0, err
	}
	end, err := s.mark(ctx)
	if err != nil {
		return 0, 0, err
	}
	if decoder, err = timed(func() error { return s.recvlogical(ctx, "bench", end) }); err != nil {
		return 0, 0, err
	}
	if err := s.restart(ctx, "synchro.database = '"+pgtest.Database+"'"); err != nil {
		return 0, 0, err
	}
	err = pgtest.WaitFor(ctx, time.Minute, "the worker's stream", func() (bool, error) {
		var active bool
		err := s.conn.QueryRow(ctx, "SELECT active FROM pg_replication_slots WHERE slot_name <> 'bench'").Scan(&active)
		return active, err
	})
	if err != nil {
		return 0, 0, err
	}
	worker, err = timed(func() error { return s.reached(ctx, end) })
	return worker, decoder, err
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
