// Command demo is "make demo": it loads the package archive that the local apt knows into a private cluster, syncs it as a
// packaging team, and shows changes travel both ways, with every digest verified. It prints names of teams and sections only.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"synchro/examples/debian"
)

// limit bounds each wait for the worker: generous, because other work on the machine may leave it little.
const limit = 10 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := demo(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// say prints one line of the story: what happened, and how long it took if that is given.
func say(step string, took time.Duration, format string, args ...any) {
	line := fmt.Sprintf("%-9s %s", step, fmt.Sprintf(format, args...))
	if took > 0 {
		line = fmt.Sprintf("%-88s %8s", line, round(took))
	}
	fmt.Println(line)
}

// round keeps three digits or so.
func round(d time.Duration) time.Duration {
	switch {
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	case d > 10*time.Millisecond:
		return d.Round(time.Millisecond)
	default:
		return d.Round(10 * time.Microsecond)
	}
}

func demo(ctx context.Context) error {
	start := time.Now()
	stack, err := startStack(ctx)
	if err != nil {
		return err
	}
	defer stack.stop()
	say("start", time.Since(start), "a private PostgreSQL %s with worker and shim", stack.cluster.Installation().Major())

	archive, err := loadArchive(ctx, stack)
	if err != nil {
		return err
	}
	defer archive.conn.Close(context.WithoutCancel(ctx))
	team, err := syncAs(ctx, stack, archive)
	if err != nil {
		return err
	}
	if err := showUpdates(ctx, archive, team); err != nil {
		return fmt.Errorf("updates: %w", err)
	}
	if err := showMove(ctx, archive, team); err != nil {
		return fmt.Errorf("move: %w", err)
	}
	if err := showTeam(ctx, archive, team); err != nil {
		return fmt.Errorf("team: %w", err)
	}
	if err := showNote(ctx, archive, team); err != nil {
		return fmt.Errorf("note: %w", err)
	}
	return team.verifyAfresh(ctx)
}

// archive is the loaded database, seen by the application.
type archive struct {
	conn     *pgx.Conn
	team     debian.Team
	sections []string
}

// loadArchive fills the application's tables and registers them.
func loadArchive(ctx context.Context, s *stack) (*archive, error) {
	begin := time.Now()
	packages, err := debian.ReadArchive(ctx)
	if err != nil {
		return nil, err
	}
	a := &archive{}
	if a.team, err = debian.LargestTeam(packages); err != nil {
		return nil, err
	}
	if a.sections, err = debian.TwoSections(packages); err != nil {
		return nil, err
	}
	super, err := s.cluster.Conn(ctx, "", "")
	if err != nil {
		return nil, err
	}
	defer super.Close(ctx)
	if err := debian.CreateSchema(ctx, super); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if a.conn, err = s.cluster.Conn(ctx, debian.Role, ""); err != nil {
		return nil, err
	}
	dependencies, err := debian.Load(ctx, a.conn, packages)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	if err := debian.Follow(ctx, a.conn, a.team, a.sections); err != nil {
		return nil, fmt.Errorf("follow: %w", err)
	}
	if err := debian.Share(ctx, a.conn, transition, a.team, []string{"rebuild", "file removal requests", "write the announcement"}); err != nil {
		return nil, fmt.Errorf("share: %w", err)
	}
	say("load", time.Since(begin), "%d packages of the local package archive and their %d dependencies", len(packages), dependencies)

	begin = time.Now()
	if err := debian.Register(ctx, a.conn); err != nil {
		return nil, fmt.Errorf("register: %w", err)
	}
	say("register", time.Since(begin), "package, dependency, note, task; who follows which section, and works in which team")

	begin = time.Now()
	if err := s.cluster.WaitReady(ctx, s.serve, limit); err != nil {
		return nil, err
	}
	say("activate", time.Since(begin), "the worker knows the scopes of every row")
	return a, nil
}
