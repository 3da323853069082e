package model

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"pgregory.net/rapid"
)

// runs numbers the runs of this process: each has users, scopes and clients of its own.
var runs atomic.Int64

// world is one run: the stack, the devices, and what the oracle knows.
type world struct {
	*stack
	t     *rapid.T
	run   string
	users []string
	teams []string
	shelf string
	keys  []string // all rows that may ever be, "table/key"
	marks int

	rows     rows
	gone     map[string]bool // rows that were deleted for good and are not back
	frames   []frame
	unsure   int // the last frame before which the source may have had unknown states
	grants   map[string]map[string]bool
	revoked  map[string]bool
	teamsOf  map[string]map[string]bool
	devices  []*device
	batches  []*batch
	past     []*batch          // of clients that were retired
	made     int               // devices
	settled  int               // the last frame that was known to be materialized
	contents map[string]string // state of a row -> content
	versions map[string]string // state of a row -> version
	states   map[string]string // version of a row -> state
	lineage  []*catalog
	members  map[string]int  // how often the rows of a scope were made others than their effects tell
	ever     map[string]bool // "table scope" that held rows once
	counts   map[string]int
	steps    int
	reason   string // why the run failed
	notes    []string
	noting   sync.Mutex
	calm     bool   // no process ends, and nothing is waited for long
	focus    string // actions that come more often
}

// fail ends the run.
func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.reason = fmt.Sprintf(format, args...)
	if !w.calm { // of a failure that does not come again there is nothing but this
		fmt.Printf("%s\n%s\n", strings.Join(w.notes[max(0, len(w.notes)-80):], "\n"), w.reason)
	}
	w.t.Fatal(w.reason)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.fail("%v", err)
	}
}

func (w *world) count(what string) { w.counts[what]++ }

// note keeps what happens, for the case that the run fails.
func (w *world) note(format string, args ...any) {
	w.noting.Lock()
	defer w.noting.Unlock()
	w.notes = append(w.notes, fmt.Sprintf(format, args...))
}

// newWorld empties the tables and makes users and devices.
func newWorld(t *rapid.T, s *stack) *world {
	w := &world{stack: s, t: t, run: fmt.Sprintf("r%d", runs.Add(1)), unsure: -1, grants: map[string]map[string]bool{}, revoked: map[string]bool{},
		teamsOf: map[string]map[string]bool{}, members: map[string]int{}, ever: map[string]bool{}, contents: map[string]string{}, versions: map[string]string{}, states: map[string]string{},
		counts: map[string]int{}}
	w.must(s.ready())
	w.must(w.exec("DELETE FROM app.task; DELETE FROM app.tag; DELETE FROM app.memo; DELETE FROM app.member; DELETE FROM app.written"))
	w.must(s.activation())
	w.must(s.begin())
	var body []byte
	w.must(s.db.QueryRow(context.Background(), "SELECT m.body FROM synchro.manifest m JOIN synchro.progress p USING (schema_version)").Scan(&body))
	first, err := newCatalog(body, firstShape)
	w.must(err)
	w.lineage = []*catalog{first}
	w.shelf = w.run + "-shelf"
	w.must(w.exec(`SELECT synchro.synchro_unregister_shared_scope(scope_id) FROM synchro.shared_scope`))
	w.must(w.exec("SELECT synchro.synchro_register_shared_scope($1)", "shelf:"+w.shelf))
	for _, name := range []string{"ada", "bob", "cyd"} {
		user := w.run + "-" + name
		w.users = append(w.users, user)
		w.grants[user], w.teamsOf[user] = map[string]bool{}, map[string]bool{}
	}
	w.teams = []string{w.run + "-red", w.run + "-blue"}
	n := runs.Load()
	for i := range 9 { // their order is the same in every run: a seed must do the same again
		w.keys = append(w.keys, fmt.Sprintf("task/%08d-0000-4000-8000-%012d", i, n))
	}
	for i := range 5 {
		w.keys = append(w.keys, fmt.Sprintf("tag/%d", n*100+int64(i)))
	}
	for i := range 3 {
		w.keys = append(w.keys, fmt.Sprintf("memo/%d", n*100+int64(i)))
	}
	for _, user := range []string{w.users[0], w.users[0], w.users[1], w.users[2]} {
		w.devices = append(w.devices, w.newDevice(user))
	}
	w.look(false)
	return w
}

// newDevice is one that the server has not met.
func (w *world) newDevice(user string) *device {
	w.made++
	return &device{w: w, user: user, id: fmt.Sprintf("%s-%d", user, w.made), sessions: map[string]*session{}, memory: memory{scopes: map[string]*replica{}},
		floor: w.settled}
}

// materialized waits until all that is committed can be pulled: no terminal pull may show less from then on.
func (w *world) materialized() {
	w.t.Helper()
	var lsn string
	w.must(w.db.QueryRow(context.Background(), "SELECT synchro._emit_marker()::text").Scan(&lsn))
	for end := time.Now().Add(w.patience()); ; {
		var done, blocked bool
		w.must(w.db.QueryRow(context.Background(), "SELECT synchro._await_progress($1::text::pg_lsn, 500), EXISTS (SELECT FROM synchro.quarantine WHERE resolved_at IS NULL)", lsn).
			Scan(&done, &blocked))
		if done {
			break
		}
		if blocked || time.Now().After(end) {
			w.fail("not materialized; health: %s", w.Health(context.Background()))
		}
	}
	w.settled = len(w.frames) - 1
	for _, d := range w.devices {
		d.floor = w.settled
	}
}

// patience is how long something that must happen may take.
func (w *world) patience() time.Duration {
	if w.calm {
		return settle / 6
	}
	return settle
}

// mark is a title that no other write has.
func (w *world) mark() string {
	w.marks++
	return fmt.Sprintf("m%d", w.marks)
}

// uniform draws a number below n. Rapid's own integers are mostly small ones, which is not what chooses among equals.
func uniform(t *rapid.T, label string, n int) int {
	return rapid.Custom(func(t *rapid.T) int {
		v := 0
		for range 12 {
			v <<= 1
			if rapid.Bool().Draw(t, "bit") {
				v++
			}
		}
		return v % n
	}).Draw(t, label)
}

// one draws one of the values.
func one[T any](t *rapid.T, label string, values ...T) T {
	return values[uniform(t, label, len(values))]
}

// chance is true once in n times.
func chance(t *rapid.T, label string, n int) bool { return uniform(t, label, n) == n-1 }
