package worker

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
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
	returning map[int32]bool // relations of which deleted keys come back: a new row may have entries of an earlier life
	founded   bool           // some scope had its first effect since the last announcement
}

func newMaterializer(p *pipeline, returning map[int32]bool) *materializer {
	return &materializer{pipeline: p, interned: map[string]int64{}, returning: returning}
}

// Result formats of what a storing statement tells, and of removals.
var (
	toldFormats    = []int16{0, 1, 1, 0, 1}
	readFormats    = []int16{0, 1, 1, 0, 1, 0}
	removedFormats = []int16{0, 1, 1}
)

// store sends head and the statements that write projections and evaluate memberships. What the rows looked like before goes to after
// where others depend on it; rows of relations in late are only stored.
func (m *materializer) store(ctx context.Context, head []call, all []*changes, late relset, after *aftermath) error {
	calls := head
	for _, ch := range all {
		for _, g := range ch.stores {
			c := call{statement: g.stmt, relNo: ch.rel.no, expect: int64(len(g.rows))}
			for i := range g.arrays {
				c.params = append(c.params, g.arrays[i].param())
			}
			if st := ch.rel.sql.images[g.stmt]; st != nil {
				calls = append(calls, call{statement: st, relNo: ch.rel.no, expect: -1, params: c.params, onRow: after.changed(ch.rel, ch.rows, g.rows)})
			}
			if ch.rel.kind == kindSynced && !late.has(ch.rel.bit) {
				c.binary, c.onRow = toldFormats, ch.told(g.rows)
			}
			calls = append(calls, c)
		}
		if len(ch.removals) > 0 {
			params := [][]byte{ch.gone.param()}
			if st := ch.rel.sql.images[ch.rel.sql.remove]; st != nil {
				calls = append(calls, call{statement: st, relNo: ch.rel.no, expect: -1, params: params, onRow: after.changed(ch.rel, ch.removals, nil)})
			}
			// A row that came and went in one transaction was never there.
			calls = append(calls, call{statement: ch.rel.sql.remove, relNo: ch.rel.no, expect: -1,
				params: params, binary: removedFormats, onRow: ch.removed()})
		}
	}
	for _, ch := range all {
		if len(ch.rows) > 0 && ch.rel.kind == kindSynced && !late.has(ch.rel.bit) {
			calls = append(calls, m.evaluation(ch))
		}
	}
	if len(calls) == 0 {
		return nil
	}
	return m.run(ctx, calls)
}

// evaluation asks for the scopes of the stored rows.
func (m *materializer) evaluation(ch *changes) call {
	st := ch.rel.sql.members
	if ch.reread {
		st = ch.rel.sql.present
	}
	return call{statement: st, relNo: ch.rel.no, expect: -1, params: [][]byte{ch.keys.param()}, onRow: func(v [][]byte) error {
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

// told stores what a statement tells of rows. They come in the order of the parameters, or else are found by key.
func (ch *changes) told(rows []int32) func([][]byte) error {
	find := ch.finder(ch.rows, rows, &ch.keys)
	return func(v [][]byte) error {
		i, err := find(v[0])
		if err != nil {
			return err
		}
		r := &ch.rows[i]
		if ch.reread {
			ch.there = append(ch.there, i)
		}
		r.typed, r.soft, r.digest = bytes.Clone(v[1]), len(v[3]) == 1 && v[3][0] == 't', bytes.Clone(v[4])
		if len(v) > 5 && r.impacted {
			copy(r.version[:], v[5])
		}
		r.old, err = parseInt8Array(v[2])
		return err
	}
}

func (ch *changes) removed() func([][]byte) error {
	find := ch.finder(ch.removals, nil, &ch.gone)
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

// finder finds rows by their key text: the next one, usually. order nil: all rows in their order.
func (ch *changes) finder(rows []rowChange, order []int32, keys *array) func(key []byte) (int32, error) {
	next := 0
	var byKey map[string]int32
	at := func(i int) int32 {
		if order == nil {
			return int32(i)
		}
		return order[i]
	}
	n := len(rows)
	if order != nil {
		n = len(order)
	}
	return func(key []byte) (int32, error) {
		if next < n {
			i := at(next)
			if k := rows[i].key; bytes.Equal(keys.buf[k.from:k.to], key) {
				next++
				return i, nil
			}
		}
		if byKey == nil {
			byKey = make(map[string]int32, n)
			for i := range n {
				k := rows[at(i)].key
				byKey[string(keys.buf[k.from:k.to])] = at(i)
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
			m.founded = m.founded || asString(v[2]) == "t"
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

// entryArrays are the parameters of stEntries and stLeave.
type entryArrays struct {
	scope, lsn, event, rel, effect, state, key, version, digest array
}

func newEntryArrays() *entryArrays {
	return &entryArrays{
		scope: array{elem: oidInt8}, lsn: array{elem: oidPgLSN}, event: array{elem: oidInt8}, rel: array{elem: oidInt4},
		effect: array{elem: oidInt4}, state: array{elem: oidChar}, key: array{elem: oidBytea}, version: array{elem: oidText},
		digest: array{elem: oidBytea},
	}
}

func (e *entryArrays) add(scope int64, rel *relation, r *rowChange, effect int32, state byte) {
	e.scope.u64(uint64(scope))
	e.lsn.u64(uint64(r.lsn))
	e.event.u64(uint64(r.ordinal))
	e.rel.u32(uint32(rel.no))
	e.effect.u32(uint32(effect))
	e.key.text(r.typed)
	e.version.text(r.version[:])
	if state != entryLeft {
		e.state.char(state)
		e.digest.text(r.digest)
	}
}

// entry is one row in one scope.
type entry struct {
	scope  int64
	rel    *relation
	row    *rowChange
	effect int32
	state  byte
}

// compare orders entries as their key does. Written so, those of a scope lie side by side, in the table as in its indexes,
// for the writer and for all who will read the scope.
func (e entry) compare(o entry) int {
	return cmp.Or(cmp.Compare(e.scope, o.scope), cmp.Compare(e.rel.no, o.rel.no), bytes.Compare(e.row.typed, o.row.typed))
}

// States of an entry.
const (
	entryLive = 'l'
	entrySoft = 's' // soft-deleted at the source: still this scope's row
	entryLeft = 'x'
)

// numbering says where the effect ordinals of entries come from.
type numbering int

const (
	numberNone     numbering = iota // one event, one row: they are all zero
	numberNow                       // events have impacted rows, and all their effects are here
	numberLater                     // the same, but not all are here: stNumber follows
	numberBaseline                  // the rows have no entries yet and share one position
)

// entries returns the calls that bring entries up to date, and the scopes that they touch.
func (m *materializer) entries(all []*changes, high pglogrepl.LSN, numbers numbering) (calls []call, touched []int64) {
	set, fresh, leave := newEntryArrays(), newEntryArrays(), newEntryArrays()
	var entries []entry
	effects := map[int64]int32{} // of a baseline
	baseline := numbers == numberBaseline
	seen := map[int64]struct{}{}
	touch := func(scope int64) {
		if _, ok := seen[scope]; !ok {
			seen[scope] = struct{}{}
			touched = append(touched, scope)
		}
	}
	for _, ch := range all {
		keys, lists := array{elem: oidText}, array{elem: oidText}
		var list []byte
		for i := range ch.rows {
			r := &ch.rows[i]
			slices.Sort(r.now)
			if r.typed == nil || (r.impacted && slices.Equal(r.old, r.now)) {
				continue
			}
			state := byte(entryLive)
			if r.soft {
				state = entrySoft
			}
			for _, scope := range r.now {
				if r.impacted {
					if _, had := slices.BinarySearch(r.old, scope); had {
						continue
					}
				}
				effect := int32(0)
				if baseline {
					effect = effects[scope]
					effects[scope]++
				}
				entries = append(entries, entry{scope: scope, rel: ch.rel, row: r, effect: effect, state: state})
				touch(scope)
			}
			if slices.Equal(r.old, r.now) {
				continue
			}
			for _, scope := range r.old {
				if _, still := slices.BinarySearch(r.now, scope); !still {
					entries = append(entries, entry{scope: scope, rel: ch.rel, row: r, state: entryLeft})
					touch(scope)
				}
			}
			keys.text(ch.keys.buf[r.key.from:r.key.to])
			list = appendList(list[:0], r.now)
			lists.text(list)
		}
		if keys.n > 0 {
			calls = append(calls, call{statement: ch.rel.sql.scopes, relNo: ch.rel.no, expect: int64(keys.n), params: [][]byte{keys.param(), lists.param()}})
		}
		for i := range ch.removals {
			r := &ch.removals[i]
			for _, scope := range r.old {
				entries = append(entries, entry{scope: scope, rel: ch.rel, row: r, state: entryLeft})
				touch(scope)
			}
		}
	}
	if numbers == numberNow {
		number(entries)
	}
	slices.SortFunc(entries, entry.compare)
	for i := range entries {
		e, to := &entries[i], set
		switch {
		case e.state == entryLeft:
			to = leave
		case e.row.fresh && !m.returning[e.rel.no]:
			to = fresh
		}
		to.add(e.scope, e.rel, e.row, e.effect, e.state)
	}
	schema := u64Param(uint64(m.schema))
	write := func(st *statement, e *entryArrays) {
		if e.scope.n > 0 {
			calls = append(calls, call{statement: st, expect: int64(e.scope.n), params: [][]byte{
				e.scope.param(), e.lsn.param(), e.event.param(), e.rel.param(), e.effect.param(), e.state.param(), e.key.param(),
				e.version.param(), e.digest.param(), schema}})
		}
	}
	if baseline {
		write(stBaseline, set)
	} else {
		write(stEntries, set)
	}
	write(stFresh, fresh)
	if leave.scope.n > 0 {
		calls = append(calls, call{statement: stLeave, expect: int64(leave.scope.n), params: [][]byte{
			leave.scope.param(), leave.lsn.param(), leave.event.param(), leave.rel.param(), leave.effect.param(), leave.key.param(),
			leave.version.param(), schema}})
	}
	if len(touched) > 0 {
		scopes := array{elem: oidInt8}
		for _, s := range touched {
			scopes.u64(uint64(s))
		}
		calls = append(calls, call{statement: stTouch, expect: int64(len(touched)), params: [][]byte{scopes.param(), lsnParam(high)}})
	}
	return calls, touched
}

// number gives the effects of one event in one scope their ordinals.
func number(entries []entry) {
	event := func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.scope, b.scope), cmp.Compare(a.row.lsn, b.row.lsn), cmp.Compare(a.row.ordinal, b.row.ordinal))
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(event(a, b), bytes.Compare(a.rel.table[:], b.rel.table[:]), bytes.Compare(a.row.typed, b.row.typed))
	})
	for i := 1; i < len(entries); i++ {
		if event(entries[i-1], entries[i]) == 0 {
			entries[i].effect = entries[i-1].effect + 1
		}
	}
}

// appendList writes an array literal of int8.
func appendList(b []byte, list []int64) []byte {
	b = append(b, '{')
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return append(b, '}')
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
