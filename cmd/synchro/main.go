// Command synchro is the one binary: the HTTP shim and the tools around it. Flags and wiring only.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"synchro"
)

// commands are the subcommands; every flag can be given by the environment variable that its help names, a flag wins.
type commands struct {
	Serve   serveCommand     `cmd:"" help:"Serve the sync protocol over HTTP."`
	Check   checkCommand     `cmd:"" help:"Sync as one user and verify every digest."`
	Token   tokenCommand     `cmd:"" help:"Make a development token."`
	Version kong.VersionFlag `help:"Print the version."`
}

func main() {
	var cli commands
	parsed := kong.Parse(&cli, kong.Name("synchro"), kong.Description("Offline-first sync for PostgreSQL."),
		kong.ShortUsageOnError(), kong.Vars{"version": synchro.Version()})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	parsed.BindTo(ctx, (*context.Context)(nil))
	parsed.FatalIfErrorf(parsed.Run())
}
