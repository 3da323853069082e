package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
)

// FuzzStream feeds the receiver and the indexer arbitrary messages: they answer with errors, never with a panic.
func FuzzStream(f *testing.F) {
	reg := testRegistry(1)
	rel := reg.byNo[1]
	begin := append([]byte{msgBegin}, be32(be64(be64(nil, 100), 0), 7)...)
	commit := append([]byte{msgCommit, 0}, be64(be64(be64(nil, 100), 108), 0)...)
	relation := append([]byte{msgRelation}, rel.wireMessage()...)
	insert := append([]byte{msgInsert}, encodeChange('I', rel.oid, 1, "a", 2, "b")...)
	update := append([]byte{msgUpdate}, encodeChange('U', rel.oid, 1, "a", nil, kept{})...)
	remove := append([]byte{msgDelete}, encodeChange('D', rel.oid, 1, nil, nil, nil)...)
	fence := append([]byte{msgLogical}, encodeLogical(true, 50, seal(7, typeFence, encodeFence(rel, 'I', 1, "1", "v")))...)
	marker := append([]byte{msgLogical}, encodeLogical(false, 50, seal(0, typeMarker, be64(nil, 1)))...)
	compaction := append([]byte{msgLogical}, encodeLogical(false, 60, seal(0, typeCompaction, be32(be64(be64(nil, 1), 2), 3)))...)
	for _, m := range [][]byte{begin, commit, relation, insert, update, remove, fence, marker, compaction} {
		f.Add(join(begin, relation, m, insert, fence, commit))
		f.Add(m)
	}
	f.Add(join([]byte{msgStreamStart, 0, 0, 0, 7, 1}, withXID(7, relation), withXID(9, insert), []byte{msgStreamStop},
		append([]byte{msgStreamAbort}, be32(be32(nil, 7), 9)...),
		append(append([]byte{msgStreamCommit}, be32(nil, 7)...), commit[1:]...)))

	f.Fuzz(func(t *testing.T, data []byte) {
		q := newQueue(1 << 20)
		r := &receiver{queue: q, auth: authenticator{ring: fixedKeys(testKey)}, streams: map[uint32]*txn{}, limit: 1 << 16, idle: func(pglogrepl.LSN) {}, reply: func() {}, compact: func(compactionRequest) {}}
		defer r.drop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, m := range split(data) {
			if len(m) == 0 {
				continue
			}
			if err := r.message(ctx, m); err != nil {
				break
			}
		}
		x := testIndexer(reg)
		for _, it := range q.items {
			if it.txn == nil {
				continue
			}
			b := newTestBatch()
			var p *poison
			if err := x.index(b, it.txn, 0, 1); err == nil {
				c := newChunk(x, b)
				for i := range b.rows {
					if err := c.add(&b.rows[i]); err != nil && !errors.Is(err, errMalformed) {
						t.Fatal(err)
					}
				}
			} else if !errors.As(err, &p) {
				t.Fatal(err)
			}
			it.txn.spool.close()
		}
	})
}

func withXID(xid uint32, m []byte) []byte {
	return append(append([]byte{m[0]}, be32(nil, xid)...), m[1:]...)
}

// join and split make one fuzz input of several messages.
func join(messages ...[]byte) (out []byte) {
	for _, m := range messages {
		out = append(be16(out, len(m)), m...)
	}
	return out
}

func split(data []byte) (out [][]byte) {
	r := reader{b: data}
	for len(r.b) > 0 && !r.bad {
		out = append(out, r.bytes(int(r.u16())))
	}
	return out
}

// receive runs messages through a receiver and returns what it hands on.
func receive(t *testing.T, messages ...[]byte) []item {
	t.Helper()
	q := newQueue(1 << 20)
	r := &receiver{queue: q, skip: 50, auth: authenticator{ring: fixedKeys(testKey)}, streams: map[uint32]*txn{}, limit: 1 << 16, idle: func(pglogrepl.LSN) {}, reply: func() {}}
	for _, m := range messages {
		if err := r.message(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	return q.items
}

func commitOf(lsn uint64) [][]byte {
	return [][]byte{append([]byte{msgBegin}, be32(be64(be64(nil, lsn), 0), 7)...), append([]byte{msgCommit, 0}, be64(be64(be64(nil, lsn), lsn+8), 0)...)}
}

func TestOriginsTypesAndForeignMessagesAreSkipped(t *testing.T) {
	bc := commitOf(100)
	foreign := append([]byte{msgLogical, 1}, be64(nil, 5)...)
	foreign = append(foreign, "other\x00\x00\x00\x00\x01x"...)
	items := receive(t, bc[0], append([]byte{msgOrigin}, "12345678origin\x00"...), []byte{msgType, 0, 0, 0, 1}, foreign, bc[1])
	if len(items) != 1 || items[0].txn.spool.size != 0 {
		t.Errorf("%d items", len(items))
	}
}

func TestTransactionsBelowProgressKeepOnlyTheirRelations(t *testing.T) {
	rel := testRelation(1)
	relation := append([]byte{msgRelation}, rel.wireMessage()...)
	insert := append([]byte{msgInsert}, encodeChange('I', rel.oid, 1, "a", 2, "b")...)
	for lsn, want := range map[uint64]int{49: 1, 50: 2} { // 50 is the end of what is done: equality is the next one
		bc := commitOf(lsn)
		items := receive(t, bc[0], relation, insert, bc[1])
		n := 0
		_ = items[0].txn.spool.each(func(int64, uint32, byte, []byte) error { n++; return nil })
		if n != want {
			t.Errorf("commit at %d: %d records, want %d", lsn, n, want)
		}
	}
}

func TestStreamedTransactionsInterleave(t *testing.T) {
	rel := testRelation(1)
	insert := func(key int) []byte {
		return append([]byte{msgInsert}, encodeChange('I', rel.oid, key, "a", 2, "b")...)
	}
	start := func(xid uint32) []byte { return append(append([]byte{msgStreamStart}, be32(nil, xid)...), 1) }
	end := func(xid uint32, lsn uint64) []byte {
		return append(append([]byte{msgStreamCommit}, be32(nil, xid)...), commitOf(lsn)[1][1:]...)
	}
	stop := []byte{msgStreamStop}
	bc := commitOf(100)
	items := receive(t,
		start(7), withXID(7, insert(1)), withXID(8, insert(2)), stop,
		start(20), withXID(20, insert(3)), stop,
		bc[0], insert(4), bc[1],
		start(7), withXID(7, insert(5)), stop,
		append([]byte{msgStreamAbort}, be32(be32(nil, 7), 8)...),
		append([]byte{msgStreamAbort}, be32(be32(nil, 20), 20)...),
		end(7, 200))
	if len(items) != 2 || items[0].txn.events != 1 || items[1].txn.xid != 7 || items[1].txn.events != 3 {
		t.Fatalf("items: %+v", items)
	}
	if _, aborted := items[1].txn.aborted[8]; !aborted || items[1].txn.commitLSN != 200 {
		t.Errorf("subtransaction 8 is not dropped, or the commit is at %s", items[1].txn.commitLSN)
	}
}

func TestMarkersKeepTheirPlace(t *testing.T) {
	bc := commitOf(100)
	marker := append([]byte{msgLogical}, encodeLogical(false, 120, seal(0, typeMarker, be64(nil, 1)))...)
	forged := append([]byte{msgLogical}, encodeLogical(false, 110, append([]byte{typeMarker}, make([]byte, macSize+8)...))...)
	items := receive(t, forged, bc[0], bc[1], forged, marker)
	if len(items) != 2 || items[0].txn.ignored != 1 || items[1].marker != 120 {
		t.Errorf("items: %+v", items)
	}
}

// FuzzMessages feeds the bodies of authentic messages, which the key holder alone makes, to their readers: what is not exact is refused, and
// of a fence every octet is read once.
func FuzzMessages(f *testing.F) {
	rel := testRelation(1)
	fence := encodeFence(rel, 'U', 3, "1", "v")
	generated := append(fence[:len(fence)-2:len(fence)-2], 0, 2, 0, 5, 1, 0, 0, 0, 1, 'x', 0, 6, 0, 0, 0, 0, 0)
	for _, body := range [][]byte{fence, generated, be64(be64(nil, 1), 2), be32(nil, 1), be32(be64(be64(nil, 1), 2), 3), nil} {
		f.Add(body)
	}
	dependency := testRelation(2)
	dependency.kind = kindDependency
	f.Add(encodeFence(dependency, 'D', 3, "1", "v"))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, err := range []error{second(parsePair(body)), only(parseCompaction(body, 1))} {
			if err != nil && !errors.Is(err, errMalformed) {
				t.Fatal(err)
			}
		}
		fence, err := parseFence(body)
		if err != nil {
			if !errors.Is(err, errMalformed) {
				t.Fatal(err)
			}
			return
		}
		size := 2 + 4 + 16 + 8 + 16 + 4 + len(fence.version) + 2 + len(fence.qualified) + 4 + len(fence.key) + 2
		if fence.kind == kindSynced {
			size += 16
		}
		fence.eachGenerated(func(_ int16, c column) {
			size += 2 + 1 + 4 + len(c.text)
			if c.kind == colNull && c.text != nil {
				t.Fatalf("column %+v", c)
			}
		})
		if size > len(body) {
			t.Fatalf("%d octets were read of %d", size, len(body))
		}
	})
}

func second[A, B any](_ A, _ B, err error) error { return err }
func only[A any](_ A, err error) error           { return err }
