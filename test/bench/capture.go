package main

import (
	"context"
	"errors"
	"fmt"
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

// measureBaseline registers a table that has rows, in a few scopes and in many.
func measureBaseline(ctx context.Context, b *bench) error {
	const rows = 200_000
	for _, scopes := range []int{100, 5000} {
		var registered, active, used series
		for range b.runs {
			t, err := baselineRun(ctx, rows, scopes)
			if err != nil {
				return err
			}
			registered, active, used = append(registered, rows/t.registered), append(active, rows/t.active), append(used, t.used*1e6/rows)
		}
		name := fmt.Sprintf("baseline in %d scopes: ", scopes)
		b.figure(name+"registering transaction", "rows/s", registered, 0, 0)
		b.figure(name+"until active", "rows/s", active, 0, 0)
		b.figure(name+"apply backend", "µs/row", used, 0, 0)
	}
	return nil
}

// baselineTimes are seconds; used is processor time of the apply backend.
type baselineTimes struct{ registered, active, used float64 }

func baselineRun(ctx context.Context, rows, scopes int) (t baselineTimes, err error) {
	s, err := newStage(ctx)
	if err != nil {
		return t, err
	}
	defer s.close()
	if err := s.table(ctx, "first", true); err != nil { // the slot exists
		return t, err
	}
	if err := s.table(ctx, "item", false); err != nil {
		return t, err
	}
	if err := s.fill(ctx, "item", 1, rows, scopes); err != nil {
		return t, err
	}
	before, err := s.capture(ctx)
	if err != nil {
		return t, err
	}
	used := cpu(before.apply)
	start := time.Now()
	if err := s.register(ctx, "item"); err != nil {
		return t, err
	}
	t.registered = time.Since(start).Seconds()
	if err := s.activated(ctx); err != nil {
		return t, err
	}
	t.active = time.Since(start).Seconds()
	after, err := s.capture(ctx)
	if err == nil && after.apply != before.apply {
		err = errors.New("the worker did not keep its connection")
	}
	t.used = cpu(after.apply) - used
	return t, err
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
