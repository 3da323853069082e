package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
)

// Statements of every batch. The guard on end_lsn makes a second worker, or one that missed a reset, fail loudly.
var (
	stBegin    = &statement{"begin", "BEGIN"}
	stCommit   = &statement{"commit", "COMMIT"}
	stCustom   = &statement{"custom", "SET LOCAL plan_cache_mode = force_custom_plan"}
	stProgress = &statement{"progress", `UPDATE synchro.progress
   SET commit_lsn = $1::pg_lsn, end_lsn = $2::pg_lsn, seen_lsn = greatest(seen_lsn, $2::pg_lsn, $3::pg_lsn),
       committed_at = 'epoch'::timestamptz + ($4::int8 + 946684800000000) * interval '1 microsecond',
       ignored_messages = ignored_messages + $5::int8, heartbeat_at = clock_timestamp()
 WHERE end_lsn = $6::pg_lsn AND stream_generation = $7::int8`}
	stSeen = &statement{"seen", `UPDATE synchro.progress SET seen_lsn = greatest(seen_lsn, $1::pg_lsn), heartbeat_at = clock_timestamp()
 WHERE end_lsn = $2::pg_lsn AND stream_generation = $3::int8`}
	stClients = &statement{"clients", `INSERT INTO synchro.client_materialized AS c (client_no, write_epoch)
SELECT * FROM unnest($1::int8[], $2::int8[])
    ON CONFLICT (client_no) DO UPDATE SET write_epoch = greatest(c.write_epoch, excluded.write_epoch)`}
	stLSN = &statement{"lsn", "SELECT pg_current_wal_insert_lsn(), pg_current_wal_flush_lsn()"}
)

// bigBatch is the size from which statements are planned for their real number of rows. A small one takes the generic
// plan: planning would cost more than running it.
const bigBatch = 64

// errCount says that a statement met another number of rows than it must: the projection is not what the stream says.
var errCount = errors.New("a projection lacks rows")

// failure is an error of one call.
type failure struct {
	relNo  int32
	member bool
	err    error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// applier executes work on the apply connection and is the only writer of the materialized state.
type applier struct {
	cfg      Config
	conn     *pgconn.PgConn
	works    <-chan *work
	ledger   *ledger
	state    *progress
	reg      *registry
	single   pglogrepl.LSN
	prepared map[string]bool
	open     bool     // inside the database transaction of a huge batch
	scopes   []string // touched by it so far
	notify   func(pglogrepl.LSN, []string)
	pushed   func() // a push was materialized
	left     func() // a relation left the registry
}

func (a *applier) run(ctx context.Context) error {
	for {
		select {
		case w := <-a.works:
			if err := a.do(ctx, w); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
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
	err := a.execute(ctx, w)
	if err == nil || ctx.Err() != nil || (transient(err) && !errors.Is(err, errCount)) || errors.As(err, new(*refusal)) {
		return err
	}
	return a.judge(err, w.commit.commitLSN)
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
		switch code := sqlState(err); {
		case code == "SY201":
			p.class = classEvaluation
		case code == "22P02" || code == "SY115":
			p.class = classValue
		}
	}
	return p
}

// execute sends one piece of work in one round trip.
func (a *applier) execute(ctx context.Context, w *work) error {
	calls := make([]call, 0, len(w.calls)+6)
	add := func(st *statement, expect int64, params ...[]byte) {
		calls = append(calls, call{statement: st, params: params, expect: expect})
	}
	explicit := a.open || !w.last || w.act != nil || w.rows >= bigBatch
	if explicit && !a.open {
		add(stBegin, -1)
		if w.rows >= bigBatch || !w.last {
			add(stCustom, -1)
		}
		a.open, a.scopes = true, nil
	}
	calls = append(calls, w.calls...)
	if w.act != nil { // the rows of the registering transaction belong to the old generation: first they, then the new one
		if err := a.pipeline(ctx, calls, nil); err != nil {
			return err
		}
		calls = calls[:0]
		reg, err := a.activate(ctx, w)
		if err != nil {
			return err
		}
		defer func() {
			if !a.open {
				a.reg = reg
				w.done <- reg
			}
		}()
	}
	if err := a.cfg.failAt("apply"); err != nil {
		return err
	}
	source := max(w.commit.endLSN, w.seen)
	if w.last {
		a.ending(w, add)
		if explicit {
			add(stCommit, -1)
		}
	}
	var local, flushed pglogrepl.LSN
	if err := a.pipeline(ctx, calls, func(r row) (err error) {
		if local, err = parseLSN(r[0]); err == nil {
			flushed, err = parseLSN(r[1])
		}
		return err
	}); err != nil {
		return err
	}
	if !w.last {
		return nil
	}
	if w.commit.endLSN != 0 {
		a.state.commitLSN, a.state.endLSN = w.commit.commitLSN, w.commit.endLSN
	}
	a.open = false
	if err := a.cfg.failAt("committed"); err != nil {
		return err
	}
	a.ledger.recorded(source, local, flushed, w.items)
	if w.commit.endLSN != 0 {
		a.notify(w.commit.commitLSN, a.scopes)
	}
	a.scopes = nil
	if len(w.clients) > 0 {
		a.pushed()
	}
	return nil
}

// ending adds what the last piece of a batch records.
func (a *applier) ending(w *work, add func(*statement, int64, ...[]byte)) {
	if len(w.clients) > 0 {
		ids, epochs := array{elem: oidInt8}, array{elem: oidInt8}
		for id, epoch := range w.clients {
			ids.u64(uint64(id))
			epochs.u64(uint64(epoch))
		}
		add(stClients, -1, ids.param(), epochs.param())
	}
	generation := u64Param(uint64(a.state.streamGeneration))
	switch {
	case w.commit.endLSN != 0:
		add(stProgress, 1, lsnParam(w.commit.commitLSN), lsnParam(w.commit.endLSN), lsnParam(w.seen), u64Param(uint64(w.commit.time)),
			u64Param(uint64(w.ignored)), lsnParam(a.state.endLSN), generation)
	case w.seen != 0:
		add(stSeen, 1, lsnParam(w.seen), lsnParam(a.state.endLSN), generation)
	}
}

// pipeline sends calls in one round trip and checks their results. With onLSN, the local WAL positions after the commit
// are read in the same round trip.
func (a *applier) pipeline(ctx context.Context, calls []call, onLSN func(row) error) error {
	if len(calls) == 0 && onLSN == nil {
		return nil
	}
	stop := context.AfterFunc(ctx, func() { _ = a.conn.Conn().SetDeadline(time.Unix(1, 0)) })
	defer stop()
	p := a.conn.StartPipeline(context.Background())
	var sent []*call // nil: a statement being prepared
	prepare := func(st *statement) {
		if !a.prepared[st.name] {
			p.SendPrepare(st.name, st.sql, nil)
			a.prepared[st.name] = true
			sent = append(sent, nil)
		}
	}
	for i := range calls {
		prepare(calls[i].statement)
		p.SendQueryPrepared(calls[i].name, calls[i].params, binaryFormat(len(calls[i].params)), textFormat)
		sent = append(sent, &calls[i])
	}
	err := p.Sync()
	if err == nil && onLSN != nil {
		prepare(stLSN)
		p.SendQueryPrepared(stLSN.name, nil, nil, textFormat)
		err = p.Sync()
	}
	if err == nil {
		err = a.results(p, sent, onLSN)
	}
	if cerr := p.Close(); err == nil {
		err = cerr
	}
	return err
}

func (a *applier) results(p *pgconn.Pipeline, sent []*call, onLSN func(row) error) error {
	at, syncs, want := 0, 0, 1
	if onLSN != nil {
		want = 2
	}
	for syncs < want {
		res, err := p.GetResults()
		if err != nil {
			return a.blame(sent, at, err)
		}
		switch res := res.(type) {
		case *pgconn.PipelineSync:
			syncs++
		case *pgconn.StatementDescription:
			at++
		case *pgconn.ResultReader:
			r := res.Read()
			if r.Err != nil {
				return a.blame(sent, at, r.Err)
			}
			if at >= len(sent) { // the position query
				if len(r.Rows) == 1 && len(r.Rows[0]) == 2 {
					err = onLSN(r.Rows[0])
				}
			} else {
				err = a.check(sent[at], r)
			}
			at++
			if err != nil {
				return err
			}
		case nil:
			return errors.New("the server sent fewer results than expected")
		}
	}
	return nil
}

// blame adds to an error which relation's statement it came from.
func (a *applier) blame(sent []*call, at int, err error) error {
	if at < len(sent) && sent[at] == nil && at+1 < len(sent) {
		at++ // preparing it
	}
	if at < len(sent) && sent[at] != nil && sent[at].relNo != 0 {
		return &failure{relNo: sent[at].relNo, err: err}
	}
	return err
}

// check compares what a call did with what it must have done.
func (a *applier) check(c *call, r *pgconn.Result) error {
	n := r.CommandTag.RowsAffected()
	if c.touches {
		if len(r.Rows) != 1 {
			return fmt.Errorf("%s: unexpected result", c.name)
		}
		n = row(r.Rows[0]).int64(0)
		if list := r.Rows[0][1]; len(list) > 0 {
			for _, s := range bytes.Split(list, []byte(",")) {
				a.scopes = append(a.scopes, string(s))
			}
		}
	}
	if c.expect >= 0 && n != c.expect {
		if c.statement == stProgress || c.statement == stSeen {
			return errTakenOver
		}
		return &failure{relNo: c.relNo, err: errCount}
	}
	return nil
}

var (
	textFormat    = []int16{0}
	binaryFormats = slices.Repeat([]int16{1}, 1700)
)

func binaryFormat(n int) []int16 { return binaryFormats[:n] }

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
