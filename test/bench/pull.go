package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"synchro/client"
	"synchro/internal/pgtest"
)

// measurePull times pulls that bring 100 changed rows, and pulls that bring nothing.
func measurePull(ctx context.Context, b *bench) error {
	s, serve, err := servedStage(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	defer serve.Stop()
	if err := s.fill(ctx, "item", 0, 10_000, 10); err != nil {
		return err
	}
	for i := 1; i < 10; i++ { // ten scopes: the own one and nine granted
		if err := s.exec(ctx, "SELECT synchro.synchro_grant_user_scope('u0', $1)", fmt.Sprintf("user:u%d", i)); err != nil {
			return err
		}
	}
	if err := s.materialized(ctx); err != nil {
		return err
	}
	session := newSession(serve, "u0", "pull")
	if err := session.Connect(ctx, false); err != nil {
		return err
	}
	if err := session.Sync(ctx); err != nil {
		return err
	}
	var busy, shim, server series
	for i := range 30 * b.runs {
		if err := s.exec(ctx, "UPDATE bench.item SET n = n + 1 WHERE id BETWEEN $1 AND $1 + 99", i%90*100); err != nil {
			return err
		}
		if err := s.materialized(ctx); err != nil {
			return err
		}
		shimBefore, serverBefore := cpu(serve.PID()), poolTime(ctx, s)
		t, err := timed(func() error {
			pulled, err := session.Pull(ctx, 0)
			if err == nil && pulled.Upserts != 100 {
				err = fmt.Errorf("pull brought %d rows instead of 100", pulled.Upserts)
			}
			return err
		})
		if err != nil {
			return err
		}
		busy = append(busy, t*1000)
		shim, server = append(shim, (cpu(serve.PID())-shimBefore)*1000), append(server, (poolTime(ctx, s)-serverBefore)*1000)
	}
	b.figure("pull of 100 changed rows over 10 scopes, verified, p50", "ms", series{busy.median()}, 0, 5)
	b.figure("pull of 100 changed rows over 10 scopes: processor time of the shim", "ms", series{shim.median()}, 0, 0)
	b.figure("pull of 100 changed rows over 10 scopes: processor time of the server", "ms", series{server.median()}, 0, 0)
	return idlePulls(ctx, b, s, serve)
}

// idlePulls keeps both processors busy with pulls that bring nothing and relates their number to the processor time that
// shim and backends used.
func idlePulls(ctx context.Context, b *bench, s *stage, serve *pgtest.Serve) error {
	var sessions []*client.Session
	for i := range 2 * runtime.NumCPU() {
		session := newSession(serve, "u0", fmt.Sprintf("idle-%d", i))
		if err := session.Connect(ctx, false); err != nil {
			return err
		}
		if err := session.Sync(ctx); err != nil {
			return err
		}
		sessions = append(sessions, session)
	}
	var perSecond, perCore, shim, server series
	for range b.runs {
		var count atomic.Int64
		var failure atomic.Value
		shimBefore, serverBefore := cpu(serve.PID()), treeTime(s.PID())
		stop := time.Now().Add(3 * time.Second)
		var wait sync.WaitGroup
		for _, session := range sessions {
			wait.Go(func() {
				for time.Now().Before(stop) {
					if _, err := session.Pull(ctx, 0); err != nil {
						failure.Store(err)
						return
					}
					count.Add(1)
				}
			})
		}
		wait.Wait()
		if err, failed := failure.Load().(error); failed {
			return err
		}
		perSecond = append(perSecond, float64(count.Load())/3)
		n, inShim, inServer := float64(count.Load()), cpu(serve.PID())-shimBefore, treeTime(s.PID())-serverBefore
		shim, server = append(shim, inShim*1e6/n), append(server, inServer*1e6/n)
		perCore = append(perCore, n/(inShim+inServer))
	}
	b.figure("idle pulls of 10 scopes", "/s", perSecond, 0, 0)
	b.figure("idle pulls of 10 scopes, by processor time of shim and server", "/core s", perCore, 1500, 0)
	b.figure("idle pull of 10 scopes: processor time of the shim", "µs", shim, 0, 0)
	b.figure("idle pull of 10 scopes: processor time of the server", "µs", server, 0, 0)
	b.figure("memory of the shim", "MiB", series{rss(serve.PID(), false)}, 0, 0)
	return nil
}

// poolTime is the processor time in seconds of the backends that serve the shim.
func poolTime(ctx context.Context, s *stage) (total float64) {
	rows, err := s.conn.Query(ctx, "SELECT pid FROM pg_stat_activity WHERE application_name = 'synchro serve'")
	if err != nil {
		return 0
	}
	defer rows.Close()
	for rows.Next() {
		var pid int
		if rows.Scan(&pid) == nil {
			total += cpu(pid)
		}
	}
	return total
}
