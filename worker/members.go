package worker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"unsafe"

	"github.com/jackc/pglogrepl"
)

// maxInterned bounds the scope numbers that are remembered.
const maxInterned = 200_000

// materializer writes changes: projections first, then, in a second round trip, entries for the scopes that the membership
// functions put the rows into against those projections.
type materializer struct {
	*pipeline
	interned  map[string]int64
	schema    int64
	returning map[int32]bool          // relations of which deleted keys come back: a new row may have entries of an earlier life
	raised    map[int64]pglogrepl.LSN // high position that the open transaction gave scopes
	inserted  map[int32]bool          // relations for whose rows entries were inserted plainly since this was reset
	widths    map[int32]byte          // number of scopes that the newest row of a relation had
	effects   *positions              // of a baseline
	founded   bool                    // some scope had its first effect since the last announcement
}

func newMaterializer(p *pipeline, returning map[int32]bool) *materializer {
	return &materializer{pipeline: p, interned: map[string]int64{}, returning: returning, raised: map[int64]pglogrepl.LSN{}, inserted: map[int32]bool{}, widths: map[int32]byte{}, effects: newPositions()}
}

// Result formats: of one binary column, of rowChange.read with a key before and a version after, of removals.
var (
	binaryColumn   = []int16{1}
	readFormats    = []int16{0, 1, 1, 0, 1, 1, 0}
	removedFormats = []int16{0, 1, 1}
)

// store sends head and the statements that write projections and evaluate memberships, and returns the group to await. What the rows looked like before goes to after
// where others depend on it; rows of relations in late are only stored.
func (m *materializer) store(ctx context.Context, head []call, all []*changes, late relset, after *aftermath) (uint64, error) {
	calls := head
	for _, ch := range all {
		if len(ch.rows) > 0 {
			looks, err := ch.looks(after)
			if err != nil {
				return 0, err
			}
			wait := late.has(ch.rel.bit)
			ch.images[0] = m.width(ch.rel, wait)
			c := call{statement: ch.rel.sql.store, relNo: ch.rel.no, expect: 1, params: [][]byte{ch.images}}
			if ch.rel.live() && !wait {
				c.binary, c.onRow = binaryColumn, ch.told
			}
			calls = append(append(calls, looks...), c)
		}
		if len(ch.removals) > 0 {
			params := [][]byte{ch.gone.param()}
			if len(ch.rel.impacts) > 0 {
				calls = append(calls, call{statement: ch.rel.sql.gone, relNo: ch.rel.no, expect: -1, params: params, onRow: after.changed(ch.rel, ch.removals, nil)})
			}
			// A row that came and went in one transaction was never there.
			calls = append(calls, call{statement: ch.rel.sql.remove, relNo: ch.rel.no, expect: -1,
				params: params, binary: removedFormats, onRow: ch.removed()})
		}
	}
	for _, ch := range all {
		if len(ch.rows) > 0 && ch.rel.live() && !late.has(ch.rel.bit) {
			calls = append(calls, m.evaluation(ch))
		}
	}
	return m.send(ctx, calls)
}

// begun forgets what is only known of the transaction before.
func (m *materializer) begun() {
	clear(m.inserted)
	m.raised = map[int64]pglogrepl.LSN{}
}

// width is how many scopes a new row will probably have: their numbers can then be written where they belong. One that is read again
// before it has any must not seem to have some.
func (m *materializer) width(rel *relation, readAgain bool) byte {
	if !rel.live() || readAgain {
		return 0
	}
	if n, ok := m.widths[rel.no]; ok {
		return n
	}
	return 1
}

// evaluation asks for the scopes of the stored rows.
func (m *materializer) evaluation(ch *changes) call {
	keys := &ch.keys
	if ch.reread {
		keys = &array{elem: oidText}
		for _, i := range ch.there {
			keys.text(ch.keys.buf[ch.rows[i].key.from:ch.rows[i].key.to])
		}
	}
	return call{statement: ch.rel.sql.members, relNo: ch.rel.no, expect: -1, params: [][]byte{keys.param()}, onRow: func(v [][]byte) error {
		i, ok := parseOrdinal(v[0])
		if !ok || i >= len(ch.rows) || (ch.reread && i >= len(ch.there)) {
			return errCount
		}
		s := membership{row: int32(i)}
		if ch.reread {
			s.row = ch.there[i]
		}
		var known bool
		if s.no, known = m.interned[asString(v[1])]; !known {
			s.id = string(v[1])
		}
		ch.scopes = append(ch.scopes, s)
		return nil
	}}
}

// membership is one result of an evaluation; id is set only while the scope's number is unknown.
type membership struct {
	row int32
	no  int64
	id  string
}

// told stores what _store_rows tells of the rows, in their order.
func (ch *changes) told(v [][]byte) error {
	in := reader{b: bytes.Clone(v[0])}
	for i := range ch.rows {
		ch.rows[i].told(&in, in.u8())
	}
	return in.end()
}

// Bits of what is told of a row.
const (
	toldSoft   = 1
	toldNew    = 2
	toldAbsent = 4
)

// told takes what follows the bits.
func (r *rowChange) told(in *reader, bits byte) {
	r.soft, r.blank = bits&toldSoft != 0, bits&toldNew != 0
	r.typed = in.bytes(int(in.u16()))
	r.digest = in.bytes(sha256.Size)
	r.old = nil
	for n := in.u16(); n > 0 && !in.bad; n-- {
		r.old = append(r.old, int64(in.u64()))
	}
	copy(r.tid[:], in.bytes(tidSize))
}

// read takes what statements.returning tells from a row of a query.
func (r *rowChange) read(v [][]byte) (err error) {
	r.typed, r.soft, r.digest = bytes.Clone(v[0]), len(v[2]) == 1 && v[2][0] == 't', bytes.Clone(v[3])
	copy(r.tid[:], v[4])
	r.old, err = parseInt8Array(v[1])
	return err
}

// readAgain stores what _read_rows tells of the rows, in their order.
func (ch *changes) readAgain(v [][]byte) error {
	in := reader{b: bytes.Clone(v[0])}
	for i := range ch.rows {
		bits := in.u8()
		if bits&toldAbsent != 0 {
			continue
		}
		r := &ch.rows[i]
		r.told(&in, bits)
		if version := in.bytes(len(r.version)); r.version == [16]byte{} { // it did not change itself
			copy(r.version[:], version)
		}
		ch.there = append(ch.there, int32(i))
	}
	return in.end()
}

func (ch *changes) removed() func([][]byte) error {
	find := finder(ch.removals, &ch.gone)
	return func(v [][]byte) error {
		i, err := find(v[0])
		if err != nil {
			return err
		}
		r := &ch.removals[i]
		r.typed = bytes.Clone(v[1])
		r.old, err = parseInt8Array(v[2])
		return err
	}
}

// finder finds rows by their key text: the next one, usually.
func finder(rows []rowChange, keys *array) func(key []byte) (int32, error) {
	next := 0
	var byKey map[string]int32
	return func(key []byte) (int32, error) {
		if next < len(rows) {
			if k := rows[next].key; bytes.Equal(keys.buf[k.from:k.to], key) {
				next++
				return int32(next - 1), nil
			}
		}
		if byKey == nil {
			byKey = make(map[string]int32, len(rows))
			for i := range rows {
				byKey[string(keys.buf[rows[i].key.from:rows[i].key.to])] = int32(i)
			}
		}
		i, ok := byKey[string(key)]
		if !ok {
			return 0, errCount
		}
		return i, nil
	}
}

// intern gives numbers to the scopes that have none known yet.
func (m *materializer) intern(ctx context.Context, all []*changes, high pglogrepl.LSN) error {
	ids := array{elem: oidText}
	asked := map[string]bool{}
	for _, ch := range all {
		for i := range ch.scopes {
			if id := ch.scopes[i].id; id != "" && !asked[id] {
				asked[id] = true
				ids.text([]byte(id))
			}
		}
	}
	if len(asked) > 0 {
		err := m.run(ctx, []call{{statement: stIntern, params: [][]byte{ids.param(), lsnParam(high)}, expect: int64(len(asked)), onRow: func(v [][]byte) error {
			no, err := strconv.ParseInt(asString(v[1]), 10, 64)
			m.interned[string(v[0])] = no
			if asString(v[2]) == "t" {
				m.founded, m.raised[no] = true, high
			}
			return err
		}}})
		if err != nil {
			return fmt.Errorf("numbering scopes: %w", err)
		}
	}
	for _, ch := range all {
		for _, s := range ch.scopes {
			if s.id != "" {
				s.no = m.interned[s.id]
			}
			ch.rows[s.row].now = append(ch.rows[s.row].now, s.no)
		}
		ch.scopes = nil
	}
	if len(m.interned) > maxInterned {
		clear(m.interned)
	}
	return nil
}

// parseInt8Array reads an int8[] in binary format; most rows have none.
func parseInt8Array(b []byte) ([]int64, error) {
	r := reader{b: b}
	dims, _, _ := r.u32(), r.u32(), r.u32()
	if dims == 0 && !r.bad {
		return nil, nil
	}
	n := int(r.u32())
	r.u32()
	var out []int64
	for i := 0; i < n && !r.bad; i++ {
		if r.u32() != 8 {
			return nil, errMalformed
		}
		out = append(out, int64(r.u64()))
	}
	return out, r.end()
}

// asString is the octets as a string that must not be kept.
func asString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
