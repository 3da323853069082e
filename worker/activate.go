package worker

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// activate carries out what a message says of a generation, inside the open database transaction, and returns the one that is active
// then: it becomes so at once, or has to be staged first, or has been staged.
func (a *applier) activate(ctx context.Context, w *work) (*registry, error) {
	if w.act.staged {
		return a.cross(ctx, w)
	}
	// A registration that was rolled back to a savepoint can leave its message in a streamed transaction.
	made, err := query(ctx, a.conn, "SELECT staged FROM synchro.registry_generation WHERE generation = $1::text::int8 AND xid = $2::text::xid8",
		itoa(w.act.generation), itoa(w.act.xid))
	if err != nil || len(made) == 0 {
		return a.active, err
	}
	if made[0].text(0) == "t" || a.fill != nil {
		return a.active, a.arrive(ctx, w.act.generation)
	}
	next, err := loadRegistry(ctx, a.conn, w.act.generation)
	if err != nil {
		return nil, err
	}
	return next, a.install(ctx, w, next, func(ctx context.Context, rel, before *relation) error {
		if before != nil {
			return nil
		}
		return a.admit(ctx, rel, w.commit.commitLSN, w.act.ordinal)
	})
}

// install makes a generation current: nothing any more of relations that left, what enter makes of the others, the scopes that the new
// manifests affect. before is the relation in the generation so far, nil for a new one.
func (a *applier) install(ctx context.Context, w *work, next *registry, enter func(ctx context.Context, rel, before *relation) error) error {
	old := a.active
	steps, err := a.steps(ctx, old, next)
	if err != nil {
		return err
	}
	for _, rel := range old.ordered() {
		if next.byNo[rel.no] == nil {
			if err := a.retire(ctx, rel, w, steps); err != nil {
				return err
			}
		}
	}
	a.schema = next.schemaVersion
	a.effects.begin(w.commit.commitLSN, w.act.ordinal)
	for _, rel := range next.ordered() {
		before := old.byNo[rel.no]
		if err := enter(ctx, rel, before); err != nil {
			return err
		}
		if before != nil {
			continue
		}
		if err := affect(ctx, a.conn, steps, rel); err != nil {
			return err
		}
	}
	_, err = query(ctx, a.conn, "UPDATE synchro.progress SET registry_generation = $1::text::int8, schema_version = $2::text::int8",
		itoa(next.generation), itoa(next.schemaVersion))
	if err != nil {
		return fmt.Errorf("activating a generation: %w", err)
	}
	return nil
}

// steps are the manifests between two generations that rematerialize rows, as an array literal: more than one when a generation
// between them was rejected.
func (a *applier) steps(ctx context.Context, old, next *registry) (string, error) {
	r, err := one(ctx, a.conn, `WITH RECURSIVE l AS (
  SELECT m.* FROM synchro.manifest m WHERE m.schema_version = $2::text::int8 AND m.schema_version <> $1::text::int8
  UNION ALL
  SELECT m.* FROM l JOIN synchro.manifest m ON m.schema_version = l.parent_version AND m.schema_version <> $1::text::int8
)
SELECT coalesce(array_agg(l.schema_version), '{}') FROM l WHERE l.transition_class IN ('class_3', 'class_4')`, itoa(old.schemaVersion), itoa(next.schemaVersion))
	if err != nil {
		return "", err
	}
	return r.text(0), nil
}

// retire removes what is materialized of a relation that left.
func (a *applier) retire(ctx context.Context, rel *relation, w *work, steps string) error {
	if err := affect(ctx, a.conn, steps, rel); err != nil {
		return err
	}
	rows, err := query(ctx, a.conn, `WITH e AS (DELETE FROM synchro.scope_entry WHERE rel_no = $1::text::int4 RETURNING scope_no)
UPDATE synchro.scope s SET high_lsn = $2::text::pg_lsn FROM (SELECT DISTINCT e.scope_no FROM e) v WHERE s.scope_no = v.scope_no
RETURNING s.scope_no`, itoa(int64(rel.no)), w.commit.commitLSN.String())
	if err != nil {
		return err
	}
	for _, r := range rows {
		a.scopes[r.int64(0)] = struct{}{}
	}
	if _, err := query(ctx, a.conn, "DELETE FROM "+rel.sql.table()); err != nil {
		return err
	}
	return nil
}

// affect marks the scopes that hold rows of a relation as affected by new manifests.
func affect(ctx context.Context, conn *pgconn.PgConn, steps string, rel *relation) error {
	_, err := query(ctx, conn, `INSERT INTO synchro.manifest_affected_scope (schema_version, scope_no)
SELECT m, e.scope_no FROM (SELECT DISTINCT e.scope_no FROM synchro.scope_entry e WHERE e.rel_no = $2::text::int4 AND e.state <> 'x') e,
       unnest($1::text::int8[]) m
    ON CONFLICT DO NOTHING`, steps, itoa(int64(rel.no)))
	return err
}

// dropTriggers takes the triggers off relations that are not registered any more, and takes them out of the publication, outside of any
// materialization: the lock may have to be waited for. What cannot be had now is tried again.
func (s *session) dropTriggers(ctx context.Context, conn *pgconn.PgConn) error {
	rows, err := query(ctx, conn, `SELECT l.relation_oid FROM synchro.relation l
 WHERE NOT EXISTS (SELECT FROM synchro.standing_registration r WHERE r.rel_no = l.rel_no)
   AND EXISTS (SELECT FROM pg_trigger t JOIN pg_proc f ON f.oid = t.tgfoid
                WHERE t.tgrelid = l.relation_oid AND f.proname = 'synchro_fence' AND f.pronamespace = 'synchro'::regnamespace)`)
	if err != nil {
		return err
	}
	s.triggersDue = false
	for _, r := range rows {
		if _, err := query(ctx, conn, "SELECT synchro._sweep_relation($1::text::oid)", r.text(0)); err != nil {
			if sqlState(err) != "55P03" && sqlState(err) != "40P01" {
				return err
			}
			s.triggersDue = true
		}
	}
	return nil
}
