package worker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"github.com/jackc/pglogrepl"
)

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
	if e.scope != o.scope {
		return cmp.Compare(e.scope, o.scope)
	}
	if e.rel != o.rel {
		return cmp.Compare(e.rel.no, o.rel.no)
	}
	return bytes.Compare(e.row.typed, o.row.typed)
}

// append adds the entry as _store_entries takes it.
func (e *entry) append(b []byte) []byte {
	be := binary.BigEndian
	b = be.AppendUint64(b, uint64(e.scope))
	b = be.AppendUint64(b, uint64(e.row.lsn))
	b = be.AppendUint64(b, uint64(e.row.ordinal))
	b = be.AppendUint32(b, uint32(e.rel.no))
	b = be.AppendUint32(b, uint32(e.effect))
	b = be.AppendUint16(append(b, e.state), uint16(len(e.row.typed)))
	b = append(append(b, e.row.typed...), e.row.version[:]...)
	if e.state != entryLeft {
		b = append(b, e.row.digest...)
	}
	return b
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
	numberBaseline                  // the rows have no entries yet, share one position and come in many calls
	numberPosition                  // the same of rows that may have entries
)

// entriesAhead is how many entries are worth a round trip of their own: the database writes them while the next ones are made.
const entriesAhead = 5000

// entries returns the calls that bring entries up to date, and the scopes that they touch. When there are many it has sent some already.
func (m *materializer) entries(ctx context.Context, all []*changes, high pglogrepl.LSN, numbers numbering) (calls []call, touched []int64, err error) {
	var entries []entry
	baseline, shared := numbers == numberBaseline, numbers >= numberBaseline
	seen := map[int64]struct{}{}
	touch := func(scope int64) {
		if _, ok := seen[scope]; !ok {
			seen[scope] = struct{}{}
			touched = append(touched, scope)
		}
	}
	ahead := func(n int) (err error) {
		if n >= entriesAhead && len(calls) > 0 {
			_, err = m.send(ctx, calls)
			calls = nil
		}
		return err
	}
	for _, ch := range all {
		var lists []byte
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
				if shared {
					effect = m.effects.take(scope)
				}
				entries = append(entries, entry{scope: scope, rel: ch.rel, row: r, effect: effect, state: state})
				touch(scope)
			}
			if slices.Equal(r.old, r.now) && !r.blank {
				continue
			}
			for _, scope := range r.old {
				if _, still := slices.BinarySearch(r.now, scope); !still {
					effect := int32(0)
					if shared {
						effect = m.effects.take(scope)
					}
					entries = append(entries, entry{scope: scope, rel: ch.rel, row: r, effect: effect, state: entryLeft})
					touch(scope)
				}
			}
			lists = appendScopes(lists, r)
			m.widths[ch.rel.no] = byte(min(len(r.now), 255))
		}
		if len(lists) > 0 {
			calls = append(calls, call{statement: ch.rel.sql.scopes, relNo: ch.rel.no, expect: 1, params: [][]byte{lists}})
		}
		for i := range ch.removals {
			r := &ch.removals[i]
			for _, scope := range r.old {
				entries = append(entries, entry{scope: scope, rel: ch.rel, row: r, state: entryLeft})
				touch(scope)
			}
		}
		if err := ahead(len(entries)); err != nil {
			return nil, nil, err
		}
	}
	slices.SortFunc(entries, entry.compare)
	if numbers == numberNow {
		number(entries)
	}
	for len(entries) > 0 {
		n := min(len(entries), entriesAhead)
		calls = m.writing(calls, entries[:n], baseline)
		entries = entries[n:]
		if err := ahead(len(entries)); err != nil {
			return nil, nil, err
		}
	}
	if len(touched) > 0 {
		scopes := array{elem: oidInt8}
		for _, s := range touched {
			if m.raised[s] < high { // once a transaction: thousands of scopes may occur in every piece of it
				m.raised[s] = high
				scopes.u64(uint64(s))
			}
		}
		if scopes.n > 0 {
			calls = append(calls, call{statement: stTouch, expect: int64(scopes.n), params: [][]byte{scopes.param(), lsnParam(high)}})
		}
	}
	return calls, touched, nil
}

// writing adds the calls that write entries.
func (m *materializer) writing(calls []call, entries []entry, baseline bool) []call {
	var set, fresh []byte
	for i := range entries {
		e := &entries[i]
		if e.state != entryLeft && (baseline || (e.row.fresh && !m.returning[e.rel.no])) {
			fresh = e.append(fresh)
			m.inserted[e.rel.no] = true
		} else {
			set = e.append(set)
		}
	}
	schema := u64Param(uint64(m.schema))
	if len(set) > 0 {
		calls = append(calls, call{statement: stEntries, expect: 1, params: [][]byte{schema, set}})
	}
	if len(fresh) > 0 {
		calls = append(calls, call{statement: stNew, expect: 1, params: [][]byte{schema, fresh}})
	}
	return calls
}

// number gives the effects of one event in one scope their ordinals, in the order of table ids and keys. The entries are in the
// order of compare.
func number(entries []entry) {
	type event struct {
		lsn     pglogrepl.LSN
		ordinal int64
	}
	next := map[event]int32{}
	for len(entries) > 0 {
		scope, runs := entries[0].scope, [][]entry(nil) // of one relation each
		for len(entries) > 0 && entries[0].scope == scope {
			n := 1
			for n < len(entries) && entries[n].scope == scope && entries[n].rel == entries[0].rel {
				n++
			}
			runs, entries = append(runs, entries[:n]), entries[n:]
		}
		slices.SortFunc(runs, func(a, b []entry) int { return bytes.Compare(a[0].rel.table[:], b[0].rel.table[:]) })
		clear(next)
		for _, run := range runs {
			for i := range run {
				at := event{run[i].row.lsn, run[i].row.ordinal}
				run[i].effect = next[at]
				next[at]++
			}
		}
	}
}

// appendScopes adds a row's scopes as _store_scopes takes them.
func appendScopes(b []byte, r *rowChange) []byte {
	b = binary.BigEndian.AppendUint16(append(b, r.tid[:]...), uint16(len(r.now)))
	for _, scope := range r.now {
		b = binary.BigEndian.AppendUint64(b, uint64(scope))
	}
	return b
}
