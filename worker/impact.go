package worker

import (
	"context"
	"strconv"

	"github.com/jackc/pglogrepl"
)

// Images that go to an impact function at a time.
const (
	impactRows  = 1000
	impactBytes = 4 << 20
)

// againRows are impacted rows that are read and evaluated at a time: the sooner the first are asked for, the sooner the database has work.
const againRows = 5000

// stNumber gives the effects of one event in one scope their ordinals: in the order of table ids and keys. $1: scopes, $2: the
// first commit.
var stNumber = &statement{"number", `UPDATE synchro.scope_entry e SET effect_ordinal = n.wanted
  FROM (SELECT x.scope_no, x.rel_no, x.key, x.effect_ordinal,
               (row_number() OVER (PARTITION BY x.scope_no, x.commit_lsn, x.event_ordinal ORDER BY l.table_id, x.key) - 1)::int4 AS wanted
          FROM unnest($1::int8[]) AS u(scope_no)
          JOIN (SELECT * FROM synchro.scope_entry WHERE state <> 'x' UNION ALL SELECT * FROM synchro.scope_entry WHERE state = 'x') x
            ON x.scope_no = u.scope_no AND x.commit_lsn >= $2::pg_lsn
          JOIN synchro.relation l ON l.rel_no = x.rel_no) n
 WHERE n.wanted <> n.effect_ordinal AND e.scope_no = n.scope_no AND e.rel_no = n.rel_no AND e.key = n.key`}

// consequence evaluates what has to wait until everything is stored: the rows that changed dependency rows impact, and those of
// late relations. base are changes that are stored and evaluated but have no entries yet. It returns changes to settle with numbered
// effects; when the rows are too many for memory it settles part by part, and numbers the effects in the database.
func (a *applier) consequence(ctx context.Context, base []*changes, high pglogrepl.LSN) ([]call, error) {
	f := a.after
	if err := a.evaluateImpacts(ctx); err != nil {
		return nil, err
	}
	if err := a.cfg.failAt("impacted"); err != nil {
		return nil, err
	}
	if err := f.touched.sealed(); err != nil {
		return nil, err
	}
	limits := a.cfg.Limits()
	most := max(int(limits.MemoryBytes/touchedMemory/4), limits.BatchMaxRows)
	parts := (f.rows + most - 1) / most
	for part := range parts {
		again := &again{applier: a}
		err := f.gather(a.reg, base, uint64(part), uint64(parts), min(againRows, limits.BatchMaxRows), func(ch *changes) error { return again.add(ctx, ch) })
		if err == nil {
			err = again.finish(ctx)
		}
		if err != nil {
			return nil, err
		}
		if err := a.cfg.failAt("evaluated"); err != nil {
			return nil, err
		}
		if parts == 1 && !a.pieces {
			base = append(base, again.all...)
			break
		}
		calls, err := a.settle(ctx, again.all, high, numberLater)
		if err != nil {
			return nil, err
		}
		if err := a.pipeline.run(ctx, calls); err != nil {
			return nil, err
		}
	}
	if parts <= 1 && !a.pieces {
		return a.settle(ctx, base, high, numberNow)
	}
	calls, err := a.settle(ctx, base, high, numberLater)
	if err != nil || f.first == 0 {
		return calls, err
	}
	scopes := array{elem: oidInt8}
	for s := range a.scopes {
		scopes.u64(uint64(s))
	}
	return append(calls, call{statement: stNumber, expect: -1, params: [][]byte{scopes.param(), lsnParam(f.first)}}), nil
}

// question is a call of one dependency's impact function being made up.
type question struct {
	old, now array
	at       []rowChange
}

// evaluateImpacts asks the impact functions about the changed rows that others depend on.
func (a *applier) evaluateImpacts(ctx context.Context) error {
	f := a.after
	if err := f.images.sealed(); err != nil {
		return err
	}
	asked := map[*dependency]*question{}
	var order []*dependency
	ask := func(deps ...*dependency) error {
		var calls, pending []call
		for _, d := range deps {
			q := asked[d]
			if len(q.at) == 0 {
				continue
			}
			params := [][]byte{q.old.param(), q.now.param()}
			if d.pending {
				pending = append(pending, call{statement: d.impact, relNo: d.target.no, expect: -1, params: params, onRow: a.noteImpacted(d)})
				continue
			}
			calls = append(calls, call{statement: d.impact, relNo: d.source.no, expect: -1, params: params,
				onRow: func(v [][]byte) error {
					i, ok := parseOrdinal(v[0])
					if !ok || i >= len(q.at) {
						return errCount
					}
					return f.impact(d.target, &q.at[i], v[1])
				}})
		}
		if len(calls) > 0 {
			if err := a.pipeline.run(ctx, calls); err != nil {
				return err
			}
		}
		if err := a.markImpacted(ctx, pending); err != nil {
			return err
		}
		for _, d := range deps {
			q := asked[d]
			*q = question{old: array{elem: oidJSONB, buf: q.old.buf}, now: array{elem: oidJSONB, buf: q.now.buf}, at: q.at[:0]}
		}
		return nil
	}
	err := f.images.each(func(_ int64, relNo uint32, which byte, body []byte) error {
		rel := a.reg.byNo[int32(relNo)]
		if rel == nil {
			return errMalformed
		}
		m, err := parseImage(rel, which, body)
		if err != nil {
			return err
		}
		for i, d := range rel.impacts {
			if m.concerned[i] != 't' {
				continue
			}
			q := asked[d]
			if q == nil {
				q = &question{old: array{elem: oidJSONB}, now: array{elem: oidJSONB}}
				asked[d] = q
				order = append(order, d)
			}
			q.old.jsonb(m.old)
			q.now.jsonb(m.now)
			q.at = append(q.at, m.at)
			if len(q.at) >= impactRows || len(q.old.buf)+len(q.now.buf) >= impactBytes {
				if err := ask(d); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return ask(order...)
}

// again reads rows of projections anew and evaluates the memberships of those that are there. The next ones are always asked for before the
// answers about these are waited for, and while they are gathered the database works.
type again struct {
	*applier
	all  []*changes
	read uint64 // group of the newest ones, which are not evaluated yet
	last uint64 // group
}

// add asks for rows, and for the memberships of those before.
func (g *again) add(ctx context.Context, ch *changes) error {
	group, err := g.send(ctx, []call{{statement: ch.rel.sql.read, relNo: ch.rel.no, expect: 1, params: [][]byte{ch.keys.param()},
		binary: binaryColumn, onRow: ch.readAgain}})
	if err == nil {
		err = g.evaluate(ctx)
	}
	g.all, g.read, g.last = append(g.all, ch), group, max(group, g.last)
	return err
}

// evaluate asks for the memberships of the newest rows.
func (g *again) evaluate(ctx context.Context) error {
	if len(g.all) == 0 {
		return nil
	}
	if err := g.await(ctx, g.read); err != nil {
		return err
	}
	ch := g.all[len(g.all)-1]
	if len(ch.there) == 0 {
		return nil
	}
	var err error
	g.last, err = g.send(ctx, []call{g.evaluation(ch)})
	return err
}

func (g *again) finish(ctx context.Context) error {
	if err := g.evaluate(ctx); err != nil {
		return err
	}
	return g.await(ctx, g.last)
}

// parseOrdinal reads a one-based ordinal in text form.
func parseOrdinal(b []byte) (int, bool) {
	i, err := strconv.Atoi(asString(b))
	return i - 1, err == nil && i >= 1
}
