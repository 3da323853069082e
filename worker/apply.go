package worker

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
)

// Statements of every batch. The guard on end_lsn makes a second worker, or one that missed a reset, fail: by a division
// by zero, which undoes the batch in the same round trip.
var (
	stBegin    = &statement{"begin", "BEGIN"}
	stCommit   = &statement{"commit", "COMMIT"}
	stProgress = &statement{"progress", `WITH u AS (UPDATE synchro.progress
   SET commit_lsn = $1::pg_lsn, end_lsn = $2::pg_lsn, seen_lsn = greatest(seen_lsn, $2::pg_lsn, $3::pg_lsn),
       committed_at = 'epoch'::timestamptz + ($4::int8 + 946684800000000) * interval '1 microsecond',
       ignored_messages = ignored_messages + $5::int8, heartbeat_at = clock_timestamp()
 WHERE end_lsn = $6::pg_lsn AND stream_generation = $7::int8 RETURNING 1) SELECT 1 / count(*) FROM u`}
	stSeen = &statement{"seen", `WITH u AS (UPDATE synchro.progress SET seen_lsn = greatest(seen_lsn, $1::pg_lsn), heartbeat_at = clock_timestamp()
 WHERE end_lsn = $2::pg_lsn AND stream_generation = $3::int8 RETURNING 1) SELECT 1 / count(*) FROM u`}
	stClients = &statement{"clients", `INSERT INTO synchro.client_materialized AS c (client_no, write_epoch)
SELECT * FROM unnest($1::int8[], $2::int8[])
    ON CONFLICT (client_no) DO UPDATE SET write_epoch = greatest(c.write_epoch, excluded.write_epoch)`}
	stLSN = &statement{"lsn", "SELECT pg_current_wal_insert_lsn(), pg_current_wal_flush_lsn()"}
)

// stageShare bounds how long work may wait for what is staged after the work before it.
const stageShare = 100 * time.Millisecond

const divisionByZero = "22012"

// applier executes work on the apply connection and is the only writer of the materialized state.
type applier struct {
	*materializer
	cfg    Config
	works  <-chan *work
	ledger *ledger
	state  *progress
	reg    *registry            // that rows are captured with
	active *registry            // whose rules are in force: the same, unless generations wait
	fill   *backfill            // the pending generation at work, nil: none
	marks  map[*relation]*array // keys that events have impacted under its rules
	single pglogrepl.LSN
	open   bool               // inside the database transaction of a batch
	pieces bool               // which comes in more than one piece of work
	stored []piece            // of these: those that have no entries yet
	scopes map[int64]struct{} // touched by it so far
	after  *aftermath         // what it leaves to be done at its end
	news   *herald
	heart  *heart
	pushed func() // a push was materialized
	left   func() // relations may have left the registry
}

func (a *applier) run(ctx context.Context) error {
	defer a.forgetAftermath()
	for {
		w, err := a.awaitWork(ctx)
		if err != nil {
			return err
		}
		if w == nil {
			if _, err := a.stage(ctx); err != nil {
				return err
			}
			continue
		}
		if err := a.do(ctx, w); err != nil {
			return err
		}
		// Staging keeps ahead of what marks rows, however busy the stream is.
		began := time.Now()
		for rows := w.rows + 1; !a.open && a.fill.waiting() && rows > 0 && time.Since(began) < stageShare; {
			n, err := a.stage(ctx)
			if err != nil {
				return err
			}
			rows -= max(n, 1)
		}
	}
}

// awaitWork waits for work; nil means that there is none, and something to stage.
func (a *applier) awaitWork(ctx context.Context) (*work, error) {
	if !a.open && a.fill.waiting() {
		select {
		case w := <-a.works:
			return w, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		default:
			return nil, nil
		}
	}
	select {
	case w := <-a.works:
		return w, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// do carries out one piece of work. A failure that waiting does not cure asks for a replay, one transaction at a time;
// what fails again alone is poison.
func (a *applier) do(ctx context.Context, w *work) error {
	if w.poison != nil {
		return a.judge(w.poison, w.poison.commitLSN)
	}
	if w.act != nil {
		if err := a.awaitVisible(ctx, w.act.xid); err != nil {
			return err
		}
	}
	fill := a.fill
	err := a.execute(ctx, w)
	if fill != nil {
		if w.act != nil && w.act.staged {
			err = rejected(ctx, err)
		}
		err = a.refused(ctx, fill.generation, err)
	}
	if sqlState(err) == divisionByZero && !errors.As(err, new(*failure)) {
		return errTakenOver
	}
	if err == nil || ctx.Err() != nil || (transient(err) && !errors.Is(err, errCount)) || errors.As(err, new(*refusal)) {
		return err
	}
	err = a.judge(err, w.commit.commitLSN)
	var again *replay
	if errors.As(err, &again) && constraint(err) == "scope_entry_pkey" {
		for relNo := range a.inserted {
			again.returning = append(again.returning, relNo)
		}
	}
	return err
}

// judge decides between replay and poison.
func (a *applier) judge(err error, lsn pglogrepl.LSN) error {
	if lsn > a.single {
		return &replay{until: lsn, cause: err}
	}
	var p *poison
	if errors.As(err, &p) {
		return p
	}
	p = &poison{class: classMaterialization, commitLSN: lsn, ordinal: -1, err: err}
	var f *failure
	if errors.As(err, &f) {
		p.relNo = f.relNo
		p.class = evaluationClass(err)
	}
	return p
}

// evaluationClass is the class of an error of a statement that stores rows or evaluates their memberships.
func evaluationClass(err error) string {
	switch sqlState(err) {
	case "SY201":
		return classEvaluation
	case "22P02", "SY115":
		return classValue
	}
	return classMaterialization
}

// piece is work whose rows are being stored.
type piece struct {
	w     *work
	group uint64 // of the pipeline
}

// execute carries out one piece of work: one round trip stores the rows and evaluates their memberships, a second writes the
// entries and ends the database transaction. Work without rows takes one. Of a transaction in many pieces, one is stored while the
// answers to the one before are made into entries.
func (a *applier) execute(ctx context.Context, w *work) error {
	if err := a.cfg.failAt("apply"); err != nil {
		return err
	}
	if w.act != nil && w.act.staged && a.fill != nil {
		if err := a.drain(ctx); err != nil {
			return err
		}
	}
	limits := a.cfg.Limits()
	if len(w.changes) > 0 || w.act != nil || !w.last || a.open {
		var head []call
		if !a.open {
			a.open, a.pieces, a.scopes = true, !w.last, map[int64]struct{}{}
			a.begun()
			a.after = newAftermath(int(min(limits.BatchMaxBytes, limits.MemoryBytes/16)), a.cfg.TempDir)
			head = append(head, call{statement: stBegin, expect: -1})
		}
		group, err := a.store(ctx, head, w.changes, w.late, a.after)
		if err != nil {
			return err
		}
		a.stored = append(a.stored, piece{w, group})
	}
	for len(a.stored) > 1 {
		calls, err := a.next(ctx)
		if err != nil {
			return err
		}
		if _, err := a.send(ctx, calls); err != nil {
			return err
		}
	}
	if !w.last {
		return nil
	}
	calls, err := a.next(ctx)
	if err != nil {
		return err
	}
	var next *registry
	if w.act != nil { // the registering transaction's own rows belong to the old generation: first they, then the new one
		if err := a.pipeline.run(ctx, calls); err != nil {
			return err
		}
		if next, err = a.activate(ctx, w); err != nil {
			return err
		}
		calls = nil
	}
	return a.finish(ctx, w, calls, next)
}

// next waits for the oldest stored piece and returns the calls that write its entries.
func (a *applier) next(ctx context.Context) ([]call, error) {
	if err := a.cfg.failAt("stored"); err != nil {
		return nil, err
	}
	if len(a.stored) == 0 { // a marker
		return nil, nil
	}
	p := a.stored[0]
	a.stored = a.stored[1:]
	if err := a.await(ctx, p.group); err != nil {
		return nil, err
	}
	calls, err := a.evaluated(ctx, p.w)
	return append(calls, a.fill.mark(p.w.changes)...), err
}

// evaluated returns the calls that write the entries of stored work, of its last piece for all that had to wait.
func (a *applier) evaluated(ctx context.Context, w *work) ([]call, error) {
	now := w.changes
	if len(w.late) > 0 {
		now = nil
		for _, ch := range w.changes {
			if !w.late.has(ch.rel.bit) {
				now = append(now, ch)
				continue
			}
			for i := range ch.rows {
				r := &ch.rows[i]
				if err := a.after.postpone(ch.rel, r, ch.keys.buf[r.key.from:r.key.to]); err != nil {
					return nil, err
				}
			}
			if len(ch.removals) > 0 {
				now = append(now, &changes{rel: ch.rel, gone: ch.gone, removals: ch.removals})
			}
		}
	}
	if w.last && a.after != nil && a.after.any() {
		return a.consequence(ctx, now, w.commit.commitLSN)
	}
	return a.settle(ctx, now, w.commit.commitLSN, numberNone)
}

// settle returns the calls that write the entries of stored changes; when there are many it has sent the first of them.
func (a *applier) settle(ctx context.Context, all []*changes, high pglogrepl.LSN, numbers numbering) ([]call, error) {
	if err := a.intern(ctx, all, high); err != nil {
		return nil, err
	}
	if numbers >= numberBaseline {
		if err := a.effects.load(ctx, a.pipeline, all); err != nil {
			return nil, err
		}
	}
	calls, touched, err := a.entries(ctx, all, high, numbers)
	if err != nil {
		return nil, err
	}
	for _, s := range touched {
		a.scopes[s] = struct{}{}
	}
	return calls, nil
}

// finish ends a batch: it records progress, commits, and reads the local WAL positions that decide about acknowledging.
func (a *applier) finish(ctx context.Context, w *work, calls []call, next *registry) error {
	calls = append(calls, a.ending(w)...)
	if a.open {
		calls = append(calls, call{statement: stCommit, expect: -1})
	}
	var local, flushed pglogrepl.LSN
	position := call{statement: stLSN, expect: 1, onRow: func(v [][]byte) (err error) {
		if local, err = parseLSN(v[0]); err == nil {
			flushed, err = parseLSN(v[1])
		}
		return err
	}}
	if err := a.pipeline.run(ctx, calls, position); err != nil {
		return err
	}
	a.open = false
	a.forgetAftermath()
	if w.commit.endLSN != 0 {
		a.state.commitLSN, a.state.endLSN = w.commit.commitLSN, w.commit.endLSN
	}
	if err := a.cfg.failAt("committed"); err != nil {
		return err
	}
	a.ledger.recorded(max(w.commit.endLSN, w.seen), local, flushed, w.items)
	if w.commit.endLSN != 0 {
		a.heart.written()
		a.announce(w, next != nil)
	}
	a.scopes = nil
	if len(w.clients) > 0 {
		a.pushed()
	}
	if next != nil {
		if err := a.forget(ctx); err != nil {
			return err
		}
		a.setRegistry(next)
		a.left() // not before the commit: the keeper looks at what is active
		w.done <- a.reg
	}
	return nil
}

func (a *applier) forgetAftermath() {
	if a.after != nil {
		a.after.close()
		a.after = nil
	}
}

// announce tells the clients that wait what the batch has brought.
func (a *applier) announce(w *work, activated bool) {
	if activated { // even who has no scope in common with it works with another schema now
		a.news.everything(w.commit.commitLSN)
	}
	numbers := a.scopes
	if numbers == nil {
		numbers = map[int64]struct{}{}
	}
	for client := range w.clients {
		numbers[-int64(client)] = struct{}{}
	}
	if a.founded {
		numbers[0], a.founded = struct{}{}, false
	}
	a.news.add(w.commit.commitLSN, numbers)
}

// setRegistry makes a generation the active one.
func (a *applier) setRegistry(active *registry) {
	a.active, a.reg, a.schema = active, active, active.schemaVersion
	if a.fill != nil {
		a.reg = a.fill.capture
	}
}

// ending is what the last piece of a batch records.
func (a *applier) ending(w *work) (calls []call) {
	if len(w.clients) > 0 {
		ids, epochs := array{elem: oidInt8}, array{elem: oidInt8}
		for id, epoch := range w.clients {
			ids.u64(uint64(id))
			epochs.u64(uint64(epoch))
		}
		calls = append(calls, call{statement: stClients, expect: -1, params: [][]byte{ids.param(), epochs.param()}})
	}
	generation := u64Param(uint64(a.state.streamGeneration))
	record := func(st *statement, params ...[]byte) {
		calls = append(calls, call{statement: st, params: params, expect: 1})
	}
	switch {
	case w.commit.endLSN != 0:
		record(stProgress, lsnParam(w.commit.commitLSN), lsnParam(w.commit.endLSN), lsnParam(w.seen), u64Param(uint64(w.commit.time)),
			u64Param(uint64(w.ignored)), lsnParam(a.state.endLSN), generation)
	case w.seen != 0:
		record(stSeen, lsnParam(w.seen), lsnParam(a.state.endLSN), generation)
	}
	return calls
}

// awaitVisible waits until a transaction that was decoded as committed is visible to others too: its session may still
// wait for a synchronous standby.
func (a *applier) awaitVisible(ctx context.Context, xid int64) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		r, err := one(ctx, a.conn, "SELECT pg_visible_in_snapshot($1::text::xid8, pg_current_snapshot())", strconv.FormatInt(xid, 10))
		if err != nil {
			return err
		}
		if strings.HasPrefix(r.text(0), "t") {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
