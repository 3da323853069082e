package model

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"synchro/internal/pgtest"
)

// register is the call that registers a table as the shape says.
func (s shape) register(name string) string {
	t := s[name]
	if !t.synced {
		return fmt.Sprintf("SELECT synchro.synchro_unregister_table('app.%s');", name)
	}
	var more strings.Builder
	if t.multi {
		more.WriteString(", p_composition => 'multi_scope'")
	}
	if t.deleted != "" {
		fmt.Fprintf(&more, ", p_deleted_at_col => '%s'", t.deleted)
	}
	if t.readOnly {
		more.WriteString(", p_push_policy => 'read_only'")
	}
	if t.texts {
		more.WriteString(", p_text_columns => '{n}'")
	}
	return fmt.Sprintf("SELECT synchro.synchro_register_table('app.%s', 'app.%[1]s_scopes_%d', p_sync_columns => '{%s}'%s);", name, t.rule, t.columns, more.String())
}

// alteration is a change of what is registered, and of the tables themselves.
type alteration struct {
	table  string
	to     shape
	before string // statements that come before the registration, in its transaction
	after  string
	reread bool // the server reads the rows anew
	staged bool // the rule is another, and comes into force later
	writes bool // rows are written directly
	grown  string
}

// alteration draws one that the shape allows.
func (w *world) alteration(t *rapid.T, s shape) (a alteration, ok bool) {
	a.grown = w.grown
	kind := one(t, "alteration", "note", "note", "color", "memo", "loose", "texts", "deletion", "policy", "composition", "rule", "rule", "tag rule", "grow", "both")
	w.note("  alteration %s", kind)
	task, tag, memo := s["task"], s["tag"], s["memo"]
	mark := "'" + w.mark() + "'"
	switch kind {
	case "note", "both":
		if a.table = "task"; task.has("note") {
			a.to = s.with("task", task.left("note"))
			if chance(t, "empty", 2) {
				a.after = "UPDATE app.task SET note = NULL;"
			}
			break
		}
		switch one(t, "values", "none", "before", "inside") {
		case "before":
			w.must(w.exec("UPDATE app.task SET note = "+mark+" WHERE id < $1", strings.TrimPrefix(w.keys[4], "task/")))
			w.look(false)
			a.writes = true
		case "inside":
			a.before = "UPDATE app.task SET note = " + mark + ";"
		}
		next := task.joined("note")
		if kind == "both" { // one that is read anew is evaluated anew at once
			next.rule = (task.rule + 1) % 3
		}
		a.to = s.with("task", next)
		a.reread = kind == "both" || w.rows.any("task", "note") || a.before != "" && len(w.rowsOf("task")) > 0
	case "color":
		if a.table = "tag"; tag.has("color") {
			a.to = s.with("tag", tag.left("color"))
			break
		}
		a.to, a.reread = s.with("tag", tag.joined("color")), w.rows.any("tag", "color")
	case "grow":
		if a.table = "tag"; w.grown != "" {
			a.to, a.after, a.grown = s.with("tag", tag.left(w.grown)), fmt.Sprintf("ALTER TABLE app.tag DROP COLUMN %s;", w.grown), ""
			break
		}
		w.grows++
		a.grown = fmt.Sprintf("x%d", w.grows)
		a.to = s.with("tag", tag.joined(a.grown))
		a.before = fmt.Sprintf("ALTER TABLE app.tag ADD COLUMN %s int;", a.grown)
		if chance(t, "default", 2) { // rows get a value, and no other version
			a.before = fmt.Sprintf("ALTER TABLE app.tag ADD COLUMN %s int DEFAULT 7; ALTER TABLE app.tag ALTER %[1]s DROP DEFAULT;", a.grown)
			a.reread = len(w.rowsOf("tag")) > 0
		}
	case "memo":
		a.table = "memo"
		memo.synced = !memo.synced
		a.to, a.reread = s.with("memo", memo), memo.synced
	case "loose":
		if !memo.synced {
			return a, false
		}
		a.table = "memo"
		if memo.loose = !memo.loose; memo.loose {
			a.before = "ALTER TABLE app.memo ALTER title DROP NOT NULL;"
		} else {
			a.before = "UPDATE app.memo SET title = '' WHERE title IS NULL; ALTER TABLE app.memo ALTER title SET NOT NULL;"
			a.reread = true
		}
		a.to = s.with("memo", memo)
	case "texts":
		task.texts = !task.texts
		a.table, a.to = "task", s.with("task", task)
	case "deletion":
		if task.deleted == "" {
			task.deleted = "deleted_at"
		} else {
			task.deleted = ""
		}
		a.table, a.to, a.reread = "task", s.with("task", task), true
	case "policy":
		tag.readOnly = !tag.readOnly
		a.table, a.to = "tag", s.with("tag", tag)
	case "composition":
		tag.multi = !tag.multi
		a.table, a.to, a.staged = "tag", s.with("tag", tag), true
	case "rule":
		task.rule = (task.rule + 1 + uniform(t, "rule", 2)) % 3
		a.table, a.to, a.staged = "task", s.with("task", task), true
	case "tag rule":
		tag.rule = 1 - tag.rule
		a.table, a.to, a.staged = "tag", s.with("tag", tag), true
	}
	return a, true
}

// rowsOf are the keys of a table's rows.
func (w *world) rowsOf(name string) []string {
	return slices.DeleteFunc(w.rows.keys(), func(key string) bool { return !strings.HasPrefix(key, name+"/") })
}

// step is an alteration that is registered and not yet in force.
type step struct {
	alteration
	from shape
	at   rows // of the registration
}

// alter changes what is registered, while clients go on under what is in force.
func (w *world) alter(t *rapid.T, d *device) {
	w.materialized()
	frozen := chance(t, "frozen", 2)
	if frozen {
		core, _, err := w.core()
		w.must(err)
		w.must(w.Signal(core, syscall.SIGSTOP))
		defer func() { _ = w.Signal(core, syscall.SIGCONT) }() // when the run fails
		w.meanwhile(t, false)
		steps := w.register(t, 1+uniform(t, "alterations", 3)/2)
		w.meanwhile(t, slices.ContainsFunc(steps, func(s step) bool { return s.writes }))
		w.must(w.Signal(core, syscall.SIGCONT))
		w.settleSteps(t, steps)
		return
	}
	w.settleSteps(t, w.register(t, 1+uniform(t, "alterations", 3)/2))
}

// meanwhile is what clients do while a change is on its way. A push would have to wait for rows that were written directly.
func (w *world) meanwhile(t *rapid.T, written bool) {
	for range uniform(t, "meanwhile", 4) {
		p := one(t, "other", w.introduced()...)
		switch one(t, "does", "pull", "rebuild", "connect", "push", "push", "replay") {
		case "pull":
			w.onePull(t, p)
		case "rebuild":
			w.oneRebuild(t, p)
		case "connect":
			w.connect(p, delivered)
		case "replay":
			w.replayPage(t, p)
		case "push":
			if !written {
				w.renew(p)
				w.newPush(t, p)
			}
		}
	}
}

// register makes changes, each in a transaction of its own.
func (w *world) register(t *rapid.T, many int) (steps []step) {
	s, pending := w.shape, false
	for range many {
		a, ok := w.alteration(t, s)
		if !ok {
			continue
		}
		a.writes = a.writes || strings.Contains(a.before+a.after, "UPDATE app.")
		switch state, err := w.migrate(a.before + a.to.register(a.table) + a.after); {
		case state == "55000" && slices.ContainsFunc(steps, func(s step) bool { return a.table == s.table && !s.to[s.table].synced }), // it has not left yet
			state == lockNotAvailable: // the core was stopped with a lock
			w.count("registration refused")
			continue
		case err != nil:
			w.must(err)
		}
		w.grown = a.grown
		w.look(false)
		w.steps++
		steps = append(steps, step{alteration: a, from: s, at: maps.Clone(w.rows)})
		s, pending = a.to, pending || a.staged
		steps[len(steps)-1].staged = pending
		w.count(fmt.Sprintf("alteration of class %d", steps[len(steps)-1].class()))
	}
	w.shape = s
	return steps
}

const lockNotAvailable = "55P03"

// migrate executes a transaction that registers. What keeps it from its locks, it is told to try again.
func (s *stack) migrate(sql string) (state string, err error) {
	for range 5 {
		if err = s.exec("BEGIN;" + sql + "COMMIT"); err == nil {
			return "", nil
		}
		if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) {
			state = refused.Code
		}
		if err := s.exec("ROLLBACK"); err != nil {
			return "", err
		}
		if state != lockNotAvailable && state != "40P01" {
			break
		}
	}
	return state, err
}

func (s step) class() int { return s.from.class(s.to, s.at) }

// settleSteps waits until the changes are in force. They are for clients what the oracle says.
func (w *world) settleSteps(t *rapid.T, steps []step) {
	if !w.calm && chance(t, "killed", 6) {
		core, _, err := w.core()
		w.must(err)
		w.must(w.Kill(core))
	}
	w.must(w.activation())
	w.materialized()
	rows, err := w.db.Query(context.Background(), "SELECT body FROM synchro.manifest WHERE schema_version > $1 ORDER BY schema_version", w.now().ref.Version)
	w.must(err)
	var bodies [][]byte
	for rows.Next() {
		var body []byte
		w.must(rows.Scan(&body))
		bodies = append(bodies, body)
	}
	w.must(rows.Err())
	for _, s := range steps {
		w.take(s, &bodies)
	}
	if len(bodies) > 0 {
		w.fail("%d manifests more than the changes tell", len(bodies))
	}
	w.look(true) // a frame of its own, under the new shape
	w.unsure = -1
	w.settled = len(w.frames) - 1
	for _, d := range w.devices {
		d.floor = w.settled
	}
}

// activation waits until the newest registration is in force.
func (s *stack) activation() error {
	return pgtest.WaitFor(context.Background(), settle, "activation", func() (done bool, err error) {
		err = s.db.QueryRow(context.Background(), "SELECT p.registry_generation = (SELECT max(generation) FROM synchro.registry_generation) FROM synchro.progress p").Scan(&done)
		return done, err
	})
}

// take makes a step part of the lineage.
func (w *world) take(s step, bodies *[][]byte) {
	now := s.at
	if s.staged {
		now = w.rows
	}
	held := s.from.holders(s.table, now)
	maps.Copy(held, s.to.holders(s.table, now))
	stale := map[string]bool{}
	switch {
	case s.reread && s.from[s.table].synced:
		stale = held
		for _, d := range w.devices { // what left a scope of the table is not told any more
			for id, r := range d.memory.scopes {
				r.lost = r.lost || w.ever[s.table+" "+id]
			}
			for _, o := range slices.Concat(slices.Collect(maps.Values(d.sessions)), d.ended) {
				o.removed = o.removed || w.ever[s.table+" "+o.scope]
			}
		}
	case s.from[s.table].multi != s.to[s.table].multi:
		stale = held
	case s.from[s.table].rule != s.to[s.table].rule:
		stale = s.from.moved(s.to, s.table, now)
	}
	for scope := range stale {
		w.members[scope]++
	}
	if s.table == "memo" && s.to["memo"].synced && !s.from["memo"].synced { // rows that were not captured get other versions
		maps.DeleteFunc(w.versions, func(state, _ string) bool { return strings.HasPrefix(state, "memo/") })
	}
	class := s.class()
	if class == 1 {
		w.now().shape = s.to
		return
	}
	if len(*bodies) == 0 {
		w.fail("a step of class %d has no manifest", class)
	}
	c, err := newCatalog((*bodies)[0], s.to)
	w.must(err)
	*bodies = (*bodies)[1:]
	if want := fmt.Sprintf("class_%d", class); c.manifest.TransitionClass != want {
		w.fail("a step is %s, want %s: %v", c.manifest.TransitionClass, want, s.alteration)
	}
	c.index, c.class = len(w.lineage), class
	if class == 3 {
		c.affected = held
	}
	w.lineage = append(w.lineage, c)
}

// now is the catalog in force.
func (w *world) now() *catalog { return w.lineage[len(w.lineage)-1] }

// path tells what lies between a catalog and the one in force: whether clients can follow, and which scopes they have to rebuild.
func (w *world) path(from *catalog) (incompatible bool, affected map[string]bool) {
	affected = map[string]bool{}
	for _, c := range w.lineage[from.index+1:] {
		incompatible = incompatible || c.class == 4
		maps.Copy(affected, c.affected)
	}
	return incompatible, affected
}

// begin brings the tables, which are empty, back to the first shape.
func (s *stack) begin() error {
	for _, name := range []string{"memo", "tag", "task"} {
		after := ""
		switch {
		case name == "memo" && s.shape["memo"].loose:
			after = "ALTER TABLE app.memo ALTER title SET NOT NULL;"
		case name == "tag" && s.grown != "":
			after = fmt.Sprintf("ALTER TABLE app.tag DROP COLUMN %s;", s.grown)
		}
		if s.shape[name] == firstShape[name] && after == "" {
			continue
		}
		sql := firstShape.register(name)
		if !s.shape[name].synced {
			sql = ""
		}
		if _, err := s.migrate(sql + after); err != nil {
			return err
		}
		if err := s.activation(); err != nil {
			return err
		}
	}
	s.shape, s.grown = firstShape, ""
	return nil
}
