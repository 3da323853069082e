package worker

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// loadCapture makes the configuration that rows are captured with while generations wait: that of the active one, the relations
// that those add to it, whose rows are stored and in no scope yet, and the dependencies of the rules that are being staged.
func loadCapture(ctx context.Context, conn *pgconn.PgConn, active int64, f *backfill, queued []*registry) (*registry, error) {
	reg, err := loadRegistry(ctx, conn, active)
	if err != nil {
		return nil, err
	}
	for _, q := range queued {
		reg.waiting += fmt.Sprintf("_%d", q.generation)
		for _, rel := range q.byNo {
			if reg.byNo[rel.no] == nil {
				ahead := *rel
				ahead.ahead, ahead.dependsOn, ahead.impacts = true, nil, nil
				ahead.columns = slices.Clone(rel.columns)
				reg.byOID[ahead.oid], reg.byNo[ahead.no] = &ahead, &ahead
			}
			columns := reg.byNo[rel.no].columns
			for i := range columns {
				columns[i].required = columns[i].required || rel.requires(columns[i].attnum)
			}
		}
	}
	for _, target := range f.targets {
		for _, d := range target.dependsOn {
			source := reg.byNo[d.source.no]
			source.impacts = append(source.impacts, &dependency{target: reg.byNo[target.no], source: source, columns: d.columns, impact: d.impact, pending: true})
		}
	}
	reg.linkDependencies()
	for _, rel := range reg.byNo {
		rel.sql = newStatements(rel, reg)
	}
	return reg, nil
}

// live: rows of the relation are in scopes.
func (r *relation) live() bool { return r.kind == kindSynced && !r.ahead }

// markImpacted asks which target rows of a pending rule some events have impacted, and marks them. What fails here fails under that
// rule alone: the one in force does not suffer.
func (a *applier) markImpacted(ctx context.Context, pending []call) error {
	if len(pending) == 0 {
		return nil
	}
	if err := a.pipeline.run(ctx, pending); err != nil {
		return rejected(ctx, err)
	}
	var calls []call
	for rel, keys := range a.marks {
		calls = append(calls, call{statement: rel.sql.mark(), relNo: rel.no, expect: -1, params: [][]byte{keys.param()}})
	}
	clear(a.marks)
	if len(calls) == 0 {
		return nil
	}
	a.fill.due = true
	return a.pipeline.run(ctx, calls)
}

// noteImpacted takes keys of target rows of a pending rule.
func (a *applier) noteImpacted(d *dependency) func(v [][]byte) error {
	if a.marks == nil {
		a.marks = map[*relation]*array{}
	}
	return func(v [][]byte) error {
		keys := a.marks[d.target]
		if keys == nil {
			keys = &array{elem: oidText}
			a.marks[d.target] = keys
		}
		keys.text(v[1])
		return nil
	}
}
