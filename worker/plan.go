package worker

import (
	"context"
	"errors"

	"github.com/jackc/pglogrepl"
)

// rowMemory is what one row of a huge transaction takes in memory, index and slack included.
const rowMemory = 192

// planner turns received transactions into work: as many as are waiting go into one batch, a huge one into many pieces of
// one database transaction.
type planner struct {
	x       *indexer
	queue   *queue
	works   chan<- *work
	limits  func() Limits
	single  pglogrepl.LSN // transactions that commit up to here go alone
	skip    pglogrepl.LSN
	pending []item
	b       *batch
}

func (p *planner) run(ctx context.Context) error {
	defer func() {
		for _, it := range p.pending {
			if it.txn != nil {
				it.txn.spool.close()
			}
		}
	}()
	p.b = &batch{table: *newTable()}
	for {
		if len(p.pending) == 0 {
			items, err := p.queue.take(ctx)
			if err != nil {
				return err
			}
			p.pending = items
		}
		if err := p.next(ctx); err != nil {
			return err
		}
	}
}

// next emits one batch made of the first pending items.
func (p *planner) next(ctx context.Context) error {
	limits := p.limits()
	b := p.b
	b.table.reset()
	*b = batch{table: b.table}
	w := &work{first: true, last: true}
	for len(p.pending) > 0 && w.seen == 0 && b.activation == nil {
		t := p.pending[0].txn
		switch {
		case t == nil:
			w.seen = p.pending[0].marker
			w.items++
		case t.commitLSN < p.skip: // done before
			t.spool.close()
			w.items++
		default:
			joined, err := p.join(ctx, b, t, w, limits)
			if err != nil {
				return err
			}
			if !joined {
				return p.finish(ctx, w, b)
			}
			if len(b.txns) == 0 { // a huge one, and done with
				return nil
			}
		}
		p.pending = p.pending[1:]
	}
	return p.finish(ctx, w, b)
}

// join adds a transaction to the batch, or reports that it must wait for the next one. A huge one, always the first of
// its batch, is emitted at once.
func (p *planner) join(ctx context.Context, b *batch, t *txn, w *work, limits Limits) (bool, error) {
	rows, bytes := len(b.rows)+t.events, b.bytes+t.spool.size
	fits := rows <= limits.BatchMaxRows && bytes <= limits.BatchMaxBytes
	if len(b.txns) > 0 && (!fits || b.last().commitLSN <= p.single) {
		return false, nil
	}
	if !fits {
		p.pending = p.pending[1:]
		return true, p.huge(ctx, t, w.items+1, limits)
	}
	if err := p.x.index(b, t, 0, 1); err != nil {
		if len(b.txns) > 0 {
			return false, nil
		}
		return false, p.spoiled(ctx, t, err)
	}
	w.items++
	return true, nil
}

// finish emits the batch as one piece of work.
func (p *planner) finish(ctx context.Context, w *work, b *batch) error {
	if len(b.txns) > 0 {
		c := newChunk(p.x, b)
		for i := range b.rows {
			if err := c.add(&b.rows[i]); err != nil {
				return err
			}
		}
		w.changes, w.rows = c.changes, c.rows
		p.complete(w, b)
		b.close()
	}
	return p.emit(ctx, w)
}

// complete says what the end of a batch's database transaction brings.
func (p *planner) complete(w *work, b *batch) {
	w.last = true
	w.commit, w.clients, w.ignored, w.act = b.last(), b.clients, b.ignored, b.activation
	if w.act != nil {
		w.done = make(chan *registry, 1)
	}
}

// huge emits a transaction that is too large for one batch in pieces of one database transaction. When even an index of
// its rows is too large, the transaction is read several times, each time for a part of the rows.
func (p *planner) huge(ctx context.Context, t *txn, items int, limits Limits) error {
	defer t.spool.close()
	maxRows := max(int(limits.MemoryBytes/rowMemory/2), limits.BatchMaxRows)
	parts := uint64((t.events + maxRows - 1) / maxRows)
	ignored := int64(0)
	var late relset
	for part := uint64(0); part < max(parts, 1); part++ {
		b := &batch{table: *newTable()}
		b.table.reserve(t.events / int(max(parts, 1)))
		if err := p.x.index(b, t, part, max(parts, 1)); err != nil {
			return p.spoiled(ctx, t, err)
		}
		if part == 0 { // a reading for any part meets every row change
			late = b.late(p.x.reg)
		}
		ignored += b.ignored
		c := newChunk(p.x, b)
		w := &work{first: part == 0, late: late, commit: t.commitRecord}
		for i := range b.rows {
			if c.rows >= limits.BatchMaxRows || c.bytes >= limits.BatchMaxBytes {
				w.changes, w.rows = c.changes, c.rows
				if err := p.emit(ctx, w); err != nil {
					return err
				}
				c, w = newChunk(p.x, b), &work{late: late, commit: t.commitRecord}
			}
			if err := c.add(&b.rows[i]); err != nil {
				return err
			}
		}
		w.changes, w.rows = c.changes, c.rows
		if part+1 >= parts {
			p.complete(w, b)
			w.ignored, w.items = ignored, items
		}
		if err := p.emit(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// spoiled hands on that a transaction cannot be planned, or what else went wrong.
func (p *planner) spoiled(ctx context.Context, t *txn, err error) error {
	var bad *poison
	if !errors.As(err, &bad) {
		return err
	}
	if err := p.emit(ctx, &work{poison: bad}); err != nil {
		return err
	}
	<-ctx.Done() // the applier ends the session when it comes to it
	return context.Cause(ctx)
}

// emit hands work to the applier. After an activation it waits for the generation that later transactions use.
func (p *planner) emit(ctx context.Context, w *work) error {
	select {
	case p.works <- w:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if w.act == nil {
		return nil
	}
	select {
	case reg := <-w.done:
		p.x.setRegistry(reg)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
