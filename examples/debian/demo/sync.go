package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"synchro"
	"synchro/canonical"
	"synchro/client"
	"synchro/examples/debian"
)

// device is one client of the team.
type device struct {
	stack   *stack
	user    string
	session *client.Session
}

func newDevice(s *stack, user string) *device {
	c := &client.Client{
		URL:   s.serve.URL,
		Token: func(context.Context) (string, error) { return s.token(user) },
		Retry: client.Retry{Attempts: 200, Base: 2 * time.Millisecond, Max: 100 * time.Millisecond},
	}
	d := &device{stack: s, user: user, session: client.NewSession(c, uuid.NewString(), "demo", synchro.Version())}
	d.session.PageLimit = 1000
	return d
}

// syncAs connects a device of the team and copies every scope that it has.
func syncAs(ctx context.Context, s *stack, a *archive) (*device, error) {
	say("connect", 0, "as %s, which follows the sections %s", a.team.Name, strings.Join(a.sections, " and "))
	d := newDevice(s, a.team.Address)
	if err := d.session.Sync(ctx); err != nil {
		return nil, fmt.Errorf("sync: %w", err)
	}
	if want := 1 + len(a.sections); len(d.session.Scopes()) != want {
		return nil, fmt.Errorf("%d scopes instead of %d", len(d.session.Scopes()), want)
	}
	for _, scope := range d.session.Scopes() {
		stats, _ := d.session.Stats(scope)
		say("", stats.Elapsed, "  %-18s %6d rows %8.1f kB   digest verified", d.label(scope), d.session.Rows(scope), float64(stats.Bytes)/1000)
	}
	return d, nil
}

// label names a scope without naming the user.
func (d *device) label(scope string) string {
	if scope == "user:"+d.user {
		return "the team's own"
	}
	return scope
}

// patience is how long the server may hold a pull that has nothing to tell.
const patience = 10 * time.Second

// pullUntil pulls until that many rows have arrived; every pull verifies every digest.
func (d *device) pullUntil(ctx context.Context, rows int) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for got := 0; got < rows; {
		pulled, err := d.session.Pull(ctx, patience)
		if err != nil {
			return err
		}
		got += pulled.Upserts
	}
	return nil
}

const rounds = 20

// showUpdates changes packages in SQL and measures how long they take to the device.
func showUpdates(ctx context.Context, a *archive, d *device) error {
	var delays []time.Duration
	for i := range rounds {
		_, err := a.conn.Exec(ctx, `UPDATE archive.package SET version = version || '+demo'
			WHERE id = (SELECT id FROM archive.package WHERE maintainer = $1 ORDER BY id OFFSET $2 LIMIT 1)`, a.team.Address, i)
		if err != nil {
			return err
		}
		committed := time.Now()
		if err := d.pullUntil(ctx, 1); err != nil {
			return err
		}
		delays = append(delays, time.Since(committed))
	}
	slices.Sort(delays)
	say("update", 0, "%d packages one by one in SQL: each on the device %s after its commit (median; worst %s)",
		rounds, round(delays[rounds/2]), round(delays[rounds-1]))

	tag, err := a.conn.Exec(ctx, "UPDATE archive.package SET priority = 'extra' WHERE section = $1", a.sections[0])
	if err != nil {
		return err
	}
	committed := time.Now()
	if err := d.pullUntil(ctx, int(tag.RowsAffected())); err != nil {
		return err
	}
	say("update", time.Since(committed), "all %d packages of section %s in one statement: on the device", tag.RowsAffected(), a.sections[0])
	return nil
}

// showNote pushes a note from the device, and waits for it to come back as part of the team's scope.
func showNote(ctx context.Context, a *archive, d *device) error {
	mutation, err := d.note(a.team, "checked by the demo")
	if err != nil {
		return err
	}
	begin := time.Now()
	answer, err := d.session.Push(ctx, []canonical.Mutation{mutation}, false)
	if err != nil {
		return err
	}
	pushed := time.Since(begin)
	if len(answer.Rejected) > 0 {
		return fmt.Errorf("the server rejected it: %s %s", answer.Rejected[0].Code, answer.Rejected[0].Message)
	}
	var stored int
	if err := a.conn.QueryRow(ctx, "SELECT count(*) FROM archive.note WHERE team = $1", a.team.Address).Scan(&stored); err != nil {
		return err
	}
	if stored != 1 {
		return fmt.Errorf("%d notes in the table instead of 1", stored)
	}
	begin = time.Now()
	if err := d.pullUntil(ctx, 1); err != nil {
		return err
	}
	say("push", 0, "a note from the device: applied in %s, its echo pulled %s later", round(pushed), round(time.Since(begin)))
	return nil
}

// note makes the insert of a note as the manifest describes the table.
func (d *device) note(team debian.Team, body string) (canonical.Mutation, error) {
	values := map[string]any{
		"team": team.Address, "package_id": "", "body": body, "written_at": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"),
	}
	for _, table := range d.session.Manifest().Tables {
		if table.Name != "note" {
			continue
		}
		m := canonical.Mutation{TableID: table.TableID, Op: canonical.Insert, Columns: []canonical.Value{}}
		for _, field := range table.Fields {
			if field.FieldID == table.PrimaryKeyFieldID {
				m.Key = canonical.Value{FieldID: field.FieldID, JSON: []byte(`"` + uuid.NewString() + `"`)}
				continue
			}
			text, err := json.Marshal(values[field.Name])
			if err != nil {
				return m, err
			}
			m.Columns = append(m.Columns, canonical.Value{FieldID: field.FieldID, JSON: text})
		}
		return m, nil
	}
	return canonical.Mutation{}, errors.New("the manifest has no table note")
}

// verifyAfresh copies everything to a second device and compares what both hold.
func (d *device) verifyAfresh(ctx context.Context) error {
	begin := time.Now()
	second := newDevice(d.stack, d.user)
	if err := second.session.Sync(ctx); err != nil {
		return err
	}
	rows := 0
	for _, scope := range d.session.Scopes() {
		if second.session.Rows(scope) != d.session.Rows(scope) {
			return errors.New("a second device holds another number of rows")
		}
		rows += d.session.Rows(scope)
	}
	say("verify", time.Since(begin), "a second device copied the same %d rows; every digest of both is the server's", rows)
	return nil
}
