package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"synchro/client"
	"synchro/internal/pgtest"
)

const secret = "a secret of the bench, long enough for HS256"

// session makes a fresh client of the shim.
func newSession(serve *pgtest.Serve, user, id string) *client.Session {
	token := func(context.Context) (string, error) {
		claims := jwt.MapClaims{"sub": user, "exp": time.Now().Add(time.Hour).Unix()}
		return jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(secret))
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 16, DisableCompression: true}
	return client.NewSession(&client.Client{URL: serve.URL, Token: token, HTTP: &http.Client{Transport: transport},
		Retry: client.Retry{Attempts: 20, Base: 50 * time.Millisecond, Max: time.Second}}, id, "bench", "1.0.0")
}

// measureRebuild copies one scope of 100 000 rows over HTTP with every digest verified, against COPY of the same rows.
func measureRebuild(ctx context.Context, b *bench) error {
	const rows = 100_000
	s, serve, err := servedStage(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	defer serve.Stop()
	if err := s.fill(ctx, "item", 0, rows, 1); err != nil {
		return err
	}
	if err := s.materialized(ctx); err != nil {
		return err
	}
	var rebuild, megabytes, copied series
	for i := range b.runs {
		// A write in between makes each run stage anew.
		if err := s.exec(ctx, "UPDATE bench.item SET n = n + 1 WHERE id = $1", i); err != nil {
			return err
		}
		if err := s.materialized(ctx); err != nil {
			return err
		}
		session := newSession(serve, "u0", fmt.Sprintf("rebuild-%d", i))
		if err := session.Connect(ctx, false); err != nil {
			return err
		}
		t, err := timed(func() error { return session.Rebuild(ctx, "user:u0") })
		if err != nil {
			return err
		}
		stats, _ := session.Stats("user:u0")
		rebuild, megabytes = append(rebuild, rows/t), append(megabytes, float64(stats.Bytes)/1e6/t)
		if t, err = timed(func() error {
			_, err := s.conn.PgConn().CopyTo(ctx, io.Discard, "COPY (SELECT id, owner, n, body FROM bench.item ORDER BY id) TO STDOUT")
			return err
		}); err != nil {
			return err
		}
		copied = append(copied, rows/t)
	}
	b.against("rebuild of 100 000 rows of 200 octets over HTTP, against COPY", "rows/s", rebuild, copied, 0, 0)
	b.figure("rebuild of 100 000 rows of 200 octets over HTTP, rate", "rows/s", rebuild, 50_000, 0)
	b.figure("rebuild over HTTP, throughput", "MB/s", megabytes, 0, 0)
	b.figure("memory of the shim after rebuilds", "MiB", series{rss(serve.PID(), false)}, 0, 0)
	return nil
}

func servedStage(ctx context.Context) (*stage, *pgtest.Serve, error) {
	s, err := newStage(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := s.table(ctx, "item", true); err != nil {
		s.close()
		return nil, nil, err
	}
	serve, err := s.Serve(ctx, pgtest.ServeConfig{JWTSecret: secret})
	if err != nil {
		s.close()
		return nil, nil, err
	}
	return s, serve, nil
}

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
	var busy series
	for i := range 30 * b.runs {
		if err := s.exec(ctx, "UPDATE bench.item SET n = n + 1 WHERE id BETWEEN $1 AND $1 + 99", i%90*100); err != nil {
			return err
		}
		if err := s.materialized(ctx); err != nil {
			return err
		}
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
	}
	b.figure("pull of 100 changed rows over 10 scopes, verified, p50", "ms", series{busy.median()}, 0, 0)
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
	var perSecond, perCore series
	for range b.runs {
		var count atomic.Int64
		var failure atomic.Value
		before := s.serverCPU(serve)
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
		perCore = append(perCore, float64(count.Load())/(s.serverCPU(serve)-before))
	}
	b.figure("idle pulls of 10 scopes", "/s", perSecond, 0, 0)
	b.figure("idle pulls of 10 scopes, by processor time of shim and server", "/core s", perCore, 0, 0)
	b.figure("memory of the shim", "MiB", series{rss(serve.PID(), false)}, 0, 0)
	return nil
}

// serverCPU is the processor time in seconds that the shim and all processes of the server have used so far.
func (s *stage) serverCPU(serve *pgtest.Serve) float64 {
	total := cpu(serve.PID()) + cpu(s.PID())
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && statField(pid, 3) == strconv.Itoa(s.PID()) {
			total += cpu(pid)
		}
	}
	return total
}

// cpu is user and system time in seconds of one process, with its ended children.
func cpu(pid int) float64 {
	var ticks float64
	for _, i := range []int{13, 14, 15, 16} {
		n, _ := strconv.ParseFloat(statField(pid, i), 64)
		ticks += n
	}
	return ticks / 100 // USER_HZ
}

// statField is one field of /proc/<pid>/stat, counted from zero.
func statField(pid, i int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if i-2 < 0 || i-2 >= len(fields) {
		return ""
	}
	return fields[i-2]
}
