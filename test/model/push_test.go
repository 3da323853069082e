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
	wire     canonical.Mutation
	user     string
	key      string
	op       string
	columns  row
	rev      string   // the state that its base version names
	authored *catalog // nil: one that the server never published
	did      string   // what was executed, as the table's trigger tells it
	outcome  []byte
}

// fields are the ids of the fields that it names, beside the key's.
func (m *mutation) fields() (ids []string) {
	for _, v := range m.wire.Columns {
		ids = append(ids, v.FieldID)
	}
	return ids
}

// batch is a sealed batch: its bytes never change, nor does its answer.
type batch struct {
	d          *device
	body       []byte
	generation int64
	catalog    *catalog
	mutations  []*mutation
	atomic     bool
	answer     []byte
	arrived    bool // the device knows the answer
}

// author draws a mutation as the device's user would make it, knowing what the device holds.
func (w *world) author(t *rapid.T, d *device) *mutation {
	c := d.memory.catalog
	known := slices.DeleteFunc(slices.Clone(w.keys), func(key string) bool { return c.def(key[:strings.Index(key, "/")]) == nil })
	m := &mutation{user: d.user, key: one(t, "key", known...), op: one(t, "op", "insert", "update", "update", "delete"), columns: row{}, authored: c}
	if mine := d.keys(); m.op != "insert" && len(mine) > 0 && !chance(t, "blind", 4) {
		m.key = one(t, "mine", mine...)
	}
	name, id, _ := strings.Cut(m.key, "/")
	quoted := func(s string) string { return `"` + s + `"` }
	if m.op != "delete" {
		m.columns["title"] = quoted(w.mark())
		if name != "memo" && chance(t, "team", 3) {
			m.columns["team"] = one(t, "team is", "null", quoted(w.teams[0]), quoted(w.teams[1]))
		}
		if name == "task" {
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
		if column := map[string]string{"task": "note", "tag": "color"}[name]; column != "" && c.shape[name].has(column) && chance(t, column, 3) {
			m.columns[column] = one(t, "it is", "null", quoted(w.mark()))
		}
	}
	def := c.def(name)
	m.wire = canonical.Mutation{ID: uuid.NewString(), TableID: def.TableID, Op: m.op, Authored: c.ref,
		ClientVersion: time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"),
		Key:           canonical.Value{FieldID: def.PrimaryKeyFieldID, JSON: []byte(quoted(id))}}
	if name == "memo" {
		m.wire.Key.JSON = []byte(id)
	}
	if chance(t, "never published", 40) {
		m.authored, m.wire.Authored = nil, strange
	}
	if m.op != "insert" {
		m.wire.BaseVersion, m.rev = "AAAAAAAAAAAAAAAA", "none"
		if h, known := d.find(m.key); known {
			m.wire.BaseVersion, m.rev = h.version, h.row.rev()
		}
	}
	for _, f := range def.Fields {
		if value, ok := m.columns[f.Name]; ok {
			if f.Name == "n" && f.Type == "string" {
				value = quoted(value)
			}
			m.wire.Columns = append(m.wire.Columns, canonical.Value{FieldID: f.FieldID, JSON: []byte(value)})
		}
	}
	if m.op == "insert" && m.wire.Columns == nil {
		m.wire.Columns = []canonical.Value{}
	}
	return m
}

// strange is a schema that no server has published.
var strange = protocol.SchemaRef{Version: 1, Hash: strings.Repeat("5", 64)}

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
		Schema: d.memory.schema(), Atomic: atomic}}
	for _, m := range mutations {
		q.Mutations = append(q.Mutations, m.wire)
	}
	body, err := q.Encode()
	w.must(err)
	b := &batch{d: d, body: body, generation: *d.memory.generation, catalog: d.memory.catalog, mutations: mutations, atomic: atomic}
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
		case b.catalog != w.now():
			w.mismatch(d, r, b.catalog)
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
		m.did = m.op
		if name, _, _ := strings.Cut(m.key, "/"); m.op == "delete" && b.catalog.shape[name].deleted == "" {
			m.did = "purge"
		}
		if o.Code == "schema_incompatible" {
			_, fields := w.verdict(m)
			if o.Retryable || *o.AuthoredSchema != m.wire.Authored || *o.CurrentSchema != b.catalog.ref || !slices.Equal(o.IncompatibleFieldIDs, fields) {
				w.fail("%s: %s of %s names %v of %v, want %v", d, m.op, m.key, o.IncompatibleFieldIDs, o.AuthoredSchema, fields)
			}
		}
		if want != nil {
			if !slices.Contains(want[i].codes, o.Code) {
				w.fail("%s: %s of %s got %q, want %q; row %v, rev %s, %s", d, m.op, m.key, o.Code, want[i].codes, w.rows[m.key], m.rev, m.columns)
			}
			w.carries(b, m, o, want[i].after)
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
func (w *world) carries(b *batch, m *mutation, o *protocol.Outcome, after row) {
	d := b.d
	if o.Row.Columns == nil {
		return
	}
	_, key, h, _ := d.read(b.catalog, &o.Row)
	name, _, _ := strings.Cut(key, "/")
	if diff := unlike(h.row, b.catalog.shape[name].shown(after)); diff != "" {
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
			title := strings.Trim(m.columns["title"], `"`)
			want[strings.Join([]string{m.did, m.key, m.user, title}, " ")]++
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
