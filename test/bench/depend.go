package main

import (
	"context"
	"errors"
	"fmt"
)

// noteTables are folders with owners and the notes in them, which are in the scope of their folder's owner.
const noteTables = `
CREATE SCHEMA bench;
CREATE TABLE bench.folder (id bigint PRIMARY KEY, owner text NOT NULL);
CREATE TABLE bench.note (id bigint PRIMARY KEY, folder bigint NOT NULL, owner text NOT NULL, body text NOT NULL);
GRANT USAGE ON SCHEMA bench TO synchro_owner, synchro_worker;
GRANT SELECT ON bench.folder, bench.note TO synchro_owner, synchro_worker;
SELECT synchro.synchro_prepare_projection_view('bench.folder', 'bench_folder', '{id,owner}');
SELECT synchro.synchro_prepare_projection_view('bench.note', 'bench_note', '{id,folder,owner}');
CREATE FUNCTION bench.folder_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'user:' || f.owner FROM synchro_projection.bench_folder f WHERE f.id = p_row_key; END;
CREATE FUNCTION bench.note_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC
  SELECT 'user:' || f.owner FROM synchro_projection.bench_note n JOIN synchro_projection.bench_folder f ON f.id = n.folder WHERE n.id = p_row_key;
END;
DO $$ BEGIN
  EXECUTE format($f$CREATE FUNCTION bench.notes_of_folder(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref
    LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
  BEGIN ATOMIC
    SELECT %L::text, 'int64'::text, n.id::text FROM synchro_projection.bench_note n
     WHERE n.folder IN ((p_old_row->>'id')::bigint, (p_new_row->>'id')::bigint);
  END$f$, synchro.synchro_table_id('bench.note'));
END $$;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA bench FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA bench TO synchro_worker;
INSERT INTO bench.folder SELECT f, 'u' || f % 100 FROM generate_series(1, 300) f;
-- Of a hundred folders each: one note, a hundred, a thousand.
INSERT INTO bench.note SELECT row_number() OVER (), f, 'u' || f % 100, repeat(md5(f::text), 5)
  FROM generate_series(1, 300) f, generate_series(1, CASE WHEN f <= 100 THEN 1 WHEN f <= 200 THEN 100 ELSE 1000 END);
BEGIN;
SELECT synchro.synchro_register_table('bench.folder', 'bench.folder_scopes', p_push_policy => 'read_only');
SELECT synchro.synchro_register_table('bench.note', 'bench.note_scopes', p_push_policy => 'read_only');
SELECT synchro.synchro_register_membership_dependency('bench.folder', 'bench.note', 'bench.notes_of_folder', '{id,owner}');
COMMIT`

func noteStage(ctx context.Context) (*stage, error) {
	s, err := newStage(ctx)
	if err != nil {
		return nil, err
	}
	if err = s.exec(ctx, noteTables); err == nil {
		err = s.activated(ctx)
	}
	if err == nil {
		err = s.exec(ctx, "VACUUM ANALYZE")
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// measureMembership evaluates the rules of 100 000 rows beside the same rules written as one query over the same projections.
func measureMembership(ctx context.Context, b *bench) error {
	s, err := noteStage(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.table(ctx, "item", true); err != nil {
		return err
	}
	if err := s.fill(ctx, "item", 1, 100_000, 100); err != nil {
		return err
	}
	if err := s.materialized(ctx); err != nil {
		return err
	}
	if err := s.exec(ctx, "VACUUM ANALYZE"); err != nil {
		return err
	}
	if err := s.exec(ctx, "SET plan_cache_mode = force_custom_plan"); err != nil { // the query knows how many keys there are, too
		return err
	}
	for _, rule := range []struct{ name, table, plain string }{
		{"membership of 100 000 rows, of their own columns", "item", `SELECT k.ord, 'user:' || i.owner FROM unnest($1::bigint[]) WITH ORDINALITY k(key, ord)
			JOIN synchro_projection.bench_item i ON i.id = k.key`},
		{"membership of 100 000 rows, through one join", "note", `SELECT k.ord, 'user:' || f.owner FROM unnest($1::bigint[]) WITH ORDINALITY k(key, ord)
			JOIN synchro_projection.bench_note n ON n.id = k.key JOIN synchro_projection.bench_folder f ON f.id = n.folder`},
	} {
		var numbers []int64
		var texts []string
		if err := s.conn.QueryRow(ctx, fmt.Sprintf("SELECT array_agg(id), array_agg(id::text) FROM (SELECT id FROM bench.%s ORDER BY id LIMIT 100000) i", rule.table)).
			Scan(&numbers, &texts); err != nil {
			return err
		}
		ours := fmt.Sprintf(`SELECT count(scope_id) FROM synchro._evaluate_membership((SELECT rel_no FROM synchro.active_registration
			WHERE physical_relation = '%s'), (SELECT registry_generation FROM synchro.progress), $1)`, rule.table)
		plain := fmt.Sprintf("SELECT count(scope) FROM (%s OFFSET 0) m(ord, scope)", rule.plain)
		var evaluated, limit series
		once := func(sql string, keys any, to *series) error {
			var n int
			seconds, err := timed(func() error { return s.conn.QueryRow(ctx, sql, keys).Scan(&n) })
			if err == nil && n != 100_000 {
				err = fmt.Errorf("%s: %d rows", rule.name, n)
			}
			*to = append(*to, 100_000/seconds)
			return err
		}
		for range 2*b.runs + 1 {
			if err := errors.Join(once(ours, texts, &evaluated), once(plain, numbers, &limit)); err != nil {
				return err
			}
		}
		b.against(rule.name, "rows/s", evaluated[1:], limit[1:], 0.5, 0)
	}
	return nil
}

// measureDependency changes folders, one or a hundred in a transaction, so that all their notes change hands.
func measureDependency(ctx context.Context, b *bench) error {
	s, err := noteStage(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	procs, err := s.capture(ctx)
	if err != nil {
		return err
	}
	turn := 0
	for _, size := range []struct{ notes, first int }{{1, 1}, {100, 101}, {1000, 201}} {
		for _, changes := range []int{1, 100} {
			var took, apply, core series
			for range 5 * b.runs {
				turn++
				applied, spent := cpu(procs.apply), cpu(procs.core)
				seconds, err := timed(func() error {
					if err := s.exec(ctx, "UPDATE bench.folder SET owner = 'v' || ((id + $1) % 100) WHERE id BETWEEN $2 AND $3", turn, size.first, size.first+changes-1); err != nil {
						return err
					}
					return s.materialized(ctx)
				})
				if err != nil {
					return err
				}
				impacted := float64(size.notes * changes)
				took = append(took, seconds)
				apply, core = append(apply, (cpu(procs.apply)-applied)*1e6/impacted), append(core, (cpu(procs.core)-spent)*1e6/impacted)
			}
			name := fmt.Sprintf("a change that impacts %d rows", size.notes)
			if changes > 1 {
				name = fmt.Sprintf("%d changes in one transaction that impact %d rows each", changes, size.notes)
			}
			millis, rate := make(series, len(took)), make(series, len(took))
			for i, seconds := range took {
				millis[i], rate[i] = 1000*seconds, float64(size.notes*changes)/seconds
			}
			if changes == 1 {
				b.figure(name+": until materialized", "ms", millis, 0, 0)
			} else {
				want := 0.0
				if size.notes == 1000 {
					want = 50_000
				}
				b.figure(name, "rows/s", rate, want, 0)
			}
			b.figure(name+": apply backend", "µs/row", apply, 0, 0)
			b.figure(name+": core", "µs/row", core, 0, 0)
		}
	}
	return nil
}

// measureFamily sends one transaction of a million rows, parents and children, through a running worker: all are stored before any is
// evaluated.
func measureFamily(ctx context.Context, b *bench) error {
	s, err := noteStage(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	seconds, err := timed(func() error {
		if err := s.exec(ctx, `BEGIN;
			INSERT INTO bench.note SELECT 1000000 + i, 1000 + i / 9, 'u', repeat(md5(i::text), 5) FROM generate_series(0, 899999) i;
			INSERT INTO bench.folder SELECT 1000 + i, 'u' || i % 100 FROM generate_series(0, 99999) i;
			COMMIT`); err != nil {
			return err
		}
		return s.materialized(ctx)
	})
	if err != nil {
		return err
	}
	var live int
	if err := s.conn.QueryRow(ctx, "SELECT count(*) FROM synchro.scope_entry WHERE state = 'l'").Scan(&live); err != nil {
		return err
	}
	if live != 300+100*1101+1_000_000 {
		return fmt.Errorf("%d entries", live)
	}
	b.figure("1 000 000 parents and children in one transaction: write to materialized", "s", series{seconds}, 0, 0)
	pid, err := s.corePID(ctx)
	if err != nil {
		return err
	}
	b.figure("1 000 000 parents and children in one transaction: peak memory of the core", "MiB", series{rss(pid, true)}, 0, 256)
	return nil
}
