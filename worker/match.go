package worker

import (
	"fmt"

	"github.com/jackc/pglogrepl"
)

// Bounded classes of a transaction that cannot be materialized (quarantine.class).
const (
	classDecode          = "decode_failed"
	classDrift           = "registered_relation_drift"
	classFence           = "fence_mismatch"
	classTruncate        = "truncate"
	classEvaluation      = "scope_evaluation_failed"
	classValue           = "value_unrepresentable"
	classMaterialization = "materialization_failed"
	classSlotLost        = "slot_lost" // gone, invalidated, or beyond what is materialized
)

// poison says that one source transaction cannot be materialized. It carries no data.
type poison struct {
	class     string
	commitLSN pglogrepl.LSN
	ordinal   int64 // of the event, -1 when unknown
	relNo     int32 // 0 when unknown
	blind     bool  // rows may have changed unseen: trying again is no way out
	err       error // for SQLSTATEs only, may be nil
}

func (p *poison) Error() string {
	return fmt.Sprintf("transaction %s cannot be materialized: %s", p.commitLSN, p.class)
}
func (p *poison) Unwrap() error { return p.err }

// txn is a committed source transaction as it was received.
type txn struct {
	commitRecord
	spool   spool
	aborted map[uint32]struct{} // subtransactions of a streamed one that were rolled back
	events  int                 // row changes received, aborted ones included
	ignored int64               // forged markers since the transaction before
}

// link is an earlier image of a row in the same transaction: an update may leave out TOASTed values that it carries.
type link struct {
	event int64
	bind  int32
	next  int32
}

// rowRef is a row that the batch changes: where its last image and last fence are. It has no pointers, and is all that
// a row of a huge transaction keeps in memory.
type rowRef struct {
	hash    [2]uint64
	event   int64  // record of the last change
	fence   int64  // record of the fence with the highest ordinal
	fenceNo uint64 // that ordinal
	ordinal int64  // of the last change
	ops     uint64 // operations of the first changes, two bits each, the first lowest
	events  uint32
	fences  uint32
	older   int32 // fences with lower ordinals, highest first
	bind    int32
	txn     int32
	link    int32
	op      byte // of the last change
	fenceOp byte
}

// olderFence is a fence of a row that is not its last one.
type olderFence struct {
	ordinal uint64
	next    int32
	op      byte
}

const inlineOps = 32

func opCode(op byte) uint64 {
	switch op {
	case msgInsert:
		return 1
	case msgUpdate:
		return 2
	}
	return 3
}

// table holds the rows of a batch by identity (relation number and key text, as a keyed 128-bit hash), in the order of
// their first change.
type table struct {
	rows    []rowRef
	slots   []uint32 // index into rows plus one; a power of two of them
	links   []link
	olders  []olderFence
	moreOps map[int32][]byte // operations beyond inlineOps
}

const minSlots = 128

func newTable() *table { return &table{slots: make([]uint32, minSlots)} }

// reset empties the table; what a huge transaction needed is given back.
func (t *table) reset() {
	if len(t.slots) > 1<<17 {
		*t = *newTable()
		return
	}
	t.truncate(0, 0, 0)
}

// truncate forgets the newest rows, those from n on.
func (t *table) truncate(n, links, olders int) {
	mask := uint64(len(t.slots) - 1)
	for i := len(t.rows) - 1; i >= n; i-- {
		for s := t.rows[i].hash[0] & mask; ; s = (s + 1) & mask {
			if t.slots[s] == uint32(i)+1 {
				t.slots[s] = 0 // nothing newer is left that could have probed past it
				break
			}
		}
	}
	t.rows, t.links, t.olders, t.moreOps = t.rows[:n], t.links[:links], t.olders[:olders], nil
}

// reserve makes room for n more rows at once.
func (t *table) reserve(n int) {
	need := len(t.rows) + n
	if need > cap(t.rows) {
		grown := make([]rowRef, len(t.rows), max(need, 2*cap(t.rows), 64))
		copy(grown, t.rows)
		t.rows = grown
	}
	size := len(t.slots)
	for size < 2*need {
		size *= 2
	}
	if size == len(t.slots) {
		return
	}
	t.slots = make([]uint32, size)
	mask := uint64(size - 1)
	for i := range t.rows {
		s := t.rows[i].hash[0] & mask
		for t.slots[s] != 0 {
			s = (s + 1) & mask
		}
		t.slots[s] = uint32(i) + 1
	}
}

// find returns the index of a row, or -1 and the slot where it belongs.
func (t *table) find(hash [2]uint64) (row int32, slot uint64) {
	mask := uint64(len(t.slots) - 1)
	for s := hash[0] & mask; ; s = (s + 1) & mask {
		i := t.slots[s]
		if i == 0 {
			return -1, s
		}
		if t.rows[i-1].hash == hash {
			return int32(i - 1), s
		}
	}
}

// event records a row change. It reports false when another transaction of the batch has changed the row already.
// partial: the image leaves out values that did not change.
func (t *table) event(hash [2]uint64, op byte, txn, bind int32, off, ordinal int64, partial bool) bool {
	i, slot := t.find(hash)
	if i < 0 {
		if 2*(len(t.rows)+1) > len(t.slots) {
			t.reserve(1)
			_, slot = t.find(hash)
		}
		i = int32(len(t.rows))
		t.rows = append(t.rows, rowRef{hash: hash, txn: txn, link: -1, older: -1})
		t.slots[slot] = uint32(i) + 1
	}
	r := &t.rows[i]
	if r.txn != txn {
		return false
	}
	if partial && op == msgUpdate && r.op != msgDelete && r.op != 0 {
		t.links = append(t.links, link{event: r.event, bind: r.bind, next: r.link})
		r.link = int32(len(t.links) - 1)
	} else {
		r.link = -1
	}
	r.event, r.ordinal, r.bind, r.op = off, ordinal, bind, op
	if r.events < inlineOps {
		r.ops |= opCode(op) << (2 * r.events)
	} else {
		if t.moreOps == nil {
			t.moreOps = map[int32][]byte{}
		}
		t.moreOps[i] = append(t.moreOps[i], op)
	}
	r.events++
	return true
}

// fence records a fence. False: no change of the row came before it, or its ordinal came already.
func (t *table) fence(hash [2]uint64, op byte, txn int32, ordinal uint64, off int64) bool {
	i, _ := t.find(hash)
	if i < 0 || t.rows[i].txn != txn {
		return false
	}
	r := &t.rows[i]
	r.fences++
	at := &r.older
	switch {
	case r.fences == 1:
		r.fence, r.fenceNo, r.fenceOp = off, ordinal, op
		return true
	case ordinal > r.fenceNo: // the usual order: the one so far becomes an older one
		t.olders = append(t.olders, olderFence{ordinal: r.fenceNo, next: *at, op: r.fenceOp})
		r.fence, r.fenceNo, r.fenceOp = off, ordinal, op
	case ordinal == r.fenceNo:
		return false
	default:
		for *at >= 0 && t.olders[*at].ordinal >= ordinal {
			if t.olders[*at].ordinal == ordinal {
				return false
			}
			at = &t.olders[*at].next
		}
		next := *at
		*at = int32(len(t.olders)) // before the slice may move
		t.olders = append(t.olders, olderFence{ordinal: ordinal, next: next, op: op})
		return true
	}
	*at = int32(len(t.olders) - 1)
	return true
}

// fresh tells whether the row was not there before the transaction.
func (r *rowRef) fresh() bool { return r.ops&3 == opCode(msgInsert) }

// matched tells whether the k-th change of a row and its fence with the k-th lowest ordinal agree, for every k.
func (t *table) matched(i int32) bool {
	r := &t.rows[i]
	if r.events != r.fences || r.op != r.fenceOp {
		return false
	}
	at := r.older
	for k := int(r.events) - 2; k >= 0; k-- {
		code := r.ops >> (2 * k) & 3
		if k >= inlineOps {
			code = opCode(t.moreOps[i][k-inlineOps])
		}
		if code != opCode(t.olders[at].op) {
			return false
		}
		at = t.olders[at].next
	}
	return true
}
