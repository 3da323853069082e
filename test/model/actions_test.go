package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"synchro/internal/pgtest"
	"synchro/protocol"
)

// code is the error code of a refusal.
func (r reply) code() string {
	var e struct{ Error struct{ Code, Reason string } }
	_ = json.Unmarshal(r.body, &e)
	return e.Error.Code
}

// drawFate draws what happens to a request: mostly nothing.
func drawFate(t *rapid.T) (fate, time.Duration) {
	if !chance(t, "fault?", 4) {
		return delivered, 0
	}
	f := requestLost + fate(uniform(t, "fault", int(fates-requestLost)))
	if f != cut {
		return f, 0
	}
	return f, time.Duration(uniform(t, "after", 30)) * time.Millisecond
}

// gate judges what pull and rebuild have in common. True: the answer is a page.
func (w *world) gate(d *device, r reply, generation *int64, c *catalog) bool {
	switch {
	case r.status == http.StatusServiceUnavailable:
		w.count("503 " + r.code())
	case d.stale(generation):
		if r.code() != "client_generation_expired" {
			w.fail("%s: a stale generation gets %d %s", d, r.status, r.body)
		}
	case c != w.now():
		w.mismatch(d, r, c)
	default:
		return true
	}
	return false
}

// mismatch judges the refusal of a schema that is not the current one.
func (w *world) mismatch(d *device, r reply, c *catalog) {
	var p struct {
		Error struct {
			Current  protocol.SchemaRef `json:"current_schema"`
			Received protocol.SchemaRef `json:"received_schema"`
		}
	}
	_ = json.Unmarshal(r.body, &p)
	if r.status != http.StatusUnprocessableEntity || r.code() != "schema_mismatch" || p.Error.Current != w.now().ref || p.Error.Received != c.ref {
		w.fail("%s: schema %d, %d is current, gets %d %s", d, c.ref.Version, w.now().ref.Version, r.status, r.body)
	}
	w.count("422 schema_mismatch")
}

// hello is how a device connects: with another schema than it has, for a reset.
type hello struct {
	schema *protocol.SchemaRef
	reset  bool
}

// connect introduces the device, renews its generation or brings it to the current schema.
func (w *world) connect(d *device, f fate) { w.connectAs(d, f, hello{}) }

func (w *world) connectAs(d *device, f fate, as hello) {
	if f == cut {
		f = answerLost
	}
	q := &protocol.ConnectRequest{ClientID: d.id, ClientGeneration: d.memory.generation, Platform: "test", AppVersion: "1.0.0", SchemaReset: as.reset,
		ProtocolVersion: protocol.Version, Schema: d.memory.schema(), ScopeSetVersion: d.memory.setVersion, KnownScopes: d.cursors()}
	from := d.memory.catalog
	if as.schema != nil {
		from, q.Schema = nil, *as.schema
	}
	body, err := q.Encode()
	w.must(err)
	seen, arrived, err := w.send(d.user, "connect", body, f, 0, "")
	if err != nil && f == delivered {
		w.must(err)
	}
	var last *protocol.ConnectResponse
	anew := false
	for _, r := range seen {
		if r.status == http.StatusServiceUnavailable {
			w.count("503 connect")
			continue
		} else if r.status != http.StatusOK {
			w.fail("%s: connect: %d %s", d, r.status, r.body)
		}
		p, err := protocol.DecodeConnectResponse(r.body)
		w.must(err)
		renewed := q.ClientGeneration != nil && d.stale(q.ClientGeneration)
		switch {
		case renewed && p.ClientGeneration <= max(*q.ClientGeneration, d.generation):
			w.fail("%s: generation %d after %d and %d", d, p.ClientGeneration, *q.ClientGeneration, d.generation)
		case !renewed && d.generation != 0 && p.ClientGeneration != d.generation:
			w.fail("%s: generation %d, was %d and current", d, p.ClientGeneration, d.generation)
		}
		w.judge(d, q, p, from, renewed)
		anew = anew || renewed
		d.generation, d.expired = p.ClientGeneration, false
		d.reassigned(q.KnownScopes, p.Scopes, p.ScopeSetVersion)
		last = p
	}
	if arrived == nil || arrived.status != http.StatusOK {
		return
	}
	w.count("connected")
	p, err := protocol.DecodeConnectResponse(arrived.body)
	w.must(err)
	if f == doubled {
		p = last // both answers are true; a device acts on one
	}
	d.memory.generation = &p.ClientGeneration
	if p.Schema.Action == protocol.ActionUnsupported {
		for _, s := range d.memory.scopes {
			s.lost = s.lost || anew // it has a new generation, and no new cursors
		}
		return
	}
	d.assign(p.Scopes, p.ScopeSetVersion)
	for id, cursor := range p.ScopeCursorUpdates {
		if s := d.memory.scopes[id]; s != nil && cursor == nil {
			s.cursor, s.complete = nil, false
		} else if s != nil {
			s.cursor, s.signed = cursor, w.now()
		}
	}
	if p.Schema.Action != protocol.ActionNone {
		d.install(p)
	}
}

// install replaces the device's manifest. What it holds of scopes that go on is as before.
func (d *device) install(p *protocol.ConnectResponse) {
	w := d.w
	c, err := newCatalog(p.SchemaDefinition, w.now().shape)
	w.must(err)
	if c.ref != w.now().ref {
		w.fail("%s is given another manifest than the current one", d)
	}
	d.memory.catalog = w.now()
	for _, s := range d.memory.scopes {
		if !s.complete {
			s.rows = map[string]held{}
		}
		rows := map[string]held{}
		for identity, h := range s.rows {
			rows[identity], err = w.now().restate(h)
			w.must(err)
		}
		s.rows = rows
	}
}

// judge compares an answered connect with what must come of it: the action, the scopes to rebuild, the cursors.
func (w *world) judge(d *device, q *protocol.ConnectRequest, p *protocol.ConnectResponse, from *catalog, renewed bool) {
	action, reason, affected := protocol.ActionReplace, "", []string(nil)
	assigned := w.assigned(d.user)
	reset := false
	switch {
	case from == w.now():
		action = protocol.ActionNone
	case q.Schema.Version == 0:
	case q.SchemaReset:
		reset, affected = true, assigned
	case from == nil:
		action, reason = protocol.ActionUnsupported, "unknown_schema_lineage"
	default:
		incompatible, touched := w.path(from)
		if incompatible {
			action, reason = protocol.ActionUnsupported, "incompatible_schema_transition"
			break
		}
		affected = slices.DeleteFunc(slices.Sorted(maps.Keys(touched)), func(id string) bool { return !slices.Contains(assigned, id) })
	}
	if len(affected) > 0 {
		action = protocol.ActionRebuildLocal
	}
	if p.Schema.Action != action || p.Schema.Reason != reason || !slices.Equal(p.AffectedScopes, affected) || p.Schema.SchemaRef != w.now().ref {
		w.fail("%s: schema action %s %s %v, want %s %s %v", d, p.Schema.Action, p.Schema.Reason, p.AffectedScopes, action, reason, affected)
	}
	w.count("action " + action)
	for id := range p.ScopeCursorUpdates {
		if _, known := q.KnownScopes[id]; !known || !slices.Contains(assigned, id) {
			w.fail("%s: an update of the cursor of %s, which it has not or has no more", d, id)
		}
	}
	for id, presented := range q.KnownScopes {
		update, told := p.ScopeCursorUpdates[id]
		s := d.memory.scopes[id]
		void, old := renewed || reset, false
		must, may := void || slices.Contains(affected, id), s.lost
		if presented.Cursor != nil {
			incompatible, touched := w.path(s.signed)
			old = s.signed != w.now()
			must = must || incompatible || touched[id] || s.members != w.members[id]
		} else {
			must = true
		}
		due := slices.Contains(assigned, id) && action != protocol.ActionUnsupported && (void || old || slices.Contains(affected, id))
		switch {
		case told != due, due && must && update != nil, due && !must && !may && update == nil:
			w.fail("%s: update of the cursor of %s: %v, %v; due %v, void %v, perhaps %v", d, id, told, update != nil, due, must, may)
		case due && update != nil:
			w.count("cursor signed anew")
		case due && !void:
			w.count("cursor voided")
		}
	}
}

// pull asks for one page.
func (w *world) pull(d *device, limit int64, f fate, after time.Duration) (again bool) {
	q, body := d.pullRequest(limit)
	seen, arrived, err := w.send(d.user, "pull", body, f, after, "")
	if err != nil && f == delivered {
		w.must(err)
	}
	return w.pulled(d, q, seen, arrived, f)
}

func (d *device) pullRequest(limit int64) (*protocol.PullRequest, []byte) {
	q := &protocol.PullRequest{ClientID: d.id, ClientGeneration: d.memory.generation, Schema: d.memory.schema(),
		ScopeSetVersion: d.memory.setVersion, Scopes: d.cursors(), Limit: limit}
	body, err := q.Encode()
	d.w.must(err)
	return q, body
}

// pulled judges what came of a pull.
func (w *world) pulled(d *device, q *protocol.PullRequest, seen []reply, arrived *reply, f fate) (again bool) {
	for _, r := range seen {
		if !w.gate(d, r, q.ClientGeneration, d.memory.catalog) {
			continue
		}
		if r.status != http.StatusOK {
			w.fail("%s: pull: %d %s", d, r.status, r.body)
		}
		p, err := protocol.DecodePullResponse(r.body)
		w.must(err)
		d.reassigned(q.Scopes, p.ScopeUpdates, p.ScopeSetVersion)
	}
	d.unseen = d.unseen || f == cut
	if arrived == nil || arrived.status != http.StatusOK {
		return true
	}
	w.count("page")
	return d.takePage(q, arrived.body)
}

// rebuild asks for the next page of a scope that needs it.
func (w *world) rebuild(d *device, scope string, limit int64, f fate, after time.Duration) {
	s := d.sessions[scope]
	if s == nil || len(s.asked) == 0 && s.void(d) {
		s = &session{scope: scope, id: uuid.NewString(), limit: limit, generation: *d.memory.generation, accepted: d.accepted, rows: map[string]held{},
			catalog: w.now(), members: w.members[scope]}
		d.sessions[scope] = s
	}
	generation := s.generation
	q := &protocol.RebuildRequest{ClientID: d.id, ClientGeneration: &generation, Schema: d.memory.schema(), Scope: scope, RebuildID: s.id,
		Cursor: s.cursor, Limit: s.limit}
	body, err := q.Encode()
	w.must(err)
	seen, arrived, err := w.send(d.user, "rebuild", body, f, after, "")
	if err != nil && f == delivered {
		w.must(err)
	}
	var page []byte
	for _, r := range seen {
		if !w.gate(d, r, &generation, d.memory.catalog) {
			continue
		}
		switch {
		case r.status == http.StatusOK && len(s.asked) > 0 && s.accepted != d.accepted:
			w.fail("%s: a rebuild goes on that may lack what the client wrote", d)
		case r.status == http.StatusOK && len(s.asked) > 0 && s.dead(w):
			w.fail("%s: a rebuild of %s goes on whose schema or rule has passed", d, scope)
		case r.status == http.StatusOK:
			if page != nil && string(page) != string(r.body) {
				w.fail("%s: a repeated page of a rebuild differs", d)
			}
			page = r.body
			p, err := protocol.DecodeRebuildResponse(r.body)
			w.must(err)
			s.served = s.served || !p.HasMore
		case r.code() == "rebuild_restart_required" && len(s.asked) > 0 && s.void(d):
			w.count("rebuild void")
		case r.status == http.StatusBadRequest && !slices.Contains(d.scopes, scope):
			w.count("rebuild of a scope that is gone")
		default:
			w.fail("%s: rebuild of %s: %d %s", d, scope, r.status, r.body)
		}
	}
	s.served = s.served || f == cut
	if arrived == nil || arrived.status == http.StatusServiceUnavailable || d.outdated() {
		return
	}
	if arrived.status != http.StatusOK {
		delete(d.sessions, scope)
		return
	}
	w.count("rebuild page")
	s.asked, s.answered = append(s.asked, body), append(s.answered, arrived.body)
	if d.takeRecords(s, arrived.body) {
		delete(d.sessions, scope)
		d.ended = append(d.ended, s)
	}
}

// pending are the scopes of a device that need a rebuild, in order.
func (d *device) pending() (out []string) {
	for id, s := range d.memory.scopes {
		if !s.complete {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// direct executes a transaction of the application.
func (w *world) direct(t *rapid.T) string {
	set := func(label string, values ...string) string { return one(t, label, append(values, "NULL")...) }
	quote := func(s string) string { return "'" + s + "'" }
	var sql strings.Builder
	sql.WriteString("BEGIN;")
	for range 1 + uniform(t, "statements", 4) {
		table, id, _ := strings.Cut(one(t, "row", w.keys...), "/")
		team := set("team", quote(w.teams[0]), quote(w.teams[1]))
		owner := set("owner", quote(w.users[0]), quote(w.users[1]), quote(w.users[2]))
		statement := ""
		kind := one(t, "statement", "put", "put", "put", "move", "touch", "delete", "again", "all", "undone", "soft", "many", "many", "dress", "nothing")
		switch {
		case kind == "put" && table == "task":
			statement = fmt.Sprintf(`INSERT INTO app.task (id, owner, team, shelf, title) VALUES ('%s', %s, %s, %s, '%s')
				ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, team = excluded.team, deleted_at = NULL`, id, owner, team, set("shelf", quote(w.shelf)), w.mark())
		case kind == "put" && table == "tag":
			statement = fmt.Sprintf(`INSERT INTO app.tag (id, team, title) VALUES (%s, %s, '%s') ON CONFLICT (id) DO UPDATE SET title = excluded.title`,
				id, team, w.mark())
		case kind == "put" && table == "memo", kind == "move" && table == "memo", kind == "again" && table == "memo":
			statement = fmt.Sprintf("INSERT INTO app.memo (id, owner, title) VALUES (%s, %s, '%s') ON CONFLICT (id) DO UPDATE SET owner = excluded.owner", id, owner, w.mark())
		case kind == "dress":
			column := map[string]string{"task": "note", "tag": "color", "memo": "owner"}[table]
			if table == "memo" && w.shape["memo"].loose {
				column = "title"
			}
			statement = fmt.Sprintf("UPDATE app.%s SET %s = %s WHERE id = '%s'", table, column, set("value", quote(w.mark())), id)
		case kind == "move" && table == "task":
			statement = fmt.Sprintf("UPDATE app.task SET owner = %s, team = %s WHERE id = '%s'", owner, team, id)
		case kind == "move":
			statement = fmt.Sprintf("UPDATE app.tag SET team = %s WHERE id = %s", team, id)
		case kind == "touch":
			statement = fmt.Sprintf("UPDATE app.%s SET title = '%s' WHERE id = '%s'", table, w.mark(), id)
		case kind == "delete":
			statement = fmt.Sprintf("DELETE FROM app.%s WHERE id = '%s'", table, id)
		case kind == "again" && table == "task":
			statement = fmt.Sprintf("WITH was AS (DELETE FROM app.task WHERE id = '%s' RETURNING *) SELECT 1; INSERT INTO app.task (id, owner, title) VALUES ('%[1]s', %s, '%s') ON CONFLICT DO NOTHING",
				id, owner, w.mark())
		case kind == "all":
			statement = fmt.Sprintf("UPDATE app.task SET n = n + 1 WHERE owner IS NOT DISTINCT FROM %s; UPDATE app.tag SET title = '%s' WHERE team IS NOT DISTINCT FROM %s", owner, w.mark(), team)
		case kind == "many":
			statement = fmt.Sprintf("UPDATE app.task SET team = %s, title = title || '+' WHERE id < '%s'", team, one(t, "below", w.keys[:9]...)[len("task/"):])
		case kind == "undone":
			statement = fmt.Sprintf("SAVEPOINT s; UPDATE app.task SET owner = %s; DELETE FROM app.%s WHERE id = '%s'; ROLLBACK TO s", owner, table, id)
		case kind == "soft" && table == "task":
			statement = fmt.Sprintf("UPDATE app.task SET deleted_at = CASE WHEN deleted_at IS NULL THEN now() END WHERE id = '%s'", id)
		default:
			statement = fmt.Sprintf("UPDATE app.%s SET title = title WHERE id = '%s'", table, id)
		}
		sql.WriteString(statement + ";")
	}
	sql.WriteString(one(t, "end", "COMMIT", "COMMIT", "COMMIT", "COMMIT", "COMMIT", "ROLLBACK"))
	return sql.String()
}

// kill ends a process of the server.
func (w *world) kill(what string) {
	core, worker, err := w.core()
	w.must(err)
	switch what {
	case "core":
		w.must(w.Kill(core))
		return // what goes on meanwhile is part of the test
	case "worker":
		w.must(w.Kill(worker))
		w.must(pgtest.WaitFor(w.t.Context(), settle, "another worker", func() (bool, error) {
			if w.ready() != nil {
				return false, nil
			}
			_, now, err := w.core()
			return err == nil && now != worker, nil
		}))
	default:
		mode := pgtest.Fast
		if what == "immediate" {
			mode = pgtest.Immediate
		}
		w.must(w.Restart(w.t.Context(), mode))
	}
	w.must(w.ready())
	// What was materialized and lost is made again; until then an unaware device may see less than another one did.
	w.materialized()
}
