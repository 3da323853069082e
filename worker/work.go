package worker

import (
	"encoding/binary"

	"github.com/jackc/pglogrepl"
)

// work is what the applier does at a time: a whole batch, or a piece of a huge transaction.
type work struct {
	changes []*changes
	rows    int
	first   bool
	last    bool
	late    relset          // of a huge transaction: relations that are evaluated only when all pieces are stored
	commit  commitRecord    // of the last transaction: of the batch so far
	seen    pglogrepl.LSN   // a marker: everything below is in hand
	clients map[int64]int64 // when last
	ignored int64           // when last
	act     *activation     // when last: waits for visibility first
	poison  *poison         // nothing but this: the transaction cannot be planned
	items   int             // received items that end with it
	done    chan *registry  // when act: the applier answers with the new generation
}

// changes are the net changes of one relation.
type changes struct {
	rel      *relation
	images   []byte // of the stored rows, as _store_rows takes them
	keys     array  // of the stored rows, in the order of rows
	rows     []rowChange
	gone     array // keys of the removed rows, in the order of removals
	removals []rowChange
	scopes   []membership // as evaluated
	reread   bool         // the rows were stored before, and some may not be there
	there    []int32      // when reread: those that are there
}

// rowChange is one row's change, and what the statement that stores it tells of the row.
type rowChange struct {
	key     span // in the keys
	lsn     pglogrepl.LSN
	ordinal int64
	version [16]byte
	// impacted: the row itself did not change, so only scopes that it enters or leaves hear of it
	impacted bool
	fresh    bool // the row was not there before its transaction
	soft     bool
	blank    bool   // its projection has a placeholder for its scopes
	typed    []byte // key as octets; nil: the row is not there
	digest   []byte
	tid      [tidSize]byte // where it is in its projection
	old      []int64       // scopes that hold the row so far, ascending
	now      []int64       // scopes that hold it from here on, ascending
}

type span struct{ from, to int }

const tidSize = 6

// chunk gathers rows of an indexed batch.
type chunk struct {
	x       *indexer
	b       *batch
	changes []*changes
	byRel   map[*relation]*changes
	rows    int
	bytes   int64
	txn     int32 // whose records the windows hold
	event   window
	fence   window
	earlier window
	images  []column
	kept    []byte
	older   []column
}

func newChunk(x *indexer, b *batch) *chunk {
	return &chunk{x: x, b: b, byRel: map[*relation]*changes{}}
}

func (c *chunk) of(rel *relation) *changes {
	ch := c.byRel[rel]
	if ch == nil {
		ch = &changes{rel: rel, images: rel.imageHeader(), keys: array{elem: oidText}, gone: array{elem: oidText}}
		c.byRel[rel] = ch
		c.changes = append(c.changes, ch)
	}
	return ch
}

// addKey appends a key and says where it is.
func addKey(a *array, key []byte) span {
	a.text(key)
	return span{len(a.buf) - len(key), len(a.buf)}
}

// add puts one row's net change into the chunk.
func (c *chunk) add(r *rowRef) error {
	t := c.b.txns[r.txn]
	if r.txn != c.txn {
		c.txn, c.event, c.fence, c.earlier = r.txn, window{}, window{}, window{}
	}
	typ, body, err := c.event.at(&t.spool, r.event)
	if err != nil {
		return err
	}
	ch, err := parseChange(typ, body, c.x.columns)
	if err != nil {
		return err
	}
	c.x.columns = ch.tuple
	bound := c.x.bindings[r.bind]
	rel := bound.rel
	_, msg, err := c.fence.at(&t.spool, r.fence)
	if err != nil {
		return err
	}
	m, err := parseLogical(msg)
	if err != nil {
		return err
	}
	f, err := parseFence(m.content[1+macSize:])
	if err != nil {
		return err
	}
	c.rows++
	c.bytes += int64(len(body) + len(msg))
	row := rowChange{lsn: t.commitLSN, ordinal: r.ordinal}
	copy(row.version[:], f.version)
	to := c.of(rel)
	if r.op == msgDelete {
		row.key = addKey(&to.gone, f.key)
		to.removals = append(to.removals, row)
		return nil
	}
	if err := c.image(t, r, bound, ch.tuple, f); err != nil {
		return err
	}
	row.key = addKey(&to.keys, f.key)
	row.fresh = r.fresh() && t.commitLSN > c.x.careful
	to.rows = append(to.rows, row)
	to.images = c.appendImage(to.images, f, row.fresh)
	return nil
}

// image completes c.images, the captured columns of the row's last image, and marks in c.kept those that no image
// of the transaction holds.
func (c *chunk) image(t *txn, r *rowRef, bound *binding, tuple []column, f fence) error {
	rel := bound.rel
	c.images = c.images[:0]
	missing := false
	for i := range rel.columns {
		v := column{kind: colNull}
		if at := bound.pos[i]; at >= 0 {
			v = tuple[at]
		}
		missing = missing || v.kind == colUnchanged
		c.images = append(c.images, v)
	}
	f.eachGenerated(func(attnum int16, v column) {
		for i := range rel.columns {
			if rel.columns[i].attnum == attnum && rel.columns[i].generated {
				c.images[i] = v
			}
		}
	})
	for next := r.link; missing && next >= 0; {
		l := c.b.links[next]
		typ, body, err := c.earlier.at(&t.spool, l.event)
		if err != nil {
			return err
		}
		old, err := parseChange(typ, body, c.older)
		if err != nil {
			return err
		}
		c.older = old.tuple
		missing = false
		for i := range c.images {
			at := c.x.bindings[l.bind].pos[i]
			if c.images[i].kind != colUnchanged || at < 0 {
				continue
			}
			v := old.tuple[at]
			if v.kind == colText { // the window moves on: keep a copy
				v.text = append([]byte(nil), v.text...)
			}
			c.images[i] = v
			missing = missing || v.kind == colUnchanged
		}
		next = l.next
	}
	c.kept = c.kept[:0]
	if missing {
		for _, v := range c.images {
			k := byte(0)
			if v.kind == colUnchanged {
				k = 1
			}
			c.kept = append(c.kept, k)
		}
	}
	return nil
}

// Kinds of a stored row, and what stands in place of a length.
const (
	rowNew    = 'n'
	rowAny    = 'a'
	rowOld    = 'o' // some columns keep their value
	valueNull = 0xffffffff
	valueKept = 0xfffffffe
)

// imageHeader begins the parameter of _store_rows. The first octet is set when it is sent.
func (r *relation) imageHeader() []byte {
	b := binary.BigEndian.AppendUint16([]byte{0}, uint16(len(r.columns)))
	for _, c := range r.columns {
		b = binary.BigEndian.AppendUint16(b, uint16(c.attnum))
	}
	return b
}

// appendImage adds the completed image of a row.
func (c *chunk) appendImage(b []byte, f fence, fresh bool) []byte {
	kind := byte(rowAny)
	switch {
	case len(c.kept) > 0:
		kind = rowOld
	case fresh: // nothing to look for: cheaper
		kind = rowNew
	}
	b = append(append(b, kind), f.version...)
	b = binary.BigEndian.AppendUint32(b, f.xid)
	for i, v := range c.images {
		switch {
		case len(c.kept) > 0 && c.kept[i] != 0:
			b = binary.BigEndian.AppendUint32(b, valueKept)
		case v.kind == colNull:
			b = binary.BigEndian.AppendUint32(b, valueNull)
		default:
			b = binary.BigEndian.AppendUint32(b, uint32(len(v.text)))
			b = append(append(b, v.text...), 0)
		}
	}
	return b
}
