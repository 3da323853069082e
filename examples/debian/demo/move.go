package main

import (
	"context"
	"fmt"
	"time"
)

// transition is the team whose tasks the demo shares.
const transition = "library transition"

// holds are the rows that the device has in each of its scopes.
func (d *device) holds() map[string]int {
	rows := map[string]int{}
	for _, scope := range d.session.Scopes() {
		rows[scope] = d.session.Rows(scope)
	}
	return rows
}

// await pulls until a scope has changed by that many rows; every pull verifies every digest.
func (d *device) await(ctx context.Context, scope string, before map[string]int, change int) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for d.session.Rows(scope) != before[scope]+change {
		if _, err := d.session.Pull(ctx, patience); err != nil {
			return fmt.Errorf("%d rows instead of %d: %w", d.session.Rows(scope), before[scope]+change, err)
		}
	}
	return nil
}

// showMove moves a package of another team from one followed section to the other: what it needs, rows that nobody wrote,
// goes with it.
func showMove(ctx context.Context, a *archive, d *device) error {
	from, to := a.sections[0], a.sections[1]
	var id string
	var dependencies int
	err := a.conn.QueryRow(ctx, `SELECT p.id, count(*) FROM archive.package p JOIN archive.dependency d ON d.package_id = p.id
		WHERE p.section = $1 AND p.maintainer <> $2 GROUP BY p.id ORDER BY count(*) DESC, p.id LIMIT 1`, from, a.team.Address).Scan(&id, &dependencies)
	if err != nil {
		return err
	}
	before := d.holds()
	if _, err := a.conn.Exec(ctx, "UPDATE archive.package SET section = $2 WHERE id = $1", id, to); err != nil {
		return err
	}
	committed := time.Now()
	if err := d.await(ctx, "section:"+to, before, 1+dependencies); err != nil {
		return err
	}
	if err := d.await(ctx, "section:"+from, before, -1-dependencies); err != nil {
		return err
	}
	say("move", time.Since(committed), "a package from section %s to %s: it and its %d dependencies moved on the device", from, to, dependencies)
	return nil
}

// showTeam ends a team's work and takes it up again: its tasks leave the device, and come back.
func showTeam(ctx context.Context, a *archive, d *device) error {
	own := "user:" + d.user
	before := d.holds()
	var tasks int
	if err := a.conn.QueryRow(ctx, "SELECT count(*) FROM archive.task k JOIN archive.team t ON t.id = k.team_id WHERE t.name = $1", transition).Scan(&tasks); err != nil {
		return err
	}
	activate := func(active bool, change int) error {
		if _, err := a.conn.Exec(ctx, "UPDATE archive.team SET active = $2 WHERE name = $1", transition, active); err != nil {
			return err
		}
		return d.await(ctx, own, before, change)
	}
	begin := time.Now()
	if err := activate(false, -tasks); err != nil {
		return err
	}
	if err := activate(true, 0); err != nil {
		return err
	}
	say("team", time.Since(begin), "the team %q paused and went on: its %d tasks left the device and came back", transition, tasks)
	return nil
}
