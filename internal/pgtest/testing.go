package pgtest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Start starts a cluster for a test, which stops and removes it at its end. A failed test shows the end of the server log.
func Start(t testing.TB, cfg Config) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	c, err := New(ctx, cfg)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of server log:\n%s", tail(c.Logs(), 60))
		}
		if err := c.Destroy(); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	if err := c.Start(ctx); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return c
}

// StartWithExtension is Start and CREATE EXTENSION in Database.
func StartWithExtension(t testing.TB, cfg Config) *Cluster {
	t.Helper()
	c := Start(t, cfg)
	if err := c.CreateExtension(context.Background()); err != nil {
		t.Fatalf("pgtest: create extension: %v", err)
	}
	return c
}

// Connect is Conn for a test, which closes the connection at its end.
func (c *Cluster) Connect(t testing.TB, role, database string) *pgx.Conn {
	t.Helper()
	conn, err := c.Conn(context.Background(), role, database)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// Poll waits until ready returns true and fails the test if that takes longer than the limit.
func Poll(t testing.TB, limit time.Duration, what string, ready func() bool) {
	t.Helper()
	err := WaitFor(context.Background(), limit, what, func() (bool, error) { return ready(), nil })
	if err != nil {
		t.Fatal(err)
	}
}

func tail(s string, lines int) string {
	all := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
