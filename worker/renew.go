package worker

import (
	"context"
	"fmt"
	"strings"
)

// A registration reads the rows of a relation that is captured already into a table of its own, because the projection lacks columns, or is
// not trusted. At the registration's place in the stream the projection takes over what it lacks.

// renewal says what a generation makes anew while it is in use.
type renewal struct {
	columns  map[int32][]captured // of relations that were read: columns that were not required so far
	replaced map[int32]bool       // relations that were read and not captured until here: all rows
	entries  map[int32]bool       // relations whose entries are made anew: those that were read, and others whose rules read one that may have changed unseen
}

// renewed finds what the registering transaction of a generation has read.
func (a *applier) renewed(ctx context.Context, next *registry) (renewal, error) {
	anew := renewal{columns: map[int32][]captured{}, replaced: map[int32]bool{}, entries: map[int32]bool{}}
	rows, err := query(ctx, a.conn, `SELECT r.rel_no FROM synchro.registration r WHERE r.generation = $1::text::int8 AND r.since = r.generation
   AND pg_catalog.to_regclass('synchro_data.s_' || r.rel_no || '_' || r.generation) IS NOT NULL`, itoa(next.generation))
	if err != nil {
		return anew, err
	}
	for _, r := range rows {
		rel := next.byNo[int32(r.int64(0))]
		if rel.suspended {
			continue // a later generation reads it anew once more
		}
		anew.entries[rel.no] = true
		before := a.reg.byNo[rel.no]
		if before != nil && !before.suspended {
			anew.columns[rel.no] = rel.lacking(before)
			continue
		}
		anew.replaced[rel.no] = true
		for _, other := range next.byNo {
			for _, d := range other.dependsOn {
				if d.source.no == rel.no {
					anew.entries[other.no] = true
				}
			}
		}
	}
	return anew, nil
}

// lacking are the required columns that were not required before: the projection may not have them, or as they were long ago.
func (r *relation) lacking(before *relation) (columns []captured) {
	for _, c := range r.columns {
		if c.required && !before.requires(c.attnum) {
			columns = append(columns, c)
		}
	}
	return columns
}

func (r *relation) requires(attnum int16) bool {
	for _, c := range r.columns {
		if c.attnum == attnum {
			return c.required
		}
	}
	return false
}

// take puts what was read into the projections.
func (a *applier) take(ctx context.Context, next *registry, anew renewal) error {
	for _, rel := range next.ordered() {
		switch {
		case anew.replaced[rel.no]:
			for _, sql := range []string{"DELETE FROM " + rel.sql.table(), rel.sql.replaceSQL(next.generation)} {
				if _, err := query(ctx, a.conn, sql); err != nil {
					return &failure{relNo: rel.no, err: err}
				}
			}
		case len(anew.columns[rel.no]) > 0:
			same, err := one(ctx, a.conn, rel.sql.fillSQL(next.generation, anew.columns[rel.no]))
			if err == nil && same.text(0) != "t" {
				err = errCount
			}
			if err != nil {
				return &failure{relNo: rel.no, err: err}
			}
		}
	}
	return nil
}

// leaveRows leaves the rows of a retired relation in no scope. They go when the relation does, unless one that waits has it again.
func (a *applier) leaveRows(ctx context.Context, rel *relation, next *registry, anew renewal) error {
	stays := next.byNo[rel.no] != nil
	if !stays {
		r, err := one(ctx, a.conn, `SELECT EXISTS (SELECT FROM synchro.registration r JOIN synchro.backfill b ON b.generation = r.generation AND b.state <> 'rejected'
  WHERE r.rel_no = $1::text::int4 AND r.generation > $2::text::int8)`, itoa(int64(rel.no)), itoa(next.generation))
		if err != nil {
			return err
		}
		stays = r.text(0) == "t"
	}
	var err error
	switch {
	case !stays:
		_, err = query(ctx, a.conn, "DELETE FROM "+rel.sql.table())
	case rel.kind == kindSynced && !anew.replaced[rel.no]:
		_, err = query(ctx, a.conn, fmt.Sprintf("UPDATE %s SET scopes = '{}' WHERE scopes <> '{}'", rel.sql.table()))
	}
	return err
}

func (s *statements) stage(generation int64) string {
	return fmt.Sprintf("synchro_data.s_%d_%d", s.rel.no, generation)
}

// replaceSQL takes all rows.
func (s *statements) replaceSQL(generation int64) string {
	list := "server_version, row_xmin"
	for _, c := range s.rel.columns {
		list += ", " + c.column()
	}
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %[2]s FROM %s", s.table(), list, s.stage(generation))
}

// fillSQL takes columns, and tells whether the rows are the same.
func (s *statements) fillSQL(generation int64, columns []captured) string {
	var set []string
	for _, c := range columns {
		set = append(set, fmt.Sprintf("%s = s.%[1]s", c.column()))
	}
	return fmt.Sprintf(`WITH u AS (UPDATE %s p SET %s FROM %s s WHERE p.%s = s.%[4]s RETURNING 1)
SELECT count(*) = (SELECT count(*) FROM %[1]s) AND count(*) = (SELECT count(*) FROM %[3]s) FROM u`,
		s.table(), strings.Join(set, ", "), s.stage(generation), s.keyColumn().column())
}
