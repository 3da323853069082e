package worker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// classOf runs the indexer over one transaction and returns the class of its poison, "" when it is fine.
func classOf(t *testing.T, reg *registry, s *source) string {
	t.Helper()
	err := testIndexer(reg).index(newTestBatch(), s.txn, 0, 1)
	if err == nil {
		return ""
	}
	var p *poison
	if !errors.As(err, &p) {
		t.Fatal(err)
	}
	return p.class
}

func TestFencesMustMatchTheirRowChanges(t *testing.T) {
	reg := testRegistry(2)
	note, other := reg.byNo[1], reg.byNo[2]
	unknown := testRelation(9)
	for name, c := range map[string]struct {
		build func(*source)
		want  string
	}{
		"paired": {func(s *source) { s.write(note, 'I', 1); s.write(note, 'U', 1); s.write(note, 'D', 1) }, ""},
		"statement order": {func(s *source) {
			s.row(note, 'I', 1)
			s.row(note, 'I', 2)
			s.fence(note, 'I', 1)
			s.fence(note, 'I', 2)
		}, ""},
		"other row's order": {func(s *source) {
			s.row(note, 'I', 1)
			s.row(note, 'I', 2)
			s.fence(note, 'I', 2)
			s.fence(note, 'I', 1)
		}, ""},
		"nested insert": {func(s *source) {
			s.row(note, 'I', 1)
			s.row(note, 'U', 1)
			s.fenceAt(note, 'U', 1, 9)
			s.fenceAt(note, 'I', 1, 5)
		}, ""},
		"nested reversed": {func(s *source) {
			s.row(note, 'I', 1)
			s.row(note, 'U', 1)
			s.fenceAt(note, 'U', 1, 5)
			s.fenceAt(note, 'I', 1, 9)
		}, classFence},
		"nested update": {func(s *source) {
			s.row(note, 'U', 1)
			s.row(note, 'U', 1)
			s.fence(note, 'U', 1)
			s.fence(note, 'U', 1)
		}, ""},
		"missing fence":   {func(s *source) { s.row(note, 'I', 1) }, classFence},
		"extra fence":     {func(s *source) { s.write(note, 'I', 1); s.fence(note, 'I', 1) }, classFence},
		"other operation": {func(s *source) { s.row(note, 'I', 1); s.fence(note, 'U', 1) }, classFence},
		"other key":       {func(s *source) { s.row(note, 'I', 1); s.fence(note, 'I', 2) }, classFence},
		"other relation":  {func(s *source) { s.row(note, 'I', 1); s.fence(other, 'I', 1) }, classFence},
		"crossed operations": {func(s *source) {
			s.row(note, 'I', 1)
			s.row(note, 'U', 1)
			s.fence(note, 'U', 1)
			s.fence(note, 'I', 1)
		}, classFence},
		"fence twice": {func(s *source) { s.write(note, 'U', 1); s.row(note, 'U', 1); s.ordinal--; s.fence(note, 'U', 1) }, classFence},
		"wrong table id": {func(s *source) {
			rel := *note
			rel.table[0] = 9
			s.row(note, 'I', 1)
			s.fence(&rel, 'I', 1)
		}, classFence},
		"capture kind": {func(s *source) {
			rel := *note
			rel.kind = kindDependency
			s.row(note, 'I', 1)
			s.fence(&rel, 'I', 1)
		}, classFence},
		"unregistered": {func(s *source) {
			s.add(0, msgRelation, unknown.wireMessage())
			s.row(unknown, 'I', 1)
			s.fence(unknown, 'I', 1)
		}, ""},
		"truncate": {func(s *source) {
			s.add(0, msgTruncate, append(be32(be32(nil, 1)[:4:4], 0)[:4], append([]byte{0}, be32(nil, note.oid)...)...))
		}, classTruncate},
		"garbage tuple": {func(s *source) {
			s.add(0, 'I', append(encodeChange('I', note.oid, 1, 2, 3, 4), 0))
		}, classDecode},
		"no relation": {func(s *source) { s.row(unknown, 'I', 1) }, classDecode},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSource(7, 100)
			c.build(s)
			if got := classOf(t, reg, s); got != c.want {
				t.Errorf("class %q, want %q", got, c.want)
			}
		})
	}
}

func TestForgedMessagesAreIgnoredAndCounted(t *testing.T) {
	reg := testRegistry(1)
	s := newSource(7, 100)
	s.write(reg.byNo[1], 'I', 1)
	body := encodeFence(reg.byNo[1], 'D', 99, "1", "forged")
	s.add(0, msgLogical, encodeLogical(true, 1, seal(8, typeFence, body))) // signed for another transaction
	s.add(0, msgLogical, encodeLogical(true, 1, []byte("garbage")))
	s.add(0, msgLogical, encodeLogical(true, 1, append(append([]byte{typeActivation}, make([]byte, macSize)...), be64(be64(nil, 3), 7)...)))
	b := newTestBatch()
	if err := testIndexer(reg).index(b, s.txn, 0, 1); err != nil {
		t.Fatal(err)
	}
	if b.ignored != 3 || b.activation != nil {
		t.Errorf("%d ignored, activation %v", b.ignored, b.activation)
	}
}

func TestDriftIsFoundInTheStreamsDescription(t *testing.T) {
	reg := testRegistry(1)
	rel := reg.byNo[1]
	id, body, big := wireColumn{key: true, name: "id", typ: 20}, wireColumn{name: "body", typ: 25}, wireColumn{name: "big", typ: 25}
	for name, c := range map[string]struct {
		wire []byte
		want string
	}{
		"same":            {encodeRelation(rel.oid, "app", "note1", id, body, big), ""},
		"column added":    {encodeRelation(rel.oid, "app", "note1", id, body, big, wireColumn{name: "more", typ: 25}), ""},
		"renamed":         {encodeRelation(rel.oid, "app", "other", id, body, big), classDrift},
		"moved":           {encodeRelation(rel.oid, "public", "note1", id, body, big), classDrift},
		"column dropped":  {encodeRelation(rel.oid, "app", "note1", id, big), classDrift},
		"column replaced": {encodeRelation(rel.oid, "app", "note1", id, big, body), classDrift},
		"type changed":    {encodeRelation(rel.oid, "app", "note1", id, wireColumn{name: "body", typ: 1043}, big), classDrift},
		"key moved":       {encodeRelation(rel.oid, "app", "note1", wireColumn{name: "id", typ: 20}, wireColumn{key: true, name: "body", typ: 25}, big), classDrift},
		"second key":      {encodeRelation(rel.oid, "app", "note1", id, wireColumn{key: true, name: "body", typ: 25}, big), classDrift},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSource(7, 100)
			s.add(0, msgRelation, c.wire)
			w, _ := parseRelation(c.wire)
			values := make([]any, len(w.columns))
			for i := range values {
				values[i] = 1
			}
			s.add(0, 'I', encodeChange('I', rel.oid, values...))
			s.fence(rel, 'I', 1)
			if got := classOf(t, reg, s); got != c.want {
				t.Errorf("class %q, want %q", got, c.want)
			}
		})
	}
}

// netRow is what the oracle and the planner agree on for a row.
type netRow struct {
	op, body, big, version string
	ordinal                int64
	kept                   bool
}

// TestNetChangesEqualReplayingEveryEvent compares the planner with an oracle that replays events and fences naively, over
// random transactions with nested statements, rolled-back subtransactions and unchanged TOAST values, in one and several passes.
func TestNetChangesEqualReplayingEveryEvent(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		reg := testRegistry(2)
		x := testIndexer(reg)
		s := newSource(7, 100)
		if rng.IntN(2) == 0 {
			s.spool.limit = 64 // a file from the start
		}
		want := oracle(rng, reg, s)
		if err := s.spool.sealed(); err != nil {
			t.Fatal(err)
		}
		parts := uint64(1 + rng.IntN(3))
		got := map[string]netRow{}
		for part := range parts {
			b := newTestBatch()
			if err := x.index(b, s.txn, part, parts); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			c := newChunk(x, b)
			for i := range b.rows {
				if err := c.add(&b.rows[i]); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			collect(t, c, got)
		}
		if len(got) != len(want) {
			t.Fatalf("seed %d: %d rows, want %d", seed, len(got), len(want))
		}
		for k, w := range want {
			if got[k] != w {
				t.Fatalf("seed %d: row %s is %+v, want %+v", seed, k, got[k], w)
			}
		}
		s.spool.close()
	}
}

// oracle writes a random transaction into s and returns the net change of every row.
func oracle(rng *rand.Rand, reg *registry, s *source) map[string]netRow {
	want, alive := map[string]netRow{}, map[string]bool{}
	event := int64(0)
	type pending struct {
		rel     *relation
		op      byte
		key     int
		ordinal uint64
	}
	end := func(fences []pending) { // a statement ends: its fences follow, in an order that triggers may have changed
		rng.Shuffle(len(fences), func(i, j int) { fences[i], fences[j] = fences[j], fences[i] })
		for _, f := range fences {
			s.fenceAt(f.rel, f.op, f.key, f.ordinal)
		}
	}
	for range 1 + rng.IntN(20) { // statements
		var fences []pending
		aborted := rng.IntN(5) == 0
		if aborted { // what it did is in the stream, marked as rolled back
			rel := reg.byNo[1]
			s.add(99, 'I', encodeChange('I', rel.oid, 1000+event, "x", 1, "y"))
			s.message(typeFence, encodeFenceOf(99, rel, 'I', 1<<40, fmt.Sprint(1000+event), "x")) // tagged with the top transaction
			s.aborted[99] = struct{}{}
		}
		for range 1 + rng.IntN(6) {
			rel, key := reg.byNo[int32(1+rng.IntN(2))], rng.IntN(8)
			id := fmt.Sprintf("%d/%d", rel.no, key)
			w := want[id]
			op := byte('I')
			if alive[id] {
				op = "UUD"[rng.IntN(3)]
			} else if w.op == "" && rng.IntN(2) == 0 { // it existed before the transaction
				op = "UD"[rng.IntN(2)]
			}
			body, big := fmt.Sprintf("b%d", event), any(fmt.Sprintf("B%d", event))
			switch {
			case op == 'D':
				s.row(rel, op, key)
				w.body, w.big, w.kept = "", "", false
			case op == 'U' && rng.IntN(2) == 0:
				s.row(rel, op, key, body, kept{})
				if w.op == "" || w.kept {
					w.kept = true
				}
				w.body = body
			default:
				s.row(rel, op, key, body, big)
				w.body, w.big, w.kept = body, big.(string), false
			}
			alive[id] = op != 'D'
			event++
			w.op, w.ordinal, w.version = string(op), event-1, fmt.Sprintf("v%d", 10*event)
			want[id] = w
			fences = append(fences, pending{rel, op, key, uint64(10 * event)})
			if rng.IntN(3) == 0 {
				end(fences)
				fences = nil
			}
		}
		end(fences)
	}
	return want
}

// collect reads the parameters of a chunk's calls back.
func collect(t *testing.T, c *chunk, got map[string]netRow) {
	t.Helper()
	for _, ch := range c.changes {
		id := func(keys *array, r rowChange) string {
			return fmt.Sprintf("%d/%s", ch.rel.no, keys.buf[r.key.from:r.key.to])
		}
		for _, r := range ch.removals {
			got[id(&ch.gone, r)] = netRow{version: trimVersion(string(r.version[:])), ordinal: r.ordinal}
		}
		in := reader{b: ch.images}
		in.u8()
		in.bytes(2 * int(in.u16()))
		for _, r := range ch.rows {
			kind, version := in.u8(), trimVersion(string(in.bytes(16)))
			in.u32()
			key, _ := imageValue(&in)
			n := netRow{version: trimVersion(string(r.version[:])), ordinal: r.ordinal, kept: kind == rowOld}
			n.body, _ = imageValue(&in)
			var kept bool
			n.big, kept = imageValue(&in)
			if key != string(ch.keys.buf[r.key.from:r.key.to]) || kept != n.kept {
				t.Fatalf("row %s has the image of another", id(&ch.keys, r))
			}
			if version != n.version {
				t.Fatalf("row %s is stored with another version", id(&ch.keys, r))
			}
			got[id(&ch.keys, r)] = n
		}
		if in.end() != nil {
			t.Fatal("the images do not end where they should")
		}
	}
	// The last operation is not a parameter: a kept or updated row and an inserted one are written alike.
	for i := range c.b.rows {
		r := &c.b.rows[i]
		typ, body, _ := new(window).at(&c.b.txns[0].spool, r.event)
		ch, _ := parseChange(typ, body, nil)
		id := fmt.Sprintf("%d/%s", c.x.bindings[r.bind].rel.no, ch.tuple[0].text)
		n := got[id]
		n.op = string(r.op)
		got[id] = n
	}
}

func trimVersion(v string) string {
	for len(v) > 0 && v[len(v)-1] == '_' {
		v = v[:len(v)-1]
	}
	return v
}

// imageValue reads a value of an image, or that it is kept.
func imageValue(in *reader) (text string, kept bool) {
	n := in.u32()
	if n == valueKept {
		return "", true
	}
	b := in.bytes(int(n) + 1)
	if len(b) == 0 || b[n] != 0 {
		in.bad = true
		return "", false
	}
	return string(b[:n]), false
}

func TestManyPendingChangesOfOneRow(t *testing.T) {
	reg := testRegistry(1)
	s := newSource(7, 100)
	const n = 3 * inlineOps
	for range n {
		s.row(reg.byNo[1], 'U', 1)
	}
	for range n {
		s.fence(reg.byNo[1], 'U', 1)
	}
	if got := classOf(t, reg, s); got != "" {
		t.Fatal(got)
	}
}
