package main

import (
	"context"
	"time"
)

// measureLatency writes single rows at a low rate and watches when each becomes visible to a pull.
func measureLatency(ctx context.Context, b *bench) error {
	s, err := newStage(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.table(ctx, "item", true); err != nil {
		return err
	}
	writer, err := s.Conn(ctx, "postgres", "")
	if err != nil {
		return err
	}
	defer writer.Close(context.Background())
	var all series
	for i := range 200 {
		next := time.Now().Add(50 * time.Millisecond)
		if _, err := writer.Exec(ctx, "INSERT INTO bench.item VALUES ($1, 'u1', 0, 'a short body of a note')", i); err != nil {
			return err
		}
		start := time.Now()
		if err := s.visible(ctx, i); err != nil {
			return err
		}
		all = append(all, float64(time.Since(start).Microseconds())/1000)
		time.Sleep(time.Until(next))
	}
	b.figure("commit to pull-visible at 20/s, p50", "ms", series{all.quantile(0.5)}, 0, 10)
	b.figure("commit to pull-visible at 20/s, p95", "ms", series{all.quantile(0.95)}, 0, 0)
	b.figure("commit to pull-visible at 20/s, p99", "ms", series{all.quantile(0.99)}, 0, 0)
	pid, err := s.corePID(ctx)
	if err != nil {
		return err
	}
	b.figure("memory of the core, idle", "MiB", series{rss(pid, false)}, 0, 0)
	return nil
}

// visible spins until the row is in the projection: in the same commit it is in its scope.
func (s *stage) visible(ctx context.Context, id int) error {
	for {
		var there bool
		if err := s.conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM synchro_data.r_1 WHERE c1 = $1)", id).Scan(&there); err != nil {
			return err
		}
		if there {
			return nil
		}
	}
}

// measureBaseline registers a table that has rows.
func measureBaseline(ctx context.Context, b *bench) error {
	const rows = 200_000
	var registered, active series
	for range b.runs {
		s, err := newStage(ctx)
		if err != nil {
			return err
		}
		err = func() error {
			defer s.close()
			if err := s.table(ctx, "first", true); err != nil { // the slot exists
				return err
			}
			if err := s.table(ctx, "item", false); err != nil {
				return err
			}
			if err := s.fill(ctx, "item", 1, rows, 100); err != nil {
				return err
			}
			start := time.Now()
			if err := s.register(ctx, "item"); err != nil {
				return err
			}
			registered = append(registered, rows/time.Since(start).Seconds())
			if err := s.activated(ctx); err != nil {
				return err
			}
			active = append(active, rows/time.Since(start).Seconds())
			return nil
		}()
		if err != nil {
			return err
		}
	}
	b.figure("baseline: registering transaction", "rows/s", registered, 0, 0)
	b.figure("baseline: until active", "rows/s", active, 0, 0)
	return nil
}

// measureMillion sends one transaction of a million rows through a running worker.
func measureMillion(ctx context.Context, b *bench) error {
	const rows = 1_000_000
	s, err := newStage(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.table(ctx, "item", true); err != nil {
		return err
	}
	start := time.Now()
	if err := s.fill(ctx, "item", 1, rows, 100); err != nil {
		return err
	}
	wrote := time.Since(start)
	if err := s.materialized(ctx); err != nil {
		return err
	}
	b.figure("1 000 000-row transaction: write", "s", series{wrote.Seconds()}, 0, 0)
	b.figure("1 000 000-row transaction: write to materialized", "s", series{time.Since(start).Seconds()}, 0, 0)
	pid, err := s.corePID(ctx)
	if err != nil {
		return err
	}
	b.figure("1 000 000-row transaction: peak memory of the core", "MiB", series{rss(pid, true)}, 0, 256)
	return nil
}
