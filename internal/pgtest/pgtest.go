// Package pgtest starts throwaway PostgreSQL clusters with the built extension. It is the only code of the project that
// starts a server: tests, the SQL test runners and the development stack all come here.
//
// A cluster listens on a free loopback port and on a unix socket in its own directory, trusts every local login, loads
// synchro at start and has wal_level = logical. As root, the server runs as user postgres. A server never outlives the
// process that started it, unless Config.Detach asks for that.
package pgtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Database is the database that every cluster has besides postgres; the worker serves it unless told otherwise.
const Database = "app"

// Superuser is the bootstrap role of every cluster.
const Superuser = "postgres"

// Config says how a cluster differs from the default one.
type Config struct {
	Dir      string   // cluster directory; empty: a new one under TMPDIR, removed by Destroy
	Port     int      // empty: a free one
	Detach   bool     // leave the server running when this process ends
	NoWorker bool     // synchro.database = ''
	Database string   // synchro.database; empty: Database
	Fsync    bool     // keep fsync on: for tests that crash the server
	HBA      []string // replaces the trusting pg_hba.conf
	Settings []string // further lines of configuration, "name = value"
}

// Cluster is one PostgreSQL data directory and, when started, its server.
type Cluster struct {
	cfg  Config
	inst *Installation
	dir  string
	port int
	tmp  bool
	proc *process
}

// New makes a cluster directory (or takes the existing one of cfg.Dir) without starting the server.
func New(ctx context.Context, cfg Config) (*Cluster, error) {
	inst, err := Find()
	if err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg, inst: inst, dir: cfg.Dir, port: cfg.Port}
	if c.dir == "" {
		if c.dir, err = os.MkdirTemp("", "pgtest-"); err != nil {
			return nil, err
		}
		c.tmp = true
	}
	if err := c.prepare(ctx); err != nil {
		if c.tmp {
			_ = os.RemoveAll(c.dir)
		}
		return nil, err
	}
	return c, nil
}

// prepare fills the directory with a copy of the template cluster, unless it holds one already.
func (c *Cluster) prepare(ctx context.Context) error {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	// The real path: it is compared with what the kernel says of a running server.
	dir, err := filepath.EvalSymlinks(c.dir)
	if err != nil {
		return err
	}
	if c.dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	// The socket is in here: everybody may pass.
	if err := os.Chmod(c.dir, 0o755); err != nil {
		return err
	}
	if err := chownToServer(c.dir); err != nil {
		return err
	}
	if c.port == 0 {
		port, err := FreePort()
		if err != nil {
			return err
		}
		c.port = port
	}
	if _, err := os.Stat(filepath.Join(c.DataDir(), "PG_VERSION")); err == nil {
		return nil
	}
	return c.inst.copyTemplate(ctx, c.DataDir())
}

// Dir is the cluster's directory; it also holds the unix socket.
func (c *Cluster) Dir() string { return c.dir }

// DataDir is the PostgreSQL data directory.
func (c *Cluster) DataDir() string { return filepath.Join(c.dir, "data") }

// Port is the TCP port on 127.0.0.1, and the number in the socket's name.
func (c *Cluster) Port() int { return c.port }

// Installation is the private PostgreSQL copy that the cluster runs.
func (c *Cluster) Installation() *Installation { return c.inst }

// Destroy stops the server and removes the directory if New made it.
func (c *Cluster) Destroy() error {
	err := c.Stop(Immediate)
	if c.tmp && os.Getenv("PGTEST_KEEP") == "" {
		if rerr := os.RemoveAll(c.dir); err == nil {
			err = rerr
		}
	}
	return err
}

// WaitFor polls ready until it returns true; it gives up with an error that names what after the time limit.
func WaitFor(ctx context.Context, limit time.Duration, what string, ready func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := ready()
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no %s within %s", what, limit)
		case <-tick.C:
		}
	}
}
