package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"synchro/canonical"
	"synchro/protocol"
)

// held is one row of a device's copy.
type held struct {
	key     string // "table/key"
	version string
	row     row // by the names of its manifest
	tableID string
	columns []byte // by field ids, as it came
	digest  [canonical.HashSize]byte
}

// replica is a device's copy of one scope.
type replica struct {
	cursor   *string
	complete bool
	lost     bool            // the server may have forgotten what the cursor needs
	signed   *catalog        // the manifest of the cursor
	members  int             // the world's count for the scope when the cursor was made
	behind   bool            // the cursor is of a rebuild, and a later one was acknowledged while that went on
	rows     map[string]held // by identity
}

// memory is what a device stores. Copies of it are backups.
type memory struct {
	generation *int64
	catalog    *catalog // nil before the first connect
	setVersion int64
	scopes     map[string]*replica
}

// schema is the reference that the device presents.
func (m memory) schema() protocol.SchemaRef {
	if m.catalog == nil {
		return protocol.SchemaRef{}
	}
	return m.catalog.ref
}

func (m memory) clone() memory {
	scopes := map[string]*replica{}
	for id, s := range m.scopes {
		c := *s
		c.rows = maps.Clone(s.rows)
		scopes[id] = &c
	}
	m.scopes = scopes
	return m
}

// device is a simulated client, with what the server must know of it.
type device struct {
	w        *world
	user, id string
	memory   memory
	backup   *memory
	floor    int                 // the first frame that a terminal pull may show
	sessions map[string]*session // rebuilds under way, by scope
	ended    []*session

	// what the server answered last, whether or not it arrived
	generation int64
	expired    bool
	scopes     []string
	setVersion int64
	accepted   int // pushes that wrote something
	unseen     bool
}

func (d *device) String() string { return d.id }

// stale tells whether the server refuses the generation.
func (d *device) stale(generation *int64) bool {
	return generation == nil || *generation != d.generation || d.expired
}

// outdated tells whether the server refuses the schema.
func (d *device) outdated() bool { return d.memory.catalog != d.w.now() }

// read verifies a row of the server under a manifest and returns its place and content.
func (d *device) read(c *catalog, r *protocol.Row) (identity, key string, h held, tombstone bool) {
	w := d.w
	table := c.tables[r.Table]
	if table == nil {
		w.fail("%s got a row of a table that the manifest lacks", d)
	}
	def := table.Def()
	key = def.Name + "/" + strings.Trim(string(r.Key), `"`)
	if r.Columns == nil {
		raw, err := table.AppendIdentity(nil, r.Key)
		w.must(err)
		return string(raw), key, held{key: key, version: r.ServerVersion}, false
	}
	digester := table.NewDigester()
	sum, err := digester.Row(r.Columns, r.ServerVersion)
	w.must(err)
	w.must(digester.MatchKey(r.Key))
	if canonical.HexDigest(sum) != r.Checksum {
		w.fail("%s got a row whose digest is another: %s", d, key)
	}
	var columns map[string]json.RawMessage
	w.must(json.Unmarshal(r.Columns, &columns))
	h = held{key: key, version: r.ServerVersion, row: row{}, tableID: def.TableID, columns: bytes.Clone(r.Columns), digest: sum}
	for _, f := range def.Fields {
		h.row[f.Name] = string(columns[f.FieldID])
	}
	w.sawVersion(c, h)
	return string(digester.Identity()), key, h, digester.Tombstone()
}

// sawVersion checks that a state of a row has one content and one version wherever it is seen, and a version one state.
func (w *world) sawVersion(c *catalog, h held) {
	content := w.content(c, h.key, h.row.rev())
	if known, ok := w.contents[content]; ok && known != h.row.String() {
		w.fail("%s has another content: %s, source %s", content, h.row, known)
	}
	w.contents[content] = h.row.String()
	state := h.key + "@" + h.row.rev()
	if known, ok := w.versions[state]; ok && known != h.version {
		w.fail("%s has two versions", state)
	}
	if known, ok := w.states[h.key+"#"+h.version]; ok && known != state {
		w.fail("%s and %s have the same version", known, state)
	}
	w.versions[state], w.states[h.key+"#"+h.version] = h.version, state
}

// digest is the scope digest of what is held.
func (d *device) digest(scope string) string {
	held := d.memory.scopes[scope].rows
	hash, _ := canonical.ParseHash(d.memory.schema().Hash)
	h, err := canonical.NewScopeHash(hash, scope, uint64(len(held)))
	d.w.must(err)
	for _, identity := range slices.Sorted(maps.Keys(held)) {
		digest := held[identity].digest
		d.w.must(h.Add([]byte(identity), &digest))
	}
	sum, err := h.Sum()
	d.w.must(err)
	return canonical.HexDigest(sum)
}

// content is what is held of a scope, as a frame has it.
func (d *device) content(scope string) string {
	byKey := map[string]string{}
	for _, h := range d.memory.scopes[scope].rows {
		byKey[h.key] = h.row.String()
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		fmt.Fprintf(&b, "%s: %s\n", key, byKey[key])
	}
	return b.String()
}

// find is the row as the device has it in any scope.
func (d *device) find(key string) (found held, ok bool) {
	for _, id := range slices.Sorted(maps.Keys(d.memory.scopes)) {
		for _, h := range d.memory.scopes[id].rows {
			if h.key == key {
				return h, true
			}
		}
	}
	return held{}, false
}

// keys are the rows that the device has, in order.
func (d *device) keys() []string {
	set := map[string]bool{}
	for _, s := range d.memory.scopes {
		for _, h := range s.rows {
			set[h.key] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func (d *device) cursors() map[string]protocol.ScopeCursor {
	out := map[string]protocol.ScopeCursor{}
	for id, s := range d.memory.scopes {
		out[id] = protocol.ScopeCursor{}
		if s.complete {
			out[id] = protocol.ScopeCursor{Cursor: s.cursor}
		}
	}
	return out
}

func (d *device) assign(delta protocol.ScopeDelta, version int64) {
	for _, id := range delta.Remove {
		delete(d.memory.scopes, id)
		delete(d.sessions, id)
	}
	for _, added := range delta.Add {
		if added.Cursor != nil {
			d.w.fail("%s got a cursor for a scope that it does not hold", d)
		}
		d.memory.scopes[added.ID] = &replica{rows: map[string]held{}}
	}
	d.memory.setVersion = version
}

// reassigned judges the scope set of a served answer: it is the oracle's, and its version moves by one with it, else not at all.
func (d *device) reassigned(presented map[string]protocol.ScopeCursor, delta protocol.ScopeDelta, version int64) {
	w := d.w
	want := w.assigned(d.user)
	var got []string
	for id := range presented {
		if !slices.Contains(delta.Remove, id) {
			got = append(got, id)
		}
	}
	for _, added := range delta.Add {
		if _, known := presented[added.ID]; known {
			w.fail("%s is given a scope that it has", d)
		}
		got = append(got, added.ID)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		w.fail("%s is assigned %v, want %v", d, got, want)
	}
	step := int64(0)
	if !slices.Equal(want, d.scopes) {
		step = 1
	}
	if version != d.setVersion+step && !d.unseen {
		w.fail("%s: scope set version %d after %d, a step of %d was due", d, version, d.setVersion, step)
	}
	for _, id := range d.scopes { // what is taken away need not be kept for this client
		if s := d.memory.scopes[id]; s != nil && !slices.Contains(want, id) {
			s.lost = true
		}
		if d.sessions[id] != nil && !slices.Contains(want, id) {
			d.sessions[id].removed = true
		}
	}
	d.scopes, d.setVersion, d.unseen = want, version, false
}

// takePage applies a page of a pull.
func (d *device) takePage(q *protocol.PullRequest, body []byte) (more bool) {
	w := d.w
	p, err := protocol.DecodePullResponse(body)
	w.must(err)
	if int64(len(p.Changes)) > q.Limit {
		w.fail("%s got %d changes, the limit was %d", d, len(p.Changes), q.Limit)
	}
	for i := range p.Changes {
		change := &p.Changes[i]
		s := d.memory.scopes[change.Scope]
		if s == nil || !s.complete {
			w.fail("%s got a change in %s, which it did not ask for", d, change.Scope)
		}
		identity, key, h, tombstone := d.read(d.memory.catalog, &change.Row)
		if change.Columns != nil && tombstone != (change.Op == protocol.OpDelete) {
			w.fail("%s: %s of %s, whose deletion says otherwise", d, change.Op, key)
		}
		if change.Op == protocol.OpDelete {
			delete(s.rows, identity)
		} else {
			s.rows[identity] = h
		}
	}
	for id, cursor := range p.ScopeCursors {
		d.memory.scopes[id].behind = false
		if q.Scopes[id].Cursor == nil {
			w.fail("%s got a cursor for a scope without one", d)
		}
		d.memory.scopes[id].cursor, d.memory.scopes[id].signed = &cursor, d.memory.catalog
	}
	d.assign(p.ScopeUpdates, p.ScopeSetVersion)
	for id, s := range d.memory.scopes {
		due := q.Scopes[id].Cursor == nil || s.members != w.members[id]
		if asked := slices.Contains(p.Rebuild, id); asked != due && !(asked && s.lost) {
			w.fail("%s: rebuild of %s is %v, want %v", d, id, asked, due)
		} else if asked {
			s.complete, s.cursor, s.lost = false, nil, false
		}
	}
	if !p.HasMore {
		d.verify(p.Checksums)
	}
	return p.HasMore
}

// verify compares the copies with the terminal checksums and with the source.
func (d *device) verify(checksums map[string]string) {
	w := d.w
	if !slices.Equal(slices.Sorted(maps.Keys(checksums)), slices.Sorted(maps.Keys(d.memory.scopes))) {
		w.fail("%s: checksums of %v", d, checksums)
	}
	contents := frame{}
	for id, s := range d.memory.scopes {
		if s.complete {
			contents[id] = d.content(id)
			if d.digest(id) != checksums[id] {
				w.fail("%s: the digest of %s is another. held:\n%s\nsource:\n%s", d, id, contents[id], w.frames[len(w.frames)-1][id])
			}
		}
	}
	for k := d.floor; k < len(w.frames); k++ {
		if contents.within(w.frames[k]) {
			d.floor = k
			return
		}
	}
	if w.unsure >= d.floor {
		return // something in between may have been seen
	}
	last := w.frames[len(w.frames)-1]
	for id, text := range contents {
		if text != last[id] {
			w.t.Logf("%s holds of %s:\n%s\nthe source now:\n%s\nframe %d:\n%s", d, id, text, last[id], d.floor, w.frames[d.floor][id])
		}
	}
	w.fail("%s shows what was never the state at any commit from %d to %d", d, d.floor, len(w.frames)-1)
}

// within tells whether all scopes are as in the other frame.
func (f frame) within(other frame) bool {
	for id, text := range f {
		if other[id] != text {
			return false
		}
	}
	return true
}

// session is a rebuild under way.
type session struct {
	scope, id  string
	limit      int64
	generation int64
	accepted   int
	cursor     *string
	rows       map[string]held
	last       string
	catalog    *catalog
	members    int
	asked      [][]byte
	answered   [][]byte
	removed    bool // the scope was taken away since
	served     bool // its last page may have been answered: the server waits for it no longer
	lost       bool // and what its cursor needs may be gone
}

// void tells whether the server may refuse to go on.
func (s *session) void(d *device) bool {
	return s.dead(d.w) || s.generation != d.generation || d.expired || s.accepted != d.accepted || s.removed || !slices.Contains(d.scopes, s.scope)
}

// dead tells whether the server must not go on: the rows are of another schema or rule.
func (s *session) dead(w *world) bool { return s.catalog != w.now() || s.members != w.members[s.scope] }

// takeRecords adds a page of a rebuild; the last one ends it.
func (d *device) takeRecords(s *session, body []byte) (done bool) {
	w := d.w
	p, err := protocol.DecodeRebuildResponse(body)
	w.must(err)
	if int64(len(p.Records)) > s.limit {
		w.fail("%s got %d records, the limit was %d", d, len(p.Records), s.limit)
	}
	for i := range p.Records {
		identity, key, h, tombstone := d.read(d.memory.catalog, &p.Records[i])
		if tombstone || bytes.Compare([]byte(identity), []byte(s.last)) <= 0 && s.last != "" {
			w.fail("%s: snapshot of %s: %s is deleted or out of order", d, s.scope, key)
		}
		s.rows[identity], s.last = h, identity
	}
	if s.cursor = p.Cursor; p.HasMore {
		return false
	}
	was := d.memory.scopes[s.scope]
	d.memory.scopes[s.scope] = &replica{cursor: &p.FinalCursor, complete: true, signed: s.catalog, members: s.members, rows: s.rows, behind: was != nil && was.complete, lost: s.lost}
	if d.digest(s.scope) != p.Checksum {
		w.fail("%s: the digest of the snapshot of %s is another", d, s.scope)
	}
	return true
}
