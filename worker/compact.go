package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
)

// Compaction runs beside the applier, on a connection that lives as long as one compaction, and never waits for a row that the
// applier or a session holds (sql/functions/_compact_scopes.sql).
const (
	compactionBatch = 10000       // entries of one transaction of a scheduled compaction
	compactionPause = time.Minute // after a scheduled one that failed
	retryPause      = time.Second // after a requested one that failed and may go next time
	reachedPoll     = 5 * time.Millisecond
	compactionsKept = "30 days"
)

// compactionRequest is the body of message C: one batch, asked for by a call of synchro_compact.
type compactionRequest struct {
	number      int64
	staleBefore int64 // µs since 2000
	batch       int32
	lsn         pglogrepl.LSN // everything below must be materialized first
}

func parseCompaction(body []byte, lsn pglogrepl.LSN) (compactionRequest, error) {
	r := reader{b: body}
	req := compactionRequest{number: int64(r.u64()), staleBefore: int64(r.u64()), batch: int32(r.u32()), lsn: lsn}
	return req, r.end()
}

// compactor carries out compactions: those that are asked for, in order, and those that are due.
type compactor struct {
	s     *session
	mu    sync.Mutex
	asked []compactionRequest
	ready chan struct{}
}

func newCompactor(s *session) *compactor { return &compactor{s: s, ready: make(chan struct{}, 1)} }

func (c *compactor) ask(req compactionRequest) {
	c.mu.Lock()
	c.asked = append(c.asked, req)
	c.mu.Unlock()
	tick(c.ready)
}

func (c *compactor) next() (req compactionRequest, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.asked) == 0 {
		return req, false
	}
	req = c.asked[0]
	c.asked = slices.Delete(c.asked, 0, 1)
	return req, true
}

// run ends with the context only: a compaction that fails must not stop capture.
func (c *compactor) run(ctx context.Context) error {
	next := time.Now() // when to look whether one is due
	for {
		select {
		case <-c.ready:
		case <-time.After(min(max(time.Until(next), 0), time.Second)): // a reload may have changed the schedule
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for req, ok := c.next(); ok; req, ok = c.next() {
			if err := c.reached(ctx, req.lsn); err != nil {
				return err
			}
			if err := c.requested(ctx, req); err != nil {
				return err
			}
		}
		period := c.s.cfg.Limits().CompactEvery
		if period <= 0 || time.Now().Before(next) {
			continue
		}
		next = time.Now().Add(min(period, compactionPause))
		err := c.connected(ctx, func(conn *pgconn.PgConn) error {
			left, err := untilDue(ctx, conn, period)
			if err == nil && left <= 0 {
				left, err = period, c.scheduled(ctx, conn)
			}
			if err == nil {
				next = time.Now().Add(left)
			}
			return err
		})
		if err != nil {
			c.failed(ctx, err)
		}
	}
}

// requested carries out one request; what fails for good is the answer. It returns an error with the context only.
func (c *compactor) requested(ctx context.Context, req compactionRequest) error {
	for {
		err := c.connected(ctx, func(conn *pgconn.PgConn) error { return c.answer(ctx, conn, req) })
		if err == nil {
			return nil
		}
		c.failed(ctx, err)
		if !transient(err) {
			refuse := "INSERT INTO synchro.compaction (request, stale_before, failure) VALUES ($1::text::int8, clock_timestamp(), $2)"
			err = c.connected(ctx, func(conn *pgconn.PgConn) error {
				_, err := query(ctx, conn, refuse, itoa(req.number), sqlState(err))
				return err
			})
			if err == nil {
				return nil
			}
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// failed reports a failure the way a host shows it.
func (c *compactor) failed(ctx context.Context, err error) {
	if ctx.Err() == nil && c.s.cfg.Failed != nil {
		c.s.cfg.Failed(err)
	}
}

// reached waits until everything below a position is materialized.
func (c *compactor) reached(ctx context.Context, lsn pglogrepl.LSN) error {
	for c.s.ledger.reached() < lsn {
		select {
		case <-time.After(reachedPoll):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (c *compactor) connected(ctx context.Context, fn func(*pgconn.PgConn) error) error {
	conn, err := c.s.connect(ctx, "synchro compact", map[string]string{"synchronous_commit": "off", "lock_timeout": "5s"})
	if err != nil {
		return err
	}
	defer closeConn(conn)
	return fn(conn)
}

// untilDue is the time until the next scheduled compaction, counted from the last one, which may have been in an earlier life, or
// from the creation of the extension.
func untilDue(ctx context.Context, conn *pgconn.PgConn, period time.Duration) (time.Duration, error) {
	since, err := count(ctx, conn, `SELECT (extract(epoch FROM clock_timestamp() - greatest(
       (SELECT max(c.finished_at) FROM synchro.compaction c WHERE c.request IS NULL),
       (SELECT m.created_at FROM synchro.manifest m WHERE m.schema_version = 1))) * 1000)::int8`)
	return period - time.Duration(since)*time.Millisecond, err
}

// answer carries out one request, unless it was done in an earlier life.
func (c *compactor) answer(ctx context.Context, conn *pgconn.PgConn, req compactionRequest) error {
	done, err := query(ctx, conn, "SELECT 1 FROM synchro.compaction WHERE request = $1::text::int8", itoa(req.number))
	if err != nil || len(done) > 0 {
		return err
	}
	r, err := one(ctx, conn, "SELECT '2000-01-01 00:00:00+00'::timestamptz + $1::text::int8 * interval '1 microsecond'", itoa(req.staleBefore))
	if err != nil {
		return err
	}
	before := r.text(0)
	expired, err := count(ctx, conn, "SELECT synchro._expire_clients($1::text::timestamptz)", before)
	if err != nil {
		return err
	}
	deleted, err := count(ctx, conn, "SELECT o_deleted FROM synchro._compact_scopes(0, $1::text::int4)", itoa(int64(req.batch)))
	if err != nil {
		return err
	}
	other, err := count(ctx, conn, "SELECT synchro._tidy($1::text::timestamptz, $2::text::int4)", before, itoa(int64(req.batch)))
	if err != nil {
		return err
	}
	return record(ctx, conn, itoa(req.number), before, expired, deleted, other)
}

// scheduled compacts in batches until nothing is left to do. Each is a transaction: an end in between loses nothing.
func (c *compactor) scheduled(ctx context.Context, conn *pgconn.PgConn) error {
	r, err := one(ctx, conn, "SELECT clock_timestamp() - $1::text::int8 * interval '1 second'", itoa(int64(c.s.cfg.Limits().StaleClientAfter/time.Second)))
	if err != nil {
		return err
	}
	before, batch := r.text(0), itoa(compactionBatch)
	expired, err := count(ctx, conn, "SELECT synchro._expire_clients($1::text::timestamptz)", before)
	if err != nil {
		return err
	}
	deleted, other := int64(0), int64(0)
	for after := "0"; after != ""; {
		if err := c.s.fail("compact"); err != nil {
			return err
		}
		r, err := one(ctx, conn, "SELECT o_deleted, coalesce(o_after::text, '') FROM synchro._compact_scopes($1::text::int8, $2::text::int4)", after, batch)
		if err != nil {
			return err
		}
		deleted, after = deleted+r.int64(0), r.text(1)
	}
	for more := int64(1); more > 0; other += more {
		if more, err = count(ctx, conn, "SELECT synchro._tidy($1::text::timestamptz, $2::text::int4)", before, batch); err != nil {
			return err
		}
	}
	return record(ctx, conn, "", before, expired, deleted, other)
}

func count(ctx context.Context, conn *pgconn.PgConn, sql string, args ...string) (int64, error) {
	r, err := one(ctx, conn, sql, args...)
	if err != nil {
		return 0, err
	}
	return r.int64(0), nil
}

// record notes a finished compaction and forgets old ones.
func record(ctx context.Context, conn *pgconn.PgConn, request, before string, expired, deleted, other int64) error {
	_, err := query(ctx, conn, `WITH old AS (DELETE FROM synchro.compaction WHERE finished_at < clock_timestamp() - interval '`+compactionsKept+`'
    AND compaction_no < (SELECT max(c.compaction_no) FROM synchro.compaction c WHERE c.request IS NULL))
INSERT INTO synchro.compaction (request, stale_before, expired_clients, deleted_entries, deleted_other)
SELECT nullif($1, '')::int8, $2::text::timestamptz, $3::text::int8, $4::text::int8, $5::text::int8`,
		request, before, itoa(expired), itoa(deleted), itoa(other))
	return err
}
