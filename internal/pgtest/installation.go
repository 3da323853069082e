package pgtest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrNotBuilt says that "make build" has not been run in this checkout.
var ErrNotBuilt = errors.New("no private PostgreSQL copy in .build/pgroot: run make build first")

// Installation is the private PostgreSQL copy that "make build" installed the extension into.
type Installation struct {
	root string // .build/pgroot/<major>
}

// Find locates the installation from the working directory upwards.
func Find() (*Installation, error) {
	repo, err := RepoDir()
	if err != nil {
		return nil, err
	}
	root, err := filepath.EvalSymlinks(filepath.Join(repo, ".build/pgroot/current"))
	if err != nil {
		return nil, ErrNotBuilt
	}
	return &Installation{root: root}, nil
}

// RepoDir is the top of the checkout: the nearest directory upwards with the control file of the extension.
func RepoDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "synchro.control")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("not inside a checkout of synchro")
		}
		dir = parent
	}
}

// Bin is the path of a PostgreSQL program, psql for example.
func (i *Installation) Bin(name string) string { return filepath.Join(i.root, "bin", name) }

// BinDir is the directory of the PostgreSQL programs.
func (i *Installation) BinDir() string { return filepath.Join(i.root, "bin") }

// PGXSDir is the directory of PGXS, which holds the SQL test runners.
func (i *Installation) PGXSDir() string { return filepath.Join(i.root, "pgxs") }

// PkgLibDir is the directory of the server's libraries, where ours are.
func (i *Installation) PkgLibDir() string { return filepath.Join(i.root, "pkglib") }

// Major is the PostgreSQL major version, "15" for example.
func (i *Installation) Major() string { return filepath.Base(i.root) }

// initdbArgs make every cluster alike, whatever the environment says.
var initdbArgs = []string{
	"--auth=trust", "--username=" + Superuser, "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions",
}

// copyTemplate copies the template cluster to dst. The template is made once per installation: initdb takes a second.
func (i *Installation) copyTemplate(ctx context.Context, dst string) error {
	sum := sha256.Sum256([]byte(strings.Join(initdbArgs, " ") + Database))
	template := filepath.Join(i.root, fmt.Sprintf("template-%x", sum[:4]))
	if err := i.makeTemplate(ctx, template); err != nil {
		return fmt.Errorf("template cluster: %w", err)
	}
	out, err := exec.CommandContext(ctx, "cp", "-a", "--reflink=auto", template, dst).CombinedOutput()
	if err != nil {
		return fmt.Errorf("copy template cluster: %w: %s", err, out)
	}
	return nil
}

func (i *Installation) makeTemplate(ctx context.Context, template string) error {
	// Test packages run as processes of their own, side by side.
	lock, err := os.OpenFile(template+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	if _, err := os.Stat(template); err == nil {
		return nil
	}

	tmp := template + ".new"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return err
	}
	if err := chownToServer(tmp); err != nil {
		return err
	}
	if err := i.runAsServer(ctx, "", "initdb", append(initdbArgs, "-D", tmp)...); err != nil {
		return err
	}
	create := fmt.Sprintf("CREATE DATABASE %s;\n", Database)
	if err := i.runAsServer(ctx, create, "postgres", "--single", "-F", "-D", tmp, "postgres"); err != nil {
		return err
	}
	return os.Rename(tmp, template)
}

// runAsServer runs a program of the installation as the user that servers run as.
func (i *Installation) runAsServer(ctx context.Context, stdin, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, i.Bin(name), args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = serverEnv()
	cmd.Dir = "/"
	cred, err := serverCredential()
	if err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}
