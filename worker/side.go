package worker

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	notifyChannel = "synchro_progress"
	notifyScopes  = 20_000 // more touched scopes are announced as "*"
	notifyPayload = 7900   // octets of one notification, at which another one begins; a number may still be added
	notifyAgain   = 100 * time.Millisecond
	settlePoll    = 50 * time.Millisecond
	fenceSweep    = 2 * time.Second
	seenAhead     = 512 << 10 // WAL that brings us nothing is recorded early beyond this: less than any lag that a limit allows
)

const lockNotAvailable = "55P03"

// heart writes the heartbeat when nothing else has written progress for half of its limit.
type heart struct {
	mu     sync.Mutex
	last   time.Time
	limits func() Limits
}

func (h *heart) period() time.Duration {
	return max(h.limits().MaxHeartbeatAge/2, 100*time.Millisecond)
}

// due is the time left until the next beat.
func (h *heart) due() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(0, h.period()-time.Since(h.last))
}

func (h *heart) lastWritten() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

func (h *heart) written() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = time.Now()
}

// beat writes a heartbeat if one is due.
func (h *heart) beat(ctx context.Context, conn *pgconn.PgConn) error {
	if h.due() > 0 {
		return nil
	}
	_, err := query(ctx, conn, "UPDATE synchro.progress SET heartbeat_at = clock_timestamp()")
	if sqlState(err) == lockNotAvailable {
		return nil // soon again
	}
	if err == nil {
		h.written()
	}
	return err
}

// during beats until fn has ended. fn must not use the connection.
func (h *heart) during(ctx context.Context, conn *pgconn.PgConn, fn func(context.Context) error) error {
	c, ctx := newCrew(ctx)
	done := make(chan struct{})
	c.start(func() error {
		defer close(done)
		return fn(ctx)
	})
	c.start(func() error {
		for {
			if err := h.beat(ctx, conn); err != nil {
				return err
			}
			select {
			case <-time.After(max(h.due(), 50*time.Millisecond)):
			case <-done:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
	return c.wait()
}

// herald collects what the next notification says.
type herald struct {
	mu     sync.Mutex
	lsn    pglogrepl.LSN
	scopes map[int64]struct{} // and 0, a scope's first effect; -n, a push of client n
	all    bool
	ready  chan struct{}
}

func newHerald() *herald {
	return &herald{scopes: map[int64]struct{}{}, ready: make(chan struct{}, 1)}
}

// everything makes the next notification one for everybody.
func (h *herald) everything(lsn pglogrepl.LSN) {
	h.mu.Lock()
	h.lsn, h.all = lsn, true
	clear(h.scopes)
	h.mu.Unlock()
	tick(h.ready)
}

func (h *herald) add(lsn pglogrepl.LSN, scopes map[int64]struct{}) {
	h.mu.Lock()
	h.lsn = lsn
	for s := range scopes {
		if h.all || len(h.scopes) >= notifyScopes {
			h.all = true
			clear(h.scopes)
			break
		}
		h.scopes[s] = struct{}{}
	}
	h.mu.Unlock()
	tick(h.ready)
}

// take returns what there is to say as payloads, each "position;numbers", or "position;*" for everybody.
func (h *herald) take() (payloads []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lsn == 0 {
		return nil
	}
	head := h.lsn.String() + ";"
	payload := []byte(head)
	switch {
	case h.all:
		payload = append(payload, '*')
	default:
		for i, n := range slices.Sorted(maps.Keys(h.scopes)) {
			if len(payload) > notifyPayload {
				payloads, payload = append(payloads, string(payload)), []byte(head)
			} else if i > 0 {
				payload = append(payload, ',')
			}
			payload = strconv.AppendInt(payload, n, 10)
		}
	}
	h.lsn, h.all = 0, false
	clear(h.scopes)
	return append(payloads, string(payload))
}

// herald.run notifies on its own connection: an application's NOTIFY can hold the lock that ours needs for long.
func (h *herald) run(ctx context.Context, conn *pgconn.PgConn) error {
	for {
		select {
		case <-h.ready:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		payloads := h.take()
		for len(payloads) > 0 {
			err := notify(ctx, conn, payloads[0])
			if err == nil {
				payloads = payloads[1:]
				continue
			}
			if conn.IsClosed() || ctx.Err() != nil {
				return err
			}
			select {
			case <-time.After(notifyAgain):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

func notify(ctx context.Context, conn *pgconn.PgConn, payload string) error {
	_, err := query(ctx, conn, "SELECT pg_notify('"+notifyChannel+"', $1)", payload)
	return err
}

// keeper does what is not on the way of transactions: heartbeats, flush positions, the sweep of fences of pushes.
type keeper struct {
	s       *session
	conn    *pgconn.PgConn
	sweep   bool // fences may be waiting
	horizon string
	barrier pglogrepl.LSN
	swept   time.Time
	dropped time.Time // last try to drop triggers
}

func (k *keeper) run(ctx context.Context) error {
	k.sweep = true // from an earlier life
	checked, looked := time.Time{}, time.Time{}
	for {
		_, debts := k.s.ledger.position()
		pause := min(k.s.heart.due(), time.Second)
		if debts {
			pause = min(pause, settlePoll)
		}
		select {
		case <-k.s.pushes:
			k.sweep = true
		case <-k.s.departures:
			k.s.triggersDue, k.dropped = true, time.Time{}
		case <-time.After(max(pause, time.Millisecond)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := k.settle(ctx); err != nil {
			return err
		}
		if time.Since(checked) > min(k.s.heart.period(), 5*time.Second) {
			checked = time.Now()
			if err := k.s.checkAsync(ctx, k.conn); err != nil {
				return err
			}
			if err := k.s.keys.refresh(ctx, k.conn); err != nil {
				return err
			}
		}
		if time.Since(looked) > min(k.s.heart.period(), driftPeriod) {
			looked = time.Now()
			if err := k.s.checkDrift(ctx, k.conn); err != nil {
				return err
			}
		}
		if k.s.triggersDue && time.Since(k.dropped) > time.Second {
			k.dropped = time.Now()
			if err := k.s.dropTriggers(ctx, k.conn); err != nil {
				return err
			}
		}
		if err := k.sweepFences(ctx); err != nil {
			return err
		}
	}
}

// settle writes a due heartbeat, together with the position that an idle stream has reached, and learns what is flushed.
func (k *keeper) settle(ctx context.Context) error {
	idle, ahead := k.s.ledger.unseen()
	_, debts := k.s.ledger.position()
	write := k.s.heart.due() == 0 || (ahead > seenAhead && time.Since(k.s.heart.lastWritten()) > 250*time.Millisecond)
	if !write && !debts {
		return nil
	}
	if write {
		lsn := "0/0"
		if idle != 0 {
			lsn = idle.String()
		}
		ours, err := query(ctx, k.conn, `UPDATE synchro.progress SET heartbeat_at = clock_timestamp(), seen_lsn = greatest(seen_lsn, $1::text::pg_lsn)
 WHERE stream_generation = $2::text::int8 RETURNING 1`, lsn, itoa(k.s.state.streamGeneration))
		if sqlState(err) == lockNotAvailable {
			return nil // the applier ends a batch: soon again
		} else if err != nil {
			return err
		} else if len(ours) == 0 {
			return errIdentity // a dump is being restored into this database
		}
		k.s.heart.written()
	}
	r, err := one(ctx, k.conn, "SELECT pg_current_wal_insert_lsn(), pg_current_wal_flush_lsn()")
	if err != nil {
		return err
	}
	local, err := parseLSN(r[0])
	if err != nil {
		return err
	}
	flushed, err := parseLSN(r[1])
	if err != nil {
		return err
	}
	if write && idle != 0 {
		k.s.ledger.recorded(idle, local, flushed, 0)
	} else {
		k.s.ledger.flushed(flushed)
	}
	return nil
}

// sweepFences deletes versions of pushes that are materialized. All transactions below a snapshot's xmin have ended before
// the WAL position read with it; once that position is materialized, so are they. Rows that are not visible are never met.
func (k *keeper) sweepFences(ctx context.Context) error {
	if k.barrier == 0 {
		if !k.sweep || time.Since(k.swept) < fenceSweep {
			return nil
		}
		r, err := one(ctx, k.conn, "SELECT pg_snapshot_xmin(pg_current_snapshot()), pg_current_wal_insert_lsn()")
		if err != nil {
			return err
		}
		if k.barrier, err = parseLSN(r[1]); err != nil {
			return err
		}
		k.horizon, k.sweep = r.text(0), false
	}
	if k.s.ledger.reached() < k.barrier {
		return nil
	}
	k.barrier, k.swept = 0, time.Now()
	_, err := query(ctx, k.conn, "DELETE FROM synchro.push_fence WHERE top_xid < $1::text::xid8", k.horizon)
	return err
}

// checkAsync ends the session when our walsender has become a synchronous standby: every commit of the cluster would wait
// for what we acknowledge.
func (s *session) checkAsync(ctx context.Context, conn *pgconn.PgConn) error {
	rows, err := query(ctx, conn, "SELECT sync_state FROM pg_stat_replication WHERE pid = $1", strconv.Itoa(int(s.stream.PID())))
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r[0] != nil && r.text(0) != "async" {
			return errSynchronous
		}
	}
	return nil
}
