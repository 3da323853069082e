package worker

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// item is what the receiver hands to the planner: a committed transaction, or the position of a marker.
type item struct {
	txn    *txn
	marker pglogrepl.LSN
}

// queue is the bounded line between receiver and planner.
type queue struct {
	mu     sync.Mutex
	items  []item
	bytes  int64
	limit  int64
	ready  chan struct{}
	space  chan struct{}
	handed uint64 // items ever pushed
}

func newQueue(limit int64) *queue {
	return &queue{limit: limit, ready: make(chan struct{}, 1), space: make(chan struct{}, 1)}
}

func tick(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// push waits while the queue is full.
func (q *queue) push(ctx context.Context, it item) error {
	size := int64(64)
	if it.txn != nil {
		size += int64(len(it.txn.spool.mem))
	}
	for {
		q.mu.Lock()
		if q.bytes == 0 || q.bytes+size <= q.limit {
			q.items = append(q.items, it)
			q.bytes += size
			q.handed++
			q.mu.Unlock()
			tick(q.ready)
			return nil
		}
		q.mu.Unlock()
		select {
		case <-q.space:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// take waits for items and returns all that are there.
func (q *queue) take(ctx context.Context) ([]item, error) {
	for {
		q.mu.Lock()
		items := q.items
		q.items, q.bytes = nil, 0
		q.mu.Unlock()
		if len(items) > 0 {
			tick(q.space)
			return items, nil
		}
		select {
		case <-q.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (q *queue) pushed() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.handed
}

// streamedMemory is what a streamed transaction keeps in memory before it goes to a file.
const streamedMemory = 256 << 10

// receiver takes the replication stream apart into transactions.
type receiver struct {
	conn    *pgconn.PgConn
	queue   *queue
	skip    pglogrepl.LSN // transactions that committed below are done
	limit   int           // octets of a transaction kept in memory
	dir     string        // for spool files
	idle    func(pglogrepl.LSN)
	reply   func()
	compact func(compactionRequest)
	auth    authenticator
	ignored int64           // markers without a valid MAC since the last commit
	open    *txn            // between B and C
	streams map[uint32]*txn // streamed transactions in progress
	stream  *txn            // between S and E
	last    time.Time       // of the last message
}

// run reads until the connection or the context ends.
func (r *receiver) run(ctx context.Context) error {
	defer r.drop()
	stop := context.AfterFunc(ctx, func() { _ = r.conn.Conn().SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	front := r.conn.Frontend()
	for {
		msg, err := front.Receive()
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("reading the replication stream: %w", err)
		}
		switch msg := msg.(type) {
		case *pgproto3.CopyData:
			if err := r.data(ctx, msg.Data); err != nil {
				return err
			}
		case *pgproto3.ErrorResponse:
			return fmt.Errorf("replication stream: %w", pgconn.ErrorResponseToPgError(msg))
		case *pgproto3.CopyDone, *pgproto3.CommandComplete:
			return errors.New("the server ended the replication stream")
		}
	}
}

func (r *receiver) drop() {
	for _, t := range r.streams {
		t.spool.close()
	}
	if r.open != nil {
		r.open.spool.close()
	}
}

const walDataHeader = 25

func (r *receiver) data(ctx context.Context, d []byte) error {
	switch {
	case len(d) > walDataHeader && d[0] == pglogrepl.XLogDataByteID:
		return r.message(ctx, d[walDataHeader:])
	case len(d) == 18 && d[0] == pglogrepl.PrimaryKeepaliveMessageByteID:
		// Nothing of a transaction below this position is still to come. Between B and C it says nothing new.
		if r.open == nil {
			r.idle(pglogrepl.LSN(binary.BigEndian.Uint64(d[1:])))
		}
		if d[17] != 0 {
			r.reply()
		}
		return nil
	}
	return errMalformed
}

func (r *receiver) message(ctx context.Context, d []byte) error {
	switch d[0] {
	case msgBegin:
		c, err := parseBegin(d)
		if err != nil {
			return err
		}
		r.open = r.newTxn(c)
		return nil
	case msgCommit:
		c, err := parseCommit(d)
		if err != nil || r.open == nil {
			return errMalformed
		}
		t := r.open
		r.open = nil
		c.xid = t.xid
		return r.committed(ctx, t, c)
	case msgStreamStart:
		xid, err := parseStreamStart(d)
		if err != nil {
			return err
		}
		if r.stream = r.streams[xid]; r.stream == nil {
			r.stream = r.newTxn(commitRecord{xid: xid})
			r.stream.spool.limit = min(r.limit, streamedMemory) // there may be many at a time
			r.stream.aborted = map[uint32]struct{}{}
			r.streams[xid] = r.stream
		}
		return nil
	case msgStreamStop:
		r.stream = nil
		return nil
	case msgStreamCommit:
		c, err := parseStreamCommit(d)
		if err != nil {
			return err
		}
		t := r.streams[c.xid]
		if t == nil {
			return errMalformed
		}
		delete(r.streams, c.xid)
		return r.committed(ctx, t, c)
	case msgStreamAbort:
		xid, sub, err := parseStreamAbort(d)
		if err != nil {
			return err
		}
		t := r.streams[xid]
		switch {
		case t == nil:
		case xid == sub:
			t.spool.close()
			delete(r.streams, xid)
		default:
			t.aborted[sub] = struct{}{}
		}
		return nil
	case msgOrigin, msgType:
		return nil
	}
	return r.record(ctx, d)
}

func (r *receiver) newTxn(c commitRecord) *txn {
	return &txn{commitRecord: c, spool: spool{limit: r.limit, dir: r.dir}}
}

// record puts a message into the transaction that it belongs to.
func (r *receiver) record(ctx context.Context, d []byte) error {
	typ, body, sub, t := d[0], d[1:], uint32(0), r.open
	if r.stream != nil {
		if len(body) < 4 {
			return errMalformed
		}
		t, sub, body = r.stream, binary.BigEndian.Uint32(body), body[4:]
	}
	switch typ {
	case msgInsert, msgUpdate, msgDelete:
		if t != nil {
			t.events++
		}
	case msgLogical:
		if len(body) < 10 {
			return errMalformed
		}
		if !bytes.HasPrefix(body[9:], []byte(messagePrefix+"\x00")) {
			return nil
		}
		if body[0]&1 == 0 { // not transactional: a marker, wherever it comes
			return r.marker(ctx, body)
		}
	case msgTruncate, msgRelation:
	default:
		return errMalformed
	}
	if t == nil {
		return errMalformed
	}
	if typ == msgLogical && len(body) > largeMessage { // forged ones fill no spool
		m, err := parseLogical(body)
		if err != nil {
			return err
		}
		if _, _, ok, err := r.auth.open(t.xid, m.lsn, m.content); err != nil || !ok {
			r.ignored++
			return err
		}
	}
	if r.stream == nil && t.commitLSN < r.skip {
		if typ != msgRelation {
			return nil
		}
	}
	return t.spool.append(sub, typ, body)
}

func (r *receiver) marker(ctx context.Context, body []byte) error {
	m, err := parseLogical(body)
	if err != nil {
		return err
	}
	// Everybody can emit one, and each ends a batch.
	typ, content, ok, err := r.auth.open(0, m.lsn, m.content)
	if err != nil {
		return err
	}
	if !ok || (typ != typeMarker && typ != typeCompaction) {
		r.ignored++
		return nil
	}
	if typ == typeCompaction {
		req, err := parseCompaction(content, m.lsn)
		if err != nil {
			return err
		}
		r.compact(req)
	}
	return r.queue.push(ctx, item{marker: m.lsn})
}

// committed hands a transaction on. A commit record may start exactly where the last one done ended, so equality is
// the next one.
func (r *receiver) committed(ctx context.Context, t *txn, c commitRecord) error {
	t.commitRecord = c
	t.ignored, r.ignored = r.ignored, 0
	if err := t.spool.sealed(); err != nil {
		return fmt.Errorf("spooling a transaction: %w", err)
	}
	return r.queue.push(ctx, item{txn: t})
}
