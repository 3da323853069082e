package worker

import (
	"sync"

	"github.com/jackc/pglogrepl"
)

// ledger knows what may be acknowledged to the slot: source positions whose materialization is flushed to disk here. The
// materializing transactions commit asynchronously, so each waits until the local flush passes its end.
type ledger struct {
	mu      sync.Mutex
	acked   pglogrepl.LSN
	waiting []debt
	handed  uint64        // items that the applier has finished
	seen    pglogrepl.LSN // durable or not, everything below is materialized and recorded
	idle    pglogrepl.LSN // the server had nothing for us below, and all that was received is done
}

// debt is a materialized source position and the local position that must be flushed before it may be acknowledged.
type debt struct{ source, local pglogrepl.LSN }

// recorded notes that progress up to source was committed below local.
func (l *ledger) recorded(source, local, flushed pglogrepl.LSN, items int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handed += uint64(items)
	if source > l.seen {
		l.seen = source
		l.waiting = append(l.waiting, debt{source, local})
	}
	l.settle(flushed)
}

func (l *ledger) settle(flushed pglogrepl.LSN) {
	n := 0
	for n < len(l.waiting) && l.waiting[n].local <= flushed {
		l.acked = max(l.acked, l.waiting[n].source)
		n++
	}
	l.waiting = l.waiting[n:]
}

func (l *ledger) flushed(lsn pglogrepl.LSN) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle(lsn)
}

// keepalive notes the server's position at a moment when no transaction was open. It counts only when everything that
// was received before, the batch in flight included, is done.
func (l *ledger) keepalive(lsn pglogrepl.LSN, received uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handed == received {
		l.idle = max(l.idle, lsn)
	}
}

// position is what to acknowledge now; debts is whether a flush is still awaited.
func (l *ledger) position() (acked pglogrepl.LSN, debts bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acked, len(l.waiting) > 0
}

// unseen is the idle position if it is beyond what is recorded, else 0.
func (l *ledger) unseen() (idle pglogrepl.LSN, ahead int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle <= l.seen {
		return 0, 0
	}
	return l.idle, int64(l.idle - l.seen)
}

// reached is the position up to which everything is materialized and recorded.
func (l *ledger) reached() pglogrepl.LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}
