package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"synchro"
	"synchro/client"
)

type checkCommand struct {
	URL          string        `required:"" env:"SYNCHRO_URL" help:"Base URL of the server."`
	User         string        `help:"User to sync as; needed unless there is a token."`
	JWTSecret    string        `env:"SYNCHRO_JWT_SECRET" placeholder:"TEXT" help:"HS256 secret of the server, to make the user's token."`
	Token        string        `env:"SYNCHRO_TOKEN" help:"Bearer token to use instead; it decides which user syncs."`
	ClientID     string        `help:"Client id; a fresh one when empty."`
	Follow       time.Duration `help:"Afterwards follow changes for this long, verifying every page."`
	PollInterval time.Duration `default:"200ms" help:"Pause between two pulls while following."`
}

// Run syncs, verifies every digest and prints one line per scope. Any mismatch is an error, hence exit status 1.
func (c *checkCommand) Run(ctx context.Context) error {
	token, err := c.credential()
	if err != nil {
		return err
	}
	if c.PollInterval <= 0 {
		return errors.New("the poll interval must be positive")
	}
	id := c.ClientID
	if id == "" {
		id = uuid.NewString()
	}
	session := client.NewSession(&client.Client{URL: c.URL, Token: token, HTTP: &http.Client{Timeout: 5 * time.Minute},
		Retry: client.Retry{Attempts: 10, Base: 200 * time.Millisecond, Max: 5 * time.Second}}, id, "synchro-check", synchro.Version())
	progress := newProgress(os.Stderr)
	session.OnProgress = progress.rebuild
	if err := session.Sync(ctx); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	progress.clear()
	report(os.Stdout, session)
	if c.Follow > 0 {
		return c.follow(ctx, session)
	}
	return nil
}

// credential returns the source of bearer tokens: the given one, or fresh ones made with the server's secret.
func (c *checkCommand) credential() (func(context.Context) (string, error), error) {
	switch {
	case c.Token != "":
		return func(context.Context) (string, error) { return c.Token, nil }, nil
	case c.User == "":
		return nil, errors.New("--user is needed, or a token (--token, SYNCHRO_TOKEN)")
	case c.JWTSecret != "":
		return func(context.Context) (string, error) { return signToken(c.User, c.JWTSecret, 5*time.Minute, "") }, nil
	}
	return nil, errors.New("the server's secret is needed (--jwt-secret, SYNCHRO_JWT_SECRET), or a token (--token, SYNCHRO_TOKEN)")
}

// followWait is how long the server may hold a pull that brings nothing.
const followWait = 30 * time.Second

// follow pulls until the time is over and reports each page that brought something.
func (c *checkCommand) follow(ctx context.Context, session *client.Session) error {
	fmt.Printf("following for %s …\n", c.Follow)
	ctx, cancel := context.WithTimeout(ctx, c.Follow)
	defer cancel()
	tick := time.NewTicker(c.PollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			fmt.Println("followed; every digest verified")
			return nil
		case <-tick.C:
		}
		pulled, err := session.Pull(ctx, followWait)
		again := client.NeedsConnect(err)
		if again || err == nil && len(session.Pending()) > 0 {
			err = session.Sync(ctx)
		}
		if ctx.Err() != nil {
			continue
		} else if err != nil {
			return fmt.Errorf("pull: %w", err)
		}
		if again {
			fmt.Printf("%s  connected again; digests ok\n", time.Now().Format("15:04:05.000"))
		} else if !pulled.Empty() {
			fmt.Printf("%s  %d upserts, %d deletes, %d scopes added, %d removed; digests ok\n", time.Now().Format("15:04:05.000"),
				pulled.Upserts, pulled.Deletes, len(pulled.Added), len(pulled.Removed))
		}
	}
}

// report prints what was verified: the client refuses a row or a scope whose digest differs before this is reached.
func report(w io.Writer, session *client.Session) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "scope\trows\tbytes\ttime\tdigest\t")
	rows, octets := 0, int64(0)
	for _, scope := range session.Scopes() {
		stats, _ := session.Stats(scope)
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\tok\t\n", scope, session.Rows(scope), stats.Bytes, stats.Elapsed.Round(time.Millisecond))
		rows, octets = rows+session.Rows(scope), octets+stats.Bytes
	}
	fmt.Fprintf(t, "%d scopes\t%d\t%d\t\t\t\n", len(session.Scopes()), rows, octets)
	t.Flush()
}

// progress shows a running count on a terminal and nothing elsewhere.
type progress struct {
	w    *os.File
	last time.Time
}

func newProgress(w *os.File) *progress {
	if info, err := w.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return &progress{}
	}
	return &progress{w: w}
}

func (p *progress) rebuild(scope string, stats client.Stats) {
	if p.w == nil || time.Since(p.last) < 100*time.Millisecond {
		return
	}
	p.last = time.Now()
	fmt.Fprintf(p.w, "\r\033[K%s: %d rows", scope, stats.Rows)
}

func (p *progress) clear() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\033[K")
	}
}
