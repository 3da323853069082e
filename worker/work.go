package worker

import (
	"github.com/jackc/pglogrepl"
)

// call is one execution of a statement.
type call struct {
	*statement
	params  [][]byte
	expect  int64 // rows that it must affect or find, -1: any
	touches bool  // its row is (count, touched scopes)
	relNo   int32
}

// work is what the applier does in one round trip: a whole batch, or a piece of a huge transaction.
type work struct {
	calls   []call
	rows    int // size: decides how statements are planned
	first   bool
	last    bool
	commit  commitRecord    // of the last transaction, when last and a batch
	seen    pglogrepl.LSN   // a marker: everything below is in hand
	clients map[int64]int64 // when last
	ignored int64           // when last
	act     *activation     // when last: waits for visibility first
	poison  *poison         // nothing but this: the transaction cannot be planned
	items   int             // received items that end with it
	done    chan *registry  // when act: the applier answers with the new generation
}

// group collects the parameters of one statement.
type group struct {
	stmt   *statement
	rel    *relation
	arrays []array
	n      int64
	touch  bool
}

// chunk turns rows of an indexed batch into calls.
type chunk struct {
	x       *indexer
	b       *batch
	groups  map[*statement]*group
	order   []*group
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
	return &chunk{x: x, b: b, groups: map[*statement]*group{}}
}

func (c *chunk) group(st *statement, rel *relation, touch bool, elems ...uint32) *group {
	g := c.groups[st]
	if g == nil {
		g = &group{stmt: st, rel: rel, touch: touch, arrays: make([]array, len(elems))}
		for i, e := range elems {
			g.arrays[i].elem = e
		}
		c.groups[st] = g
		c.order = append(c.order, g)
	}
	g.n++
	return g
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
	if r.op == msgDelete {
		g := c.group(rel.sql.remove, rel, true, oidText, oidText, oidPgLSN, oidInt8)
		g.arrays[0].text(f.key)
		g.arrays[1].text(f.version)
		g.arrays[2].u64(uint64(t.commitLSN))
		g.arrays[3].u64(uint64(r.ordinal))
		return nil
	}
	if err := c.image(t, r, bound, ch.tuple, f); err != nil {
		return err
	}
	c.store(rel, f)
	if rel.sql.member != nil {
		g := c.group(rel.sql.member, rel, true, oidText, oidPgLSN, oidInt8)
		g.arrays[0].text(f.key)
		g.arrays[1].u64(uint64(t.commitLSN))
		g.arrays[2].u64(uint64(r.ordinal))
	}
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

// store adds the completed image to the statement that writes it.
func (c *chunk) store(rel *relation, f fence) {
	st := rel.sql.upsert
	if len(c.kept) > 0 {
		st = rel.sql.update(string(c.kept))
	}
	g := c.groups[st]
	if g == nil {
		elems := make([]uint32, 0, len(rel.columns)+2)
		for i := range rel.columns {
			if len(c.kept) == 0 || c.kept[i] == 0 {
				elems = append(elems, oidText)
			}
		}
		g = c.group(st, rel, false, append(elems, oidText, oidXID)...)
	} else {
		g.n++
	}
	at := 0
	for i, v := range c.images {
		if len(c.kept) > 0 && c.kept[i] != 0 {
			continue
		}
		g.arrays[at].value(v)
		at++
	}
	g.arrays[at].text(f.version)
	g.arrays[at+1].u32(f.xmin)
}

// calls are the statements of the chunk: projections first, then the memberships that are evaluated against them.
func (c *chunk) calls(high pglogrepl.LSN) []call {
	var stores, members []call
	for _, g := range c.order {
		k := call{statement: g.stmt, expect: g.n, touches: g.touch, relNo: g.rel.no}
		for i := range g.arrays {
			k.params = append(k.params, g.arrays[i].param())
		}
		switch g.stmt {
		case g.rel.sql.member:
			k.params = append(k.params, lsnParam(high))
			members = append(members, k)
		case g.rel.sql.remove:
			k.params = append(k.params, lsnParam(high))
			k.expect = -1 // a row that came and went in one transaction was never there
			stores = append(stores, k)
		default:
			stores = append(stores, k)
		}
	}
	return append(stores, members...)
}
