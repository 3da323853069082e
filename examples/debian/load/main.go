// Command load loads and registers the example in the database that the PG* variables name, the development stack's for
// example; they must be a superuser's.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/jackc/pgx/v5"

	"synchro/examples/debian"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := load(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func load(ctx context.Context) error {
	packages, err := debian.ReadArchive(ctx)
	if err != nil {
		return err
	}
	team, err := debian.LargestTeam(packages)
	if err != nil {
		return err
	}
	sections, err := debian.TwoSections(packages)
	if err != nil {
		return err
	}
	super, err := pgx.Connect(ctx, "")
	if err != nil {
		return err
	}
	defer super.Close(ctx)
	if err := debian.CreateSchema(ctx, super); err != nil {
		return err
	}
	config := super.Config()
	config.User = debian.Role
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	dependencies, err := debian.Load(ctx, conn, packages)
	if err != nil {
		return err
	}
	if err := debian.Follow(ctx, conn, team, sections); err != nil {
		return err
	}
	if err := debian.Register(ctx, conn); err != nil {
		return err
	}
	fmt.Printf("%d packages, %d dependencies; %s follows %s and %s and syncs as user %s\n", len(packages), dependencies, team.Name, sections[0], sections[1], team.Address)
	return nil
}
