package worker

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"

	"github.com/jackc/pglogrepl"
)

// touchedMemory is what one row takes in memory that is evaluated after everything is stored, slack included.
const touchedMemory = 400

// aftermath collects what the rows of an open database transaction leave to be done once all of them are stored: images of
// rows that others depend on, and then the rows to evaluate. Both go to a file when they are many.
type aftermath struct {
	images  spool
	touched spool
	rows    int           // records of touched
	targets relset        // relations in touched
	first   pglogrepl.LSN // commit of the first transaction that impacted a row; 0: none did
	seed    maphash.Seed
	buf     []byte
}

func newAftermath(limit int, dir string) *aftermath {
	return &aftermath{images: spool{limit: limit, dir: dir}, touched: spool{limit: limit, dir: dir}, seed: maphash.MakeSeed()}
}

func (f *aftermath) close() {
	f.images.close()
	f.touched.close()
}

// any tells whether there is anything to do.
func (f *aftermath) any() bool { return f.images.size+f.touched.size > 0 }

// Types of records. An image's says which of old and new there are.
const (
	imageOld      = 1
	imageNew      = 2
	touchChanged  = 'c'
	touchImpacted = 'i'
)

// changed takes the rows of a looking statement (images.go). order is as in told.
func (f *aftermath) changed(rel *relation, rows []rowChange, order []int32) func([][]byte) error {
	return func(v [][]byte) error {
		i, ok := parseOrdinal(v[0])
		if ok && order != nil && i < len(order) {
			i = int(order[i])
		}
		if !ok || i >= len(rows) || len(v) != 3+len(rel.impacts) {
			return errCount
		}
		r, which := &rows[i], byte(0)
		f.buf = position(f.buf[:0], r)
		for _, concerned := range v[3:] {
			f.buf = append(f.buf, concerned[0])
		}
		f.buf = binary.BigEndian.AppendUint32(f.buf, uint32(len(v[1])))
		if v[1] != nil {
			which |= imageOld
		}
		if v[2] != nil {
			which |= imageNew
		}
		f.buf = append(append(f.buf, v[1]...), v[2]...)
		return f.images.append(uint32(rel.no), which, f.buf)
	}
}

func position(b []byte, r *rowChange) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(r.lsn))
	return binary.BigEndian.AppendUint64(b, uint64(r.ordinal))
}

// postpone puts a stored row among those to evaluate.
func (f *aftermath) postpone(rel *relation, r *rowChange, key []byte) error {
	f.buf = append(position(f.buf[:0], r), r.version[:]...)
	fresh := byte(0)
	if r.fresh {
		fresh = 1
	}
	f.buf = append(append(f.buf, fresh), key...)
	return f.touch(rel, touchChanged)
}

// impact puts a row that an event has impacted among those to evaluate.
func (f *aftermath) impact(rel *relation, at *rowChange, key []byte) error {
	if f.first == 0 || at.lsn < f.first {
		f.first = at.lsn
	}
	f.buf = append(position(f.buf[:0], at), key...)
	return f.touch(rel, touchImpacted)
}

func (f *aftermath) touch(rel *relation, typ byte) error {
	f.rows++
	f.targets.add(rel.bit)
	return f.touched.append(uint32(rel.no), typ, f.buf)
}

// image is one record of images.
type image struct {
	at        rowChange
	concerned []byte // of each dependency of the relation: 't' or 'f'
	old, now  []byte // nil: none
}

func parseImage(rel *relation, which byte, body []byte) (m image, err error) {
	r := reader{b: body}
	m.at.lsn, m.at.ordinal = pglogrepl.LSN(r.u64()), int64(r.u64())
	m.concerned = r.bytes(len(rel.impacts))
	m.old = r.bytes(int(r.u32()))
	if r.bad {
		return m, errMalformed
	}
	m.now = r.b
	if which&imageOld == 0 {
		m.old = nil
	}
	if which&imageNew == 0 {
		m.now = nil
	}
	return m, nil
}

// place is where a row is among changes; row -1: it is gone.
type place struct {
	ch  *changes
	row int32
}

// gather hands out the part-th of parts of the rows to evaluate, each once, in changes of no more rows than limit: a row's last event, which
// is its position, may come after it was handed out. Those that base holds only move.
func (f *aftermath) gather(reg *registry, base []*changes, part, parts uint64, limit int, ready func(*changes) error) error {
	var order []*relation
	current := map[*relation]*changes{}
	places := map[string]place{}
	mine := func(id []byte) bool { return parts <= 1 || maphash.Bytes(f.seed, id)%parts == part }
	identity := func(rel *relation, key []byte) []byte {
		f.buf = append(binary.BigEndian.AppendUint32(f.buf[:0], uint32(rel.no)), key...)
		return f.buf
	}
	for _, ch := range base {
		if !f.targets.has(ch.rel.bit) {
			continue
		}
		for i := range ch.rows {
			if id := identity(ch.rel, ch.keys.buf[ch.rows[i].key.from:ch.rows[i].key.to]); mine(id) {
				places[string(id)] = place{ch, int32(i)}
			}
		}
		for i := range ch.removals {
			if id := identity(ch.rel, ch.gone.buf[ch.removals[i].key.from:ch.removals[i].key.to]); mine(id) {
				places[string(id)] = place{ch, -1}
			}
		}
	}
	err := f.touched.each(func(_ int64, relNo uint32, typ byte, body []byte) error {
		rel := reg.byNo[int32(relNo)]
		r := reader{b: body}
		row := rowChange{lsn: pglogrepl.LSN(r.u64()), ordinal: int64(r.u64()), impacted: typ == touchImpacted}
		if typ == touchChanged {
			copy(row.version[:], r.bytes(len(row.version)))
			row.fresh = r.u8() != 0
		}
		if r.bad || rel == nil {
			return errMalformed
		}
		id := identity(rel, r.b)
		if !mine(id) {
			return nil
		}
		if p, ok := places[string(id)]; ok {
			if p.row >= 0 {
				p.ch.rows[p.row].later(&row)
			}
			return nil
		}
		ch := current[rel]
		if ch == nil {
			ch = &changes{rel: rel, keys: array{elem: oidText}, gone: array{elem: oidText}, reread: true}
			current[rel] = ch
			order = append(order, rel)
		}
		places[string(id)] = place{ch, int32(len(ch.rows))}
		row.key = addKey(&ch.keys, r.b)
		ch.rows = append(ch.rows, row)
		if len(ch.rows) < limit {
			return nil
		}
		delete(current, rel)
		return ready(ch)
	})
	for _, rel := range order {
		if ch := current[rel]; ch != nil && err == nil {
			delete(current, rel)
			err = ready(ch)
		}
	}
	return err
}

// later moves a row to the position of another event that touched it, unless that came before.
func (r *rowChange) later(o *rowChange) {
	if cmp.Or(cmp.Compare(r.lsn, o.lsn), cmp.Compare(r.ordinal, o.ordinal)) < 0 {
		r.lsn, r.ordinal = o.lsn, o.ordinal
	}
}
