package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"synchro/internal/pgtest"
)

// suite is one of PostgreSQL's own test runners and where its files are.
type suite struct {
	runner string // below the PGXS directory
	files  string // pattern, below test/regress
	suffix string
	output string
}

// regress runs pg_regress over test/regress/sql: without arguments every file, and "worker_*" files on a cluster whose
// worker runs; the others on one without, so that nothing but the test changes what it looks at.
func regress(ctx context.Context, names []string) error {
	return run(ctx, suite{"src/test/regress/pg_regress", "sql/*.sql", ".sql", "regress"}, names)
}

// isolation runs pg_isolation_regress over test/regress/specs.
func isolation(ctx context.Context, names []string) error {
	return run(ctx, suite{"src/test/isolation/pg_isolation_regress", "specs/*.spec", ".spec", "isolation"}, names)
}

func run(ctx context.Context, s suite, names []string) error {
	repo, err := pgtest.RepoDir()
	if err != nil {
		return err
	}
	input := filepath.Join(repo, "test/regress")
	if len(names) == 0 {
		files, err := filepath.Glob(filepath.Join(input, s.files))
		if err != nil {
			return err
		}
		for _, f := range files {
			names = append(names, strings.TrimSuffix(filepath.Base(f), s.suffix))
		}
	}
	if len(names) == 0 {
		return errors.New("no test files")
	}
	sort.Strings(names)
	accept := os.Getenv("ACCEPT") != ""
	for _, name := range names {
		expected := filepath.Join(input, "expected", name+".out")
		if _, err := os.Stat(expected); err == nil {
			continue
		}
		// The runners stop at the first missing file, without running the rest.
		if !accept {
			return fmt.Errorf("%s does not exist; ACCEPT=1 takes the present output for it", expected)
		}
		if err := os.WriteFile(expected, nil, 0o644); err != nil {
			return err
		}
	}
	var quiet, worker []string
	for _, name := range names {
		if strings.HasPrefix(name, "worker_") {
			worker = append(worker, name)
		} else {
			quiet = append(quiet, name)
		}
	}
	err = errors.Join(s.runOn(ctx, repo, quiet, pgtest.Config{NoWorker: true}), s.runOn(ctx, repo, worker, pgtest.Config{}))
	if !accept {
		return err
	}
	return s.accept(repo, names)
}

// accept makes the present output of tests the expected one; the author reads the difference in version control.
func (s suite) accept(repo string, names []string) error {
	for _, name := range names {
		out, err := os.ReadFile(filepath.Join(repo, ".build", s.output, "results", name+".out"))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(repo, "test/regress/expected", name+".out"), out, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// runOn runs tests one after the other on one cluster.
func (s suite) runOn(ctx context.Context, repo string, names []string, cfg pgtest.Config) error {
	if len(names) == 0 {
		return nil
	}
	c, err := pgtest.New(ctx, cfg)
	if err != nil {
		return err
	}
	defer c.Destroy()
	if err := c.Start(ctx); err != nil {
		return err
	}
	if err := c.CreateExtension(ctx); err != nil {
		return fmt.Errorf("create extension: %w", err)
	}

	inst := c.Installation()
	output := filepath.Join(repo, ".build", s.output)
	if err := os.MkdirAll(output, 0o755); err != nil {
		return err
	}
	args := []string{
		"--use-existing", "--bindir=" + inst.BinDir(), "--inputdir=" + filepath.Join(repo, "test/regress"), "--outputdir=" + output,
		"--host=" + c.Dir(), "--port=" + strconv.Itoa(c.Port()), "--user=" + pgtest.Superuser, "--dbname=" + pgtest.Database,
	}
	// In the foreground of our own process group: an interrupt ends the runner too, and then the cluster.
	cmd := exec.CommandContext(ctx, filepath.Join(inst.PGXSDir(), s.runner), append(args, names...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "PGTZ=UTC", "PGDATESTYLE=ISO, YMD")
	if err := cmd.Run(); err != nil {
		if diffs, rerr := os.ReadFile(filepath.Join(output, "regression.diffs")); rerr == nil {
			os.Stderr.Write(diffs)
		}
		return fmt.Errorf("%s: %w", s.output, err)
	}
	return nil
}
