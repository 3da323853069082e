package model

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"synchro/client"
)

func TestRandomRuns(t *testing.T) {
	const fresh = 100 // runs on one stack: what is registered again and again stays in the registry
	s := startStack(t)
	total := map[string]int{}
	seeds(t, 25*time.Second, func(rt *rapid.T) {
		if n := runs.Load(); n > 0 && n%fresh == 0 {
			_ = s.serve.Stop()
			if err := s.Destroy(); err != nil {
				t.Fatal(err)
			}
			s = startStack(t)
		}
		w := newWorld(rt, s)
		w.play()
		for what, n := range w.counts {
			total[what] += n
		}
	})
	for _, what := range slices.Sorted(maps.Keys(total)) {
		t.Logf("%6d %s", total[what], what)
	}
}

// steps is how many things happen in a run, at most.
const steps = 120

// play does random things, and then everything must come together.
func (w *world) play() {
	for range steps/4 + uniform(w.t, "steps", steps*3/4) {
		w.act()
	}
	w.converge()
}

// act does one of the things that may happen, as often as their weights say.
func (w *world) act() {
	type action struct {
		weight int
		name   string
		do     func(t *rapid.T, d *device)
		costly bool
	}
	actions := []action{
		{weight: 16, name: "write", do: w.write},
		{weight: 16, name: "push", do: w.newPush},
		{weight: 6, name: "resend", do: w.resend},
		{weight: 16, name: "pull", do: w.onePull},
		{weight: 6, name: "sync", do: func(t *rapid.T, d *device) { w.sync(d, one(t, "limit", limits...)) }},
		{weight: 12, name: "rebuild", do: w.oneRebuild},
		{weight: 3, name: "overtake", do: w.overtake},
		{weight: 3, name: "lag", do: w.lag},
		{weight: 2, name: "replay", do: w.replayPage},
		{weight: 1, name: "connect", do: func(t *rapid.T, d *device) { f, _ := drawFate(t); w.connect(d, f) }},
		{weight: 4, name: "assign", do: w.reassign},
		{weight: 2, name: "expire", do: w.expire},
		{weight: 2, name: "backup", do: w.restore},
		{weight: 2, name: "settle", do: func(*rapid.T, *device) { w.materialized() }},
		{weight: 4, name: "together", do: w.together},
		{weight: 1, name: "crash", do: w.crash},
		{weight: 1, name: "rotate", do: w.rotate},
		{weight: 1, name: "retire", do: w.retire},
		{weight: 2, name: "compact", do: w.compact},
		{weight: 2, name: "lapse", do: w.lapse},
		{weight: 2, name: "relapse", do: w.relapse},
		{weight: 2, name: "outlast", do: w.outlast},
		{weight: 5, name: "alter", do: w.alter, costly: true},
		{weight: 3, name: "wait", do: w.wait, costly: true},
		{weight: 1, name: "stranger", do: w.stranger, costly: true},
	}
	var all []action
	for _, a := range actions {
		switch sought := slices.Contains(strings.Fields(w.focus), a.name); {
		case sought:
			a.weight *= 5
		case w.calm && a.costly:
			continue // who looks for something else has no time for it
		}
		for range a.weight {
			all = append(all, a)
		}
	}
	a, d := one(w.t, "action", all...), one(w.t, "device", w.devices...)
	w.steps++
	if w.calm && a.name == "crash" {
		return
	}
	w.note("%s %s", a.name, d)
	if d.memory.generation == nil {
		f, _ := drawFate(w.t)
		w.connect(d, f)
	}
	if d.outdated() && d.memory.generation != nil && chance(w.t, "comes back", 2) { // or goes on as it was
		w.renew(d)
	}
	if d.memory.catalog != nil {
		w.count("action " + a.name)
		a.do(w.t, d)
	}
}

// write is a transaction of the application.
func (w *world) write(t *rapid.T, _ *device) {
	w.must(w.exec(w.direct(t)))
	w.look(false)
}

func (w *world) newPush(t *rapid.T, d *device) {
	atomic := chance(t, "atomic", 3)
	var mutations []*mutation
	rowsOf := map[string]bool{}
	for range 1 + uniform(t, "mutations", 5) {
		if !atomic && chance(t, "again", 8) { // one that has its outcome already, or waits for it in another batch
			if old := w.completed(d); len(old) > 0 {
				m := one(t, "old", old...)
				if !slices.Contains(mutations, m) {
					mutations = append(mutations, m)
				}
				continue
			}
		}
		m := w.likely(t, d)
		if chance(t, "any", 2) {
			m = w.author(t, d)
		}
		if atomic && rowsOf[m.key] {
			continue
		}
		rowsOf[m.key] = true
		mutations = append(mutations, m)
	}
	b := w.seal(d, mutations, atomic)
	f, after := drawFate(t)
	w.push(b, f, after)
}

// completed are mutations of a device that single batches have completed.
func (w *world) completed(d *device) (out []*mutation) {
	for _, b := range w.batches {
		if b.d == d && !b.atomic && b.answer != nil {
			for _, m := range b.mutations {
				if !slices.Contains(out, m) {
					out = append(out, m)
				}
			}
		}
	}
	return out
}

// resend sends an old batch again, whether or not its answer is known; one whose generation has passed gets a successor.
func (w *world) resend(t *rapid.T, d *device) {
	var mine []*batch
	for _, b := range w.batches {
		if b.d == d {
			mine = append(mine, b)
		}
	}
	if len(mine) == 0 {
		return
	}
	b := one(t, "batch", mine...)
	f, after := drawFate(t)
	w.push(b, f, after)
	w.succeed(b)
}

// superseded tells whether a batch cannot be executed any more: its generation has passed, or its schema.
func (b *batch) superseded() bool { return b.d.stale(&b.generation) || b.catalog != b.d.w.now() }

// succeed seals a batch anew that its generation or its schema keeps from being executed. Its mutations stay as they were authored.
func (w *world) succeed(b *batch) {
	if b.answer == nil && b.superseded() && !b.d.stale(b.d.memory.generation) && !b.d.outdated() {
		next := w.seal(b.d, b.mutations, b.atomic)
		w.batches = slices.DeleteFunc(w.batches, func(o *batch) bool { return o == b })
		w.count("batch sealed anew")
		w.push(next, delivered, 0)
	}
}

func (w *world) onePull(t *rapid.T, d *device) {
	f, after := drawFate(t)
	w.pull(d, one(t, "limit", limits...), f, after)
	w.renew(d)
}

// limits are those of pages.
var limits = []int64{1, 2, 3, 7, 1000}

// renew connects a device whose generation or schema the server refuses, and begins anew where it cannot follow.
func (w *world) renew(d *device) {
	if d.stale(d.memory.generation) || d.outdated() {
		w.connect(d, delivered)
	}
	if d.outdated() && d.memory.catalog != nil {
		w.connectAs(d, delivered, hello{reset: true})
	}
}

// stranger connects with a schema that the server does not know, as one that was restored from elsewhere, and begins anew.
func (w *world) stranger(t *rapid.T, d *device) {
	if chance(t, "at once", 2) {
		w.connectAs(d, delivered, hello{schema: &strange})
	}
	w.connectAs(d, delivered, hello{schema: &strange, reset: true})
}

func (w *world) oneRebuild(t *rapid.T, d *device) {
	from := d.pending()
	if len(from) == 0 || chance(t, "without need", 3) {
		from = slices.Sorted(maps.Keys(d.memory.scopes))
	}
	if len(from) == 0 {
		return
	}
	f, after := drawFate(t)
	w.rebuild(d, one(t, "scope", from...), one(t, "limit", limits...), f, after)
	w.renew(d)
}

// overtake pushes while a rebuild of the same device is under way.
func (w *world) overtake(t *rapid.T, d *device) {
	w.renew(d)
	scope, ok := d.largest() // so that something is left after the first page
	if !ok {
		return
	}
	w.rebuild(d, scope, 1, delivered, 0)
	w.push(w.seal(d, []*mutation{w.likely(t, d)}, false), delivered, 0)
	if d.sessions[scope] != nil {
		w.rebuild(d, scope, 1, delivered, 0)
	}
}

// introduced are the devices that have connected.
func (w *world) introduced() []*device {
	return slices.DeleteFunc(slices.Clone(w.devices), func(d *device) bool { return d.memory.catalog == nil })
}

// lag lets devices meet a server that has not materialized what was just written.
func (w *world) lag(t *rapid.T, d *device) {
	w.materialized()
	w.sync(d, 1000)
	core, _, err := w.core()
	w.must(err)
	w.must(w.Signal(core, syscall.SIGSTOP))
	defer func() { _ = w.Signal(core, syscall.SIGCONT) }()
	w.push(w.seal(d, []*mutation{w.likely(t, d)}, false), delivered, 0)
	w.pull(d, 1000, delivered, 0)
	w.newPush(t, one(t, "another", w.introduced()...))
	w.write(t, d)
	w.onePull(t, one(t, "other", w.introduced()...))
	w.oneRebuild(t, d)
	w.onePull(t, d)
}

// replayPage asks again for a page of a rebuild: it is the same as long as the session stands.
func (w *world) replayPage(t *rapid.T, d *device) {
	sessions := slices.Clone(d.ended)
	for _, id := range slices.Sorted(maps.Keys(d.sessions)) {
		sessions = append(sessions, d.sessions[id])
	}
	sessions = slices.DeleteFunc(sessions, func(s *session) bool { return len(s.asked) == 0 || s.void(d) })
	if len(sessions) == 0 {
		return
	}
	s := one(t, "session", sessions...)
	i := uniform(t, "page", len(s.asked))
	_, r, err := w.send(d.user, "rebuild", s.asked[i], delivered, 0, "")
	w.must(err)
	if r.status == http.StatusServiceUnavailable {
		return
	}
	w.count("page replayed")
	if r.status != http.StatusOK || string(r.body) != string(s.answered[i]) {
		w.fail("%s: page %d of a rebuild of %s is now %d\n%s\nwas\n%s", d, i, s.scope, r.status, r.body, s.answered[i])
	}
}

// sync does without faults what a device does to be up to date. It may meet a pause, and then ends where it is.
func (w *world) sync(d *device, limit int64) (complete bool) {
	for range 200 {
		w.renew(d)
		if pending := d.pending(); len(pending) > 0 {
			if s := d.sessions[pending[0]]; s != nil && s.void(d) {
				delete(d.sessions, pending[0])
			}
			before := w.counts["rebuild page"]
			w.rebuild(d, pending[0], limit, delivered, 0)
			if w.counts["rebuild page"] == before && slices.Contains(d.scopes, pending[0]) {
				return false
			}
			if slices.Contains(d.scopes, pending[0]) {
				continue
			}
		}
		before := w.counts["page"]
		more := w.pull(d, limit, delivered, 0)
		if w.counts["page"] == before {
			return false
		}
		if !more && len(d.pending()) == 0 {
			w.count("synced")
			return true
		}
	}
	w.fail("%s does not come to an end", d)
	return false
}

// reassign changes what a user may see.
func (w *world) reassign(t *rapid.T, _ *device) {
	user := one(t, "user", w.users...)
	scope := one(t, "scope", "user:"+w.users[0], "user:"+w.users[1], "team:"+w.teams[0], "team:"+w.teams[1])
	team := one(t, "team", w.teams...)
	switch one(t, "kind", "grant", "revoke", "join", "join", "leave", "close", "close", "open") {
	case "grant":
		w.must(w.exec("SELECT synchro.synchro_grant_user_scope($1, $2)", user, scope))
		w.grants[user][scope] = true
		if scope == "user:"+user {
			w.revoked[user] = false
		}
	case "revoke":
		if !w.grants[user][scope] && scope != "user:"+user {
			return // refused: there is nothing to revoke
		}
		w.must(w.exec("SELECT synchro.synchro_revoke_user_scope($1, $2)", user, scope))
		delete(w.grants[user], scope)
		if scope == "user:"+user {
			w.revoked[user] = true
		}
	case "close":
		w.must(w.exec("SELECT synchro.synchro_revoke_user_scope($1, 'user:' || $1)", user))
		delete(w.grants[user], "user:"+user)
		w.revoked[user] = true
	case "open":
		w.must(w.exec("SELECT synchro.synchro_grant_user_scope($1, 'user:' || $1)", user))
		w.grants[user]["user:"+user] = true
		w.revoked[user] = false
	case "join":
		w.must(w.exec("INSERT INTO app.member VALUES ($1, $2) ON CONFLICT DO NOTHING", user, team))
		w.teamsOf[user][team] = true
	case "leave":
		w.must(w.exec("DELETE FROM app.member WHERE user_id = $1 AND team = $2", user, team))
		delete(w.teamsOf[user], team)
	}
}

// restore makes a backup of a device, or brings one back.
func (w *world) restore(t *rapid.T, d *device) {
	if d.backup == nil || chance(t, "new", 2) {
		copied := d.memory.clone()
		d.backup = &copied
		return
	}
	w.bringBack(d)
}

func (w *world) bringBack(d *device) {
	d.memory = d.backup.clone()
	d.sessions = map[string]*session{}
	for _, s := range d.memory.scopes {
		s.lost = true
	}
	w.count("restored")
}

// together does several things at the same time. Who comes first is not known, so only their end is judged.
func (w *world) together(t *rapid.T, d *device) {
	var sql []string
	for range 1 + uniform(t, "writers", 2) {
		sql = append(sql, w.direct(t))
	}
	other := one(t, "other", w.introduced()...)
	var sealed []*batch
	for _, p := range []*device{d, other} {
		sealed = append(sealed, w.seal(p, []*mutation{w.author(t, p), w.author(t, p)}, false))
	}
	reader := one(t, "reader", w.introduced()...)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var wrong []error
	note := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	for _, text := range sql {
		wg.Go(func() {
			conn, err := w.Conn(context.Background(), "", "")
			if err != nil {
				note(err)
				return
			}
			defer conn.Close(context.Background())
			if _, err = conn.Exec(context.Background(), text); err != nil && !strings.Contains(err.Error(), "40P01") {
				note(err)
			}
		})
	}
	answers := make([][]reply, len(sealed))
	for i, b := range sealed {
		wg.Go(func() {
			seen, _, err := w.send(b.d.user, "push", b.body, delivered, 0, "")
			note(err)
			answers[i] = seen
		})
	}
	w.look(true)
	w.pull(reader, 1000, delivered, 0)
	wg.Wait()
	for _, err := range wrong {
		w.must(err)
	}
	for i, b := range sealed {
		for _, r := range answers[i] {
			switch {
			case r.status == http.StatusServiceUnavailable:
			case !b.d.stale(&b.generation) && b.catalog != w.now():
				w.mismatch(b.d, r, b.catalog)
			case r.status == http.StatusOK && !b.d.stale(&b.generation):
				b.answer = r.body
				w.executed(b, nil, nil)
			case r.code() != "client_generation_expired":
				w.fail("%s: push: %d %s", b.d, r.status, r.body)
			}
		}
	}
	w.look(true)
	if chance(t, "settle", 2) {
		w.materialized()
	}
}

// converge ends a run: every outcome is learned, every device is up to date, and all is as the oracle says.
func (w *world) converge() {
	w.must(w.ready())
	w.materialized()
	patience := time.Now().Add(w.patience())
	retry := func(what string, done func() bool) {
		for !done() {
			if time.Now().After(patience) {
				w.fail("%s does not come to an end", what)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	for _, b := range slices.Clone(w.batches) {
		w.renew(b.d)
		retry("a push", func() bool {
			if b.answer == nil && b.superseded() {
				w.succeed(b)
				return true
			}
			w.push(b, delivered, 0)
			return b.answer != nil
		})
	}
	for _, b := range w.batches {
		retry("a successor", func() bool { w.push(b, delivered, 0); return b.answer != nil })
	}
	w.look(false)
	w.materialized()
	for _, d := range w.devices {
		if d.memory.catalog == nil {
			w.connect(d, delivered)
		}
		retry(d.id, func() bool { return w.sync(d, 1000) })
		if d.floor != len(w.frames)-1 {
			w.fail("%s is behind", d)
		}
	}
	w.audit()
	for _, user := range w.users {
		w.fresh(user)
	}
}

// fresh checks that the client engine, starting anew, finds the same.
func (w *world) fresh(user string) {
	c := client.NewSession(&client.Client{URL: w.serve.URL, Token: token(user), Retry: client.Retry{Attempts: 20, Base: 20 * time.Millisecond, Max: time.Second}},
		user+"-fresh", "test", "1.0.0")
	w.must(c.Sync(context.Background()))
	if !slices.Equal(c.Scopes(), w.assigned(user)) {
		w.fail("a fresh client of %s is assigned %v", user, c.Scopes())
	}
	for _, scope := range c.Scopes() {
		if want := strings.Count(w.frames[len(w.frames)-1][scope], "\n"); c.Rows(scope) != want {
			w.fail("a fresh client of %s holds %d rows of %s, want %d", user, c.Rows(scope), scope, want)
		}
	}
}
