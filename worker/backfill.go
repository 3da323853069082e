package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// backfill is the oldest pending generation: the edges that its rules make are staged beside the live ones, in batches that are
// database transactions of their own, from the projections as they are between two source transactions. What a source
// transaction changes afterwards is marked, and evaluated again before the generation becomes active.
type backfill struct {
	generation int64
	complete   bool        // every row was looked at, and the message that makes it active is on its way
	next       *registry   // the generation itself
	capture    *registry   // what rows are captured with meanwhile
	targets    []*relation // of next: those under new rules, or with another deletion column, and those new to clients, in the order of their table ids
	byNo       map[int32]*relation
	at         int    // index of the target at work; len(targets): all were looked at
	begun      bool   // some of it is staged: up to last
	last       string // key
	due        bool   // rows may be marked
	chased     int    // batches of marked rows since every row was looked at
}

// chase is how many batches of marked rows are staged before the end is announced anyway: the rest comes at the boundary.
const chase = 100

// rejection says that the pending generation cannot become active, whatever is waited for.
type rejection struct {
	reason string
	relNo  int32
	err    error
}

func (r *rejection) Error() string { return fmt.Sprintf("%s: %v", r.reason, r.err) }
func (r *rejection) Unwrap() error { return r.err }

// Reasons of rejections, beside the classes of blocks.
const (
	reasonBase     = "base_rejected"
	reasonAffected = "affected_scopes_incomplete"
)

var (
	errStage    = errors.New("what is staged is not what the projections hold")
	errRejected = errors.New("a pending generation was rejected")
)

// loadBackfill reads the generations that wait. The first one is at work; nil: there is none.
func loadBackfill(ctx context.Context, conn *pgconn.PgConn, active *registry) (*backfill, error) {
	rows, err := query(ctx, conn, `SELECT generation, state, coalesce(rel_no, 0), last_key IS NOT NULL, coalesce(last_key, '')
  FROM synchro.backfill WHERE state <> 'rejected' ORDER BY generation`)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	var queued []*registry
	for _, r := range rows {
		reg, err := loadRegistry(ctx, conn, r.int64(0))
		if err != nil {
			return nil, err
		}
		queued = append(queued, reg)
	}
	r, next := rows[0], queued[0]
	f := &backfill{generation: next.generation, next: next, complete: r.text(1) == "complete", byNo: map[int32]*relation{}, due: true}
	changed, err := query(ctx, conn, "SELECT synchro._changed_rules($1::text::int8, $2::text::int8)", itoa(active.generation), itoa(next.generation))
	if err != nil {
		return nil, err
	}
	for _, rel := range next.ordered() {
		isChanged := slices.ContainsFunc(changed, func(c row) bool { return int32(c.int64(0)) == rel.no })
		was := active.byNo[rel.no]
		if rel.kind == kindSynced && (isChanged || was == nil || was.kind != kindSynced || was.deleted != rel.deleted) {
			if int64(rel.no) == r.int64(2) && r.text(3) == "t" {
				f.at, f.begun, f.last = len(f.targets), true, r.text(4)
			}
			f.targets = append(f.targets, rel)
			f.byNo[rel.no] = rel
		}
	}
	if f.complete {
		f.at = len(f.targets)
	}
	f.capture, err = loadCapture(ctx, conn, active.generation, f, queued)
	return f, err
}

// arrive notes a generation that has to be staged, or wait for one that is.
func (a *applier) arrive(ctx context.Context, generation int64) error {
	fresh, err := query(ctx, a.conn, "INSERT INTO synchro.backfill (generation) VALUES ($1::text::int8) ON CONFLICT DO NOTHING RETURNING 1", itoa(generation))
	if err != nil || len(fresh) == 0 { // withdrawn before it came
		return err
	}
	broken, err := one(ctx, a.conn, "SELECT synchro._built_on_rejected($1::text::int8)", itoa(generation))
	if err != nil {
		return err
	}
	if broken.text(0) == "t" {
		if err := a.discard(ctx, generation, &rejection{reason: reasonBase}); err != nil {
			return err
		}
	} else {
		// What was read is put in place at once: the rules in force do not need it, and from here on it is kept up to date.
		next, err := loadRegistry(ctx, a.conn, generation)
		if err != nil {
			return err
		}
		anew, err := a.renewed(ctx, next)
		if err != nil {
			return err
		}
		if err := a.take(ctx, next, anew); err != nil {
			return err
		}
	}
	if a.fill, err = loadBackfill(ctx, a.conn, a.active); err != nil {
		return err
	}
	return a.cfg.failAt("arrived")
}

// mark notes which staged rows a piece of work changes.
func (f *backfill) mark(all []*changes) (calls []call) {
	if f == nil {
		return nil
	}
	for _, ch := range all {
		rel := f.byNo[ch.rel.no]
		if rel == nil {
			continue
		}
		if ch.keys.n > 0 {
			calls = append(calls, call{statement: rel.sql.mark(), relNo: rel.no, expect: -1, params: [][]byte{ch.keys.param()}})
			f.due = true
		}
		if ch.gone.n > 0 {
			calls = append(calls, call{statement: rel.sql.unmark(), relNo: rel.no, expect: -1, params: [][]byte{ch.gone.param()}})
		}
	}
	return calls
}

// waiting: there is something to stage.
func (f *backfill) waiting() bool { return f != nil && (!f.complete || f.due) }

// pick chooses the next rows: first every row once, in key order, then those that were marked since.
func (a *applier) pick(ctx context.Context, f *backfill, limit int) (*relation, []row, error) {
	for ; f.at < len(f.targets); f.at, f.begun, f.last = f.at+1, false, "" {
		rel := f.targets[f.at]
		rows, err := query(ctx, a.conn, rel.sql.following(f.begun, limit), f.last)
		if err != nil || len(rows) > 0 {
			return rel, rows, err
		}
	}
	if f.chased++; f.chased > chase && !f.complete {
		return nil, nil, nil
	}
	for _, rel := range f.targets {
		rows, err := query(ctx, a.conn, fmt.Sprintf("SELECT key FROM synchro.staged_membership WHERE rel_no = %d AND scopes IS NULL ORDER BY key LIMIT %d", rel.no, limit))
		if err != nil || len(rows) > 0 {
			return rel, rows, err
		}
	}
	return nil, nil, nil
}

// stage stages one batch, or finds that all is staged. It returns the number of rows.
func (a *applier) stage(ctx context.Context) (int, error) {
	n, err := a.stageBatch(ctx, a.fill)
	return n, a.refused(ctx, a.fill.generation, rejected(ctx, err))
}

func (a *applier) stageBatch(ctx context.Context, f *backfill) (int, error) {
	if _, err := query(ctx, a.conn, "BEGIN"); err != nil {
		return 0, err
	}
	rel, rows, err := a.pick(ctx, f, max(a.cfg.Limits().BackfillBatchSize, 1))
	if err != nil {
		return 0, err
	}
	switch {
	case len(rows) > 0:
		if err := a.stageRows(ctx, f, rel, rows); err != nil {
			return 0, err
		}
	case f.complete:
		f.due = false
	default:
		// The boundary: where this very transaction commits. It must reach the stream now.
		if _, err := query(ctx, a.conn, "SELECT set_config('synchronous_commit', 'local', true), synchro._emit_switch($1::text::int8)", itoa(f.generation)); err != nil {
			return 0, err
		}
		if _, err := query(ctx, a.conn, "UPDATE synchro.backfill SET state = 'complete' WHERE generation = $1::text::int8", itoa(f.generation)); err != nil {
			return 0, err
		}
		f.complete = true
	}
	if f.at < len(f.targets) && len(rows) > 0 {
		f.begun, f.last = true, rows[len(rows)-1].text(0)
		if _, err := query(ctx, a.conn, "UPDATE synchro.backfill SET rel_no = $2::text::int4, last_key = $3 WHERE generation = $1::text::int8",
			itoa(f.generation), itoa(int64(rel.no)), f.last); err != nil {
			return 0, err
		}
	}
	if err := a.cfg.failAt("stage"); err != nil {
		return 0, err
	}
	if _, err := query(ctx, a.conn, "COMMIT"); err != nil {
		return 0, err
	}
	return len(rows), a.cfg.failAt("staged")
}

// stageRows evaluates rows under the pending rule and stores the result.
func (a *applier) stageRows(ctx context.Context, f *backfill, rel *relation, rows []row) error {
	ch := &changes{rel: rel, keys: array{elem: oidText}, rows: make([]rowChange, len(rows))}
	for i, r := range rows {
		ch.rows[i] = rowChange{key: addKey(&ch.keys, r[0])}
	}
	if err := a.pipeline.run(ctx, []call{a.evaluation(ch)}); err != nil {
		return err
	}
	if err := a.intern(ctx, []*changes{ch}, a.state.commitLSN); err != nil {
		return err
	}
	lists := array{elem: oidText}
	var list []byte
	for i := range ch.rows {
		slices.Sort(ch.rows[i].now)
		list = appendList(list[:0], ch.rows[i].now)
		lists.text(list)
	}
	count := call{statement: stStaged, expect: 1, params: [][]byte{u64Param(uint64(f.generation)), u64Param(uint64(len(rows)))}}
	return a.pipeline.run(ctx, []call{count,
		{statement: rel.sql.staged(), relNo: rel.no, expect: int64(len(rows)), params: [][]byte{ch.keys.param(), lists.param()}}})
}

// drain evaluates every marked row: nothing but the activation comes next.
func (a *applier) drain(ctx context.Context) error {
	for a.fill.due {
		if _, err := a.stage(ctx); err != nil {
			return err
		}
	}
	return nil
}

// reject records that the pending generation will never be active, and ends the session: nothing of it is kept in memory.
func (a *applier) reject(ctx context.Context, generation int64, no *rejection) error {
	if _, err := query(ctx, a.conn, "ROLLBACK"); err != nil {
		return err
	}
	if _, err := query(ctx, a.conn, "BEGIN"); err != nil {
		return err
	}
	if _, err := query(ctx, a.conn, "SELECT set_config('synchronous_commit', 'local', true)"); err != nil {
		return err
	}
	if err := a.discard(ctx, generation, no); err != nil {
		return err
	}
	if _, err := query(ctx, a.conn, "COMMIT"); err != nil {
		return err
	}
	return &replay{cause: errRejected}
}

// rejected makes an error that will come again, of something that only a pending generation needs, a rejection of it.
func rejected(ctx context.Context, err error) error {
	passes := transient(err) && !errors.Is(err, errCount) && !errors.Is(err, errStage)
	if err == nil || ctx.Err() != nil || passes || sqlState(err) == divisionByZero || errors.As(err, new(*rejection)) {
		return err
	}
	no := &rejection{reason: evaluationClass(err), err: err}
	var f *failure
	if errors.As(err, &f) {
		no.relNo = f.relNo
	}
	return no
}

// refused carries a rejection out; other errors pass.
func (a *applier) refused(ctx context.Context, generation int64, err error) error {
	var no *rejection
	if errors.As(err, &no) {
		return a.reject(ctx, generation, no)
	}
	return err
}

// discard rejects a generation in the open transaction. What was stored ahead for it, and for those that go with it, goes.
func (a *applier) discard(ctx context.Context, generation int64, no *rejection) error {
	if _, err := query(ctx, a.conn, "SELECT synchro._reject_generation($1::text::int8, $2, nullif($3::text::int4, 0))",
		itoa(generation), no.reason, itoa(int64(no.relNo))); err != nil {
		return err
	}
	if no.reason != reasonBase { // one that was at work
		if _, err := query(ctx, a.conn, "DELETE FROM synchro.staged_membership"); err != nil {
			return err
		}
	}
	rows, err := query(ctx, a.conn, `SELECT DISTINCT r.rel_no FROM synchro.registration r
  JOIN synchro.backfill b ON b.generation = r.generation AND b.state = 'rejected' AND b.generation > (SELECT p.registry_generation FROM synchro.progress p)
 WHERE NOT EXISTS (SELECT FROM synchro.standing_registration s WHERE s.rel_no = r.rel_no)`)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if _, err := query(ctx, a.conn, "DELETE FROM synchro_data.r_"+r.text(0)); err != nil {
			return err
		}
	}
	return nil
}
