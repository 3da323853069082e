package model

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"synchro/canonical"
	"synchro/protocol"
)

// mutation is one that a device authored, with the outcome that it has for ever.
type mutation struct {
	wire    canonical.Mutation
	user    string
	key     string
	op      string
	columns row
	rev     string // the state that its base version names
	outcome []byte
}

// batch is a sealed batch: its bytes never change, nor does its answer.
type batch struct {
	d          *device
	body       []byte
	generation int64
	mutations  []*mutation
	atomic     bool
	answer     []byte
	arrived    bool // the device knows the answer
}

// author draws a mutation as the device's user would make it, knowing what the device holds.
func (w *world) author(t *rapid.T, d *device) *mutation {
	m := &mutation{user: d.user, key: one(t, "key", w.keys...), op: one(t, "op", "insert", "update", "update", "delete"), columns: row{}}
	if mine := d.keys(); m.op != "insert" && len(mine) > 0 && !chance(t, "blind", 4) {
		m.key = one(t, "mine", mine...)
	}
	table, id, _ := strings.Cut(m.key, "/")
	quoted := func(s string) string { return `"` + s + `"` }
	if m.op != "delete" {
		m.columns["title"] = quoted(w.mark())
		if chance(t, "team", 3) {
			m.columns["team"] = one(t, "team is", "null", quoted(w.teams[0]), quoted(w.teams[1]))
		}
		if table == "task" {
			if m.op == "insert" || chance(t, "owner", 4) {
				m.columns["owner"] = quoted(one(t, "owner is", d.user, d.user, d.user, d.user, w.users[0], w.users[1]))
			}
			if chance(t, "shelf", 4) {
				m.columns["shelf"] = one(t, "shelf is", "null", quoted(w.shelf))
			}
			if chance(t, "n", 4) {
				m.columns["n"] = one(t, "n is", "1", "2", "-1")
			}
		}
	}
	m.wire = canonical.Mutation{ID: uuid.NewString(), TableID: d.table(table).TableID, Op: m.op, Authored: d.memory.schema,
		ClientVersion: time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"),
		Key:           canonical.Value{FieldID: d.table(table).PrimaryKeyFieldID, JSON: []byte(quoted(id))}}
	if m.op != "insert" {
		m.wire.BaseVersion, m.rev = "AAAAAAAAAAAAAAAA", "none"
		if h, known := d.find(m.key); known {
			m.wire.BaseVersion, m.rev = h.version, h.rev
		}
	}
	for _, f := range d.table(table).Fields {
		if value, ok := m.columns[f.Name]; ok {
			m.wire.Columns = append(m.wire.Columns, canonical.Value{FieldID: f.FieldID, JSON: []byte(value)})
		}
	}
	if m.op == "insert" && m.wire.Columns == nil {
		m.wire.Columns = []canonical.Value{}
	}
	return m
}

// likely draws a mutation that is applied unless something comes in between, where that is easily found.
func (w *world) likely(t *rapid.T, d *device) (m *mutation) {
	for range 6 {
		m = w.author(t, d)
		if codes, _ := w.predict(w.rows, m); slices.Contains(codes, "") {
			break
		}
	}
	return m
}

// seal makes a batch of mutations under the device's generation.
func (w *world) seal(d *device, mutations []*mutation, atomic bool) *batch {
	q := protocol.PushRequest{Batch: canonical.Batch{ClientID: d.id, Generation: *d.memory.generation, ID: uuid.NewString(),
		Schema: d.memory.schema, Atomic: atomic}}
	for _, m := range mutations {
		q.Mutations = append(q.Mutations, m.wire)
	}
	body, err := q.Encode()
	w.must(err)
	b := &batch{d: d, body: body, generation: *d.memory.generation, mutations: mutations, atomic: atomic}
	w.batches = append(w.batches, b)
	return b
}

// push sends a batch. Whatever the server answers is judged, whether it arrives or not.
func (w *world) push(b *batch, f fate, after time.Duration) {
	d := b.d
	var want []expectation
	var left rows
	if b.answer == nil {
		want, left = w.predictBatch(b)
	}
	seen, arrived, err := w.send(d.user, "push", b.body, f, after, "")
	if err == nil && arrived == nil || err != nil && f == delivered {
		w.fail("push of %s: %v", d, err)
	}
	if f == cut { // nobody knows whether it was executed: the same bytes tell
		more, r, err := w.send(d.user, "push", b.body, delivered, 0, "")
		w.must(err)
		seen, arrived = append(seen, more...), r
	}
	for _, r := range seen {
		switch {
		case r.status == http.StatusServiceUnavailable:
			w.count("push 503")
		case b.answer != nil:
			if r.status != http.StatusOK || string(r.body) != string(b.answer) {
				w.fail("%s: replay of a batch is %d\n%s\nwas\n%s", d, r.status, r.body, b.answer)
			}
			w.count("push replayed")
		case d.stale(&b.generation):
			if r.code() != "client_generation_expired" {
				w.fail("%s: push under a stale generation: %d %s", d, r.status, r.body)
			}
			w.count("push expired")
		case r.status != http.StatusOK:
			w.fail("%s: push: %d %s", d, r.status, r.body)
		default:
			b.answer = r.body
			w.executed(b, want, left)
		}
	}
	if arrived != nil && arrived.status == http.StatusOK {
		b.arrived = true
	}
}

// outcomes are the raw outcomes of an answer by mutation id.
func outcomes(w *world, body []byte) map[string][]byte {
	var p struct{ Accepted, Rejected []json.RawMessage }
	w.must(json.Unmarshal(body, &p))
	out := map[string][]byte{}
	for _, raw := range append(p.Accepted, p.Rejected...) {
		var id struct {
			ID string `json:"mutation_id"`
		}
		w.must(json.Unmarshal(raw, &id))
		if out[id.ID] != nil {
			w.fail("a mutation has two outcomes")
		}
		out[id.ID] = raw
	}
	return out
}

// executed judges the first answer of a batch: the outcomes, what they carry, and what the source is now. Without predictions
// (others wrote at the same time) the ledger and the source still must agree in the end.
func (w *world) executed(b *batch, want []expectation, left rows) {
	d := b.d
	p, err := protocol.DecodePushResponse(b.answer)
	w.must(err)
	raw := outcomes(w, b.answer)
	if len(raw) != len(b.mutations) {
		w.fail("%s: %d outcomes of %d mutations", d, len(raw), len(b.mutations))
	}
	decoded := map[string]*protocol.Outcome{}
	for _, list := range [][]protocol.Outcome{p.Accepted, p.Rejected} {
		for i := range list {
			decoded[list[i].MutationID] = &list[i]
		}
	}
	wrote := false
	for i, m := range b.mutations {
		o := decoded[m.wire.ID]
		if o == nil {
			w.fail("%s: a mutation has no outcome", d)
		}
		if m.outcome != nil {
			if string(m.outcome) != string(raw[m.wire.ID]) {
				w.fail("%s: the outcome of a mutation was\n%s\nand is\n%s", d, m.outcome, raw[m.wire.ID])
			}
			w.count("outcome again")
			continue
		}
		m.outcome = raw[m.wire.ID]
		w.count(m.op + " " + o.Status + " " + o.Code)
		wrote = wrote || o.Code == ""
		if want != nil {
			if !slices.Contains(want[i].codes, o.Code) {
				w.fail("%s: %s of %s got %q, want %q; row %v, rev %s, %s", d, m.op, m.key, o.Code, want[i].codes, w.rows[m.key], m.rev, m.columns)
			}
			w.carries(d, m, o, want[i].after)
		}
	}
	if wrote {
		d.accepted++
	}
	if want == nil {
		return
	}
	w.look(false)
	if wrote {
		d.floor = len(w.frames) - 1
	}
	w.same(left)
}

// carries checks the row of an outcome.
func (w *world) carries(d *device, m *mutation, o *protocol.Outcome, after row) {
	if o.Row.Columns == nil {
		return
	}
	_, _, h, _ := d.read(&o.Row)
	if diff := unlike(h.row, after); diff != "" {
		w.fail("%s: the outcome of %s of %s (%s) shows another row: %s", d, m.op, m.key, o.Code, diff)
	}
}

// unlike tells how rows differ; what is predicted as "?" is unknown.
func unlike(got, want row) string {
	if (got == nil) != (want == nil) {
		return fmt.Sprintf("%v, want %v", got, want)
	}
	for column, value := range want {
		if got[column] != value && (value != "?" || got[column] == "null") {
			return fmt.Sprintf("%s is %s, want %s", column, got[column], value)
		}
	}
	return ""
}

// same compares the source with what a batch should have left.
func (w *world) same(left rows) {
	if !slices.Equal(slices.Sorted(maps.Keys(left)), slices.Sorted(maps.Keys(w.rows))) {
		w.fail("after a push there are %v, want %v", slices.Sorted(maps.Keys(w.rows)), slices.Sorted(maps.Keys(left)))
	}
	for key, want := range left {
		if diff := unlike(w.rows[key], want); diff != "" {
			w.fail("after a push %s: %s", key, diff)
		}
	}
}

// audit compares the outcomes with what the table's own trigger has counted: nothing was lost and nothing was done twice.
func (w *world) audit() {
	want := map[string]int{}
	counted := map[*mutation]bool{}
	for _, b := range slices.Concat(w.batches, w.past) {
		for _, m := range b.mutations {
			if m.outcome == nil || counted[m] {
				continue
			}
			counted[m] = true
			if !strings.Contains(string(m.outcome), `"status":"applied"`) {
				continue
			}
			op, title := m.op, strings.Trim(m.columns["title"], `"`)
			if m.op == "delete" && strings.HasPrefix(m.key, "tag/") {
				op = "purge"
			}
			want[strings.Join([]string{op, m.key, m.user, title}, " ")]++
		}
	}
	got := map[string]int{}
	query, err := w.db.Query(context.Background(), "SELECT op, row, subject, title FROM app.written WHERE subject IS NOT NULL")
	w.must(err)
	for query.Next() {
		var f [4]string
		w.must(query.Scan(&f[0], &f[1], &f[2], &f[3]))
		got[strings.Join(f[:], " ")]++
	}
	w.must(query.Err())
	if !maps.Equal(got, want) {
		w.fail("pushed writes that were executed:\n%v\noutcomes say:\n%v", got, want)
	}
}
