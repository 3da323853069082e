// Package devstack is the development stack of "make up": a private cluster with worker and shim under .run, on ports that
// stay the same from one start to the next, described by .run/env.
package devstack

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"synchro/internal/pgtest"
)

// state is what one start tells the next: .run/state.json.
type state struct {
	ClusterDir     string
	Port           int
	Listen         string
	OperatorListen string
	JWTSecret      string
	Built          string // what the running server was started from
	SQLBuilt       string // the script that the extension was created with
	ShimPID        int
	ShimBuilt      string
}

// Stack is the development stack of one checkout.
type Stack struct {
	dir  string
	repo string
	st   state
}

// Open reads the stack of a directory, running or not; empty: .run of this checkout.
func Open(dir string) (*Stack, error) {
	repo, err := pgtest.RepoDir()
	if err != nil {
		return nil, err
	}
	if dir == "" {
		dir = filepath.Join(repo, ".run")
	}
	s := &Stack{dir: dir, repo: repo}
	b, err := os.ReadFile(s.path("state.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &s.st); err != nil {
		return nil, fmt.Errorf("%s: %w", s.path("state.json"), err)
	}
	return s, nil
}

func (s *Stack) path(name string) string { return filepath.Join(s.dir, name) }

// readyLimit bounds the wait for worker and shim after a start.
const readyLimit = 60 * time.Second

// Up starts what is not running, and restarts what was built anew since, and returns when everything is ready.
func (s *Stack) Up(ctx context.Context) error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	cluster, err := s.startCluster(ctx)
	if err != nil {
		return err
	}
	if err := s.createExtension(ctx, cluster); err != nil {
		return err
	}
	if err := s.startShim(ctx, cluster); err != nil {
		return err
	}
	if err := s.writeEnv(); err != nil {
		return err
	}
	err = pgtest.WaitFor(ctx, readyLimit, "ready stack", func() (bool, error) { return s.ready(ctx), nil })
	if err != nil {
		return fmt.Errorf("%w: %s; logs: %s and %s", err, cluster.Health(ctx), cluster.LogPath(), s.path("serve.log"))
	}
	return nil
}

// startCluster starts the server, anew if the extension was built since.
func (s *Stack) startCluster(ctx context.Context) (*pgtest.Cluster, error) {
	built, err := s.builtExtension()
	if err != nil {
		return nil, err
	}
	if s.st.ClusterDir == "" {
		if s.st.ClusterDir, err = pgtest.PlaceDir(s.path("cluster")); err != nil {
			return nil, err
		}
		if s.st.JWTSecret, err = secret(); err != nil {
			return nil, err
		}
	}
	cluster, err := s.cluster(ctx)
	if err != nil {
		return nil, err
	}
	if cluster.Running() && s.st.Built != built {
		if err := cluster.Stop(pgtest.Fast); err != nil {
			return nil, err
		}
	}
	if err := cluster.Start(ctx); err != nil {
		return nil, err
	}
	s.st.Port, s.st.Built = cluster.Port(), built
	return cluster, s.save()
}

// createExtension creates the extension once. Within one version there is no way from one script to another.
func (s *Stack) createExtension(ctx context.Context, cluster *pgtest.Cluster) error {
	script, err := filepath.Glob(filepath.Join(s.repo, ".build/sql/synchro--*.sql"))
	if err != nil {
		return err
	}
	built, err := fingerprint(script...)
	if err != nil {
		return err
	}
	if s.st.SQLBuilt != "" && s.st.SQLBuilt != built {
		return errors.New("the extension's SQL changed since this stack was made: make down, then make up")
	}
	if err := cluster.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS synchro"); err != nil {
		return fmt.Errorf("create extension: %w", err)
	}
	s.st.SQLBuilt = built
	return s.save()
}

func (s *Stack) cluster(ctx context.Context) (*pgtest.Cluster, error) {
	return pgtest.New(ctx, pgtest.Config{Dir: s.st.ClusterDir, Port: s.st.Port, Detach: true, Fsync: true})
}

// Down stops everything and removes it.
func (s *Stack) Down(ctx context.Context) error {
	if err := s.stopShim(); err != nil {
		return err
	}
	if s.st.ClusterDir != "" {
		cluster, err := s.cluster(ctx)
		if err != nil {
			return err
		}
		if err := cluster.Stop(pgtest.Fast); err != nil {
			return err
		}
		if err := os.RemoveAll(s.st.ClusterDir); err != nil {
			return err
		}
	}
	return os.RemoveAll(s.dir)
}

// writeEnv writes .run/env, the contract with every tool: plain KEY='value' lines that a shell can source.
func (s *Stack) writeEnv() error {
	var b strings.Builder
	for _, kv := range [][2]string{
		{"SYNCHRO_URL", "http://" + s.st.Listen},
		{"SYNCHRO_OPERATOR_URL", "http://" + s.st.OperatorListen},
		{"SYNCHRO_JWT_SECRET", s.st.JWTSecret},
		{"PGHOST", "127.0.0.1"},
		{"PGPORT", fmt.Sprint(s.st.Port)},
		{"PGUSER", pgtest.Superuser},
		{"PGDATABASE", pgtest.Database},
	} {
		fmt.Fprintf(&b, "%s='%s'\n", kv[0], kv[1])
	}
	return s.write("env", []byte(b.String()))
}

// URL is where clients reach the shim.
func (s *Stack) URL() string { return "http://" + s.st.Listen }

func (s *Stack) save() error {
	b, err := json.MarshalIndent(s.st, "", "  ")
	if err != nil {
		return err
	}
	return s.write("state.json", append(b, '\n'))
}

// write replaces a file in one step, so that a reader never sees half of it.
func (s *Stack) write(name string, content []byte) error {
	tmp := s.path(name + ".new")
	if err := os.WriteFile(tmp, content, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, s.path(name))
}

func secret() (string, error) {
	b := make([]byte, 32)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	return hex.EncodeToString(b), nil
}
