package worker

import (
	"encoding/binary"
	"errors"

	"github.com/dchest/siphash"
	"github.com/jackc/pglogrepl"
)

// activation is a generation that a transaction registers, or, when it was staged, makes current.
type activation struct {
	generation int64
	staged     bool
	xid        int64 // of that transaction: it must be visible first
	ordinal    int64 // position of the message among the row changes
}

// batch is a run of consecutive source transactions that share one database transaction: no row occurs in two of them, and
// none writes what another one's evaluations read.
type batch struct {
	table
	txns       []*txn
	clients    map[int64]int64 // highest write epoch of pushes, by client
	activation *activation
	ignored    int64 // messages without a valid MAC
	bytes      int64
	footprint
}

// errConflict says that a transaction cannot join the batch: it needs one of its own.
var errConflict = errors.New("the transaction needs a new batch")

// indexer reads transactions into batches: it knows what the stream has said of relations, and matches fences.
type indexer struct {
	reg      *registry
	auth     authenticator
	hash     [2]uint64     // key of row hashes, random per process
	careful  pglogrepl.LSN // up to here, a row that should be new may be there
	wires    map[uint32]wireRelation
	bindings []*binding       // referred to by rows
	current  map[uint32]int32 // relation to its newest binding, -1: not registered
	columns  []column
	scratch  []byte
}

func newIndexer(reg *registry, ring *keyring, hash [2]uint64, careful pglogrepl.LSN) *indexer {
	return &indexer{careful: careful, reg: reg, auth: authenticator{ring: ring}, hash: hash, wires: map[uint32]wireRelation{}, current: map[uint32]int32{}}
}

// setRegistry makes another generation current.
func (x *indexer) setRegistry(reg *registry) {
	x.reg, x.bindings = reg, nil
	clear(x.current)
}

func (x *indexer) relation(w wireRelation) {
	if old, ok := x.wires[w.oid]; ok && old.equal(w) {
		return // sent again after an invalidation
	}
	x.wires[w.oid] = w
	delete(x.current, w.oid)
}

// binding returns the index of a relation's binding, -1 for a relation outside the generation.
func (x *indexer) binding(oid uint32) (int32, error) {
	if i, ok := x.current[oid]; ok {
		return i, nil
	}
	w, ok := x.wires[oid]
	if !ok {
		return 0, errMalformed
	}
	i := int32(-1)
	if rel := x.reg.byOID[oid]; rel != nil && !rel.suspended {
		i = int32(len(x.bindings))
		x.bindings = append(x.bindings, bind(rel, w))
	}
	x.current[oid] = i
	return i, nil
}

func (x *indexer) rowHash(relNo int32, key []byte) [2]uint64 {
	x.scratch = binary.BigEndian.AppendUint32(x.scratch[:0], uint32(relNo))
	x.scratch = append(x.scratch, key...)
	h0, h1 := siphash.Hash128(x.hash[0], x.hash[1], x.scratch)
	return [2]uint64{h0, h1}
}

// pass is one reading of a transaction: of a huge one, several are made, each for a part of the rows.
type pass struct {
	*indexer
	b           *batch
	t           *txn
	no          int32 // of the transaction in the batch
	part, parts uint64
	ordinal     int64 // row changes so far
	footprint
}

// index adds a transaction to the batch, or the part-th of parts of its rows. errConflict leaves the batch as it was.
func (x *indexer) index(b *batch, t *txn, part, parts uint64) error {
	p := &pass{indexer: x, b: b, t: t, no: int32(len(b.txns)), part: part, parts: parts}
	rows, links, olders, ignored, clients := len(b.rows), len(b.links), len(b.olders), b.ignored, b.clients
	b.clients = nil
	err := t.spool.each(p.record)
	for i := rows; err == nil && i < len(b.rows); i++ {
		if !b.matched(int32(i)) {
			err = p.unmatched(&b.rows[i])
		}
	}
	if err == nil && p.no > 0 && (b.activation != nil || b.disturbs(p.footprint)) {
		err = errConflict
	}
	if err != nil {
		b.truncate(rows, links, olders)
		b.ignored, b.clients, b.activation = ignored, clients, nil
		if errors.Is(err, errMalformed) {
			err = p.fail(classDecode, 0)
		}
		return err
	}
	for client, epoch := range clients {
		p.push(client, epoch)
	}
	if part == 0 {
		b.ignored += t.ignored
	}
	b.join(p.footprint)
	b.txns = append(b.txns, t)
	b.bytes += t.spool.size
	return nil
}

// fail makes the transaction poison at its newest row change.
func (p *pass) fail(class string, relNo int32) *poison {
	return &poison{class: class, commitLSN: p.t.commitLSN, ordinal: p.ordinal - 1, relNo: relNo}
}

func (p *pass) unmatched(r *rowRef) *poison {
	return &poison{class: classFence, commitLSN: p.t.commitLSN, ordinal: r.ordinal, relNo: p.bindings[r.bind].rel.no}
}

func (p *pass) record(off int64, sub uint32, typ byte, body []byte) error {
	if typ == msgRelation { // even of an aborted subtransaction: the stream describes a relation once
		w, err := parseRelation(body)
		if err != nil {
			return err
		}
		p.relation(w)
		return nil
	}
	if _, aborted := p.t.aborted[sub]; aborted && sub != 0 {
		return nil
	}
	switch typ {
	case msgInsert, msgUpdate, msgDelete:
		p.ordinal++
		return p.rowChange(off, typ, body)
	case msgTruncate:
		oids, err := parseTruncate(body)
		if err != nil {
			return err
		}
		for _, oid := range oids {
			if rel := p.reg.byOID[oid]; rel != nil && !rel.suspended {
				return p.fail(classTruncate, rel.no)
			}
		}
	case msgLogical:
		m, err := parseLogical(body)
		if err != nil {
			return err
		}
		if m.prefix == messagePrefix && m.transactional {
			return p.message(off, m.content)
		}
	}
	return nil
}

func (p *pass) rowChange(off int64, op byte, body []byte) error {
	if len(body) < 4 {
		return errMalformed
	}
	i, err := p.binding(binary.BigEndian.Uint32(body))
	if err != nil || i < 0 {
		return err
	}
	bound := p.bindings[i]
	if bound.drift {
		return p.fail(classDrift, bound.rel.no)
	}
	p.footprint.add(bound.rel)
	c, err := parseChange(op, body, p.columns)
	if err != nil {
		return err
	}
	p.columns = c.tuple
	if len(c.tuple) != len(bound.wire.columns) || c.tuple[bound.key].kind != colText {
		return errMalformed
	}
	hash := p.rowHash(bound.rel.no, c.tuple[bound.key].text)
	if p.parts > 1 && hash[1]%p.parts != p.part {
		return nil
	}
	partial := false
	if op == msgUpdate {
		for j := range c.tuple {
			partial = partial || c.tuple[j].kind == colUnchanged
		}
	}
	if !p.b.event(hash, op, p.no, i, off, p.ordinal-1, partial) {
		return errConflict
	}
	return nil
}

// message handles a transactional message of the extension's prefix.
func (p *pass) message(off int64, content []byte) error {
	typ, body, ok, err := p.auth.open(p.t.xid, p.t.commitLSN, content)
	if err != nil {
		return err
	}
	if !ok {
		if p.part == 0 {
			p.b.ignored++
		}
		return nil
	}
	switch typ {
	case typeFence:
		return p.fence(off, body)
	case typeActivation, typeSwitch:
		generation, xid, err := parsePair(body)
		if err != nil {
			return err
		}
		p.b.activation = &activation{generation: generation, staged: typ == typeSwitch, xid: xid, ordinal: p.ordinal}
	case typePush:
		client, epoch, err := parsePair(body)
		if err != nil {
			return err
		}
		p.push(client, epoch)
	case typeDrift: // its rows have changed without row operations
		r := reader{b: body}
		relNo := int32(r.u32())
		if err := r.end(); err != nil {
			return err
		}
		if rel := p.reg.byNo[relNo]; rel != nil && !rel.suspended {
			return p.fail(classDrift, rel.no)
		}
	default:
		if p.part == 0 {
			p.b.ignored++
		}
	}
	return nil
}

func (p *pass) push(client, epoch int64) {
	if p.b.clients == nil {
		p.b.clients = map[int64]int64{}
	}
	p.b.clients[client] = max(p.b.clients[client], epoch)
}

// fenced tells whether a fence says of the relation what the generation does. The triggers of one that is about to be synced, or was until
// now, are those of a synced relation already, or still; its table id may be younger than the generation.
func (r *relation) fenced(f fence) bool {
	if f.kind == kindDependency || f.table != r.table {
		return r.kind == kindDependency && (f.kind == kindDependency || r.table == [16]byte{})
	}
	return true
}

func (p *pass) fence(off int64, body []byte) error {
	f, err := parseFence(body)
	if err != nil {
		return err
	}
	if _, aborted := p.t.aborted[f.xid]; aborted {
		return nil // the stream tags messages with the top transaction, so only the fence itself tells
	}
	rel := p.reg.byNo[f.relNo]
	if rel == nil || rel.suspended {
		return nil
	}
	if f.relation != rel.id || !rel.fenced(f) || string(f.qualified) != rel.qualified {
		return p.fail(classFence, rel.no)
	}
	hash := p.rowHash(rel.no, f.key)
	if p.parts > 1 && hash[1]%p.parts != p.part {
		return nil
	}
	if !p.b.fence(hash, f.op, p.no, f.ordinal, off) {
		return p.fail(classFence, rel.no)
	}
	return nil
}

// last is the newest transaction of the batch.
func (b *batch) last() commitRecord { return b.txns[len(b.txns)-1].commitRecord }

func (b *batch) close() {
	for _, t := range b.txns {
		t.spool.close()
	}
}

// positions below are those of each row's own transaction.
func (b *batch) commitLSN(r *rowRef) pglogrepl.LSN { return b.txns[r.txn].commitLSN }
