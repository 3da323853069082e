package worker

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// activate makes a generation current inside the open database transaction: entries of new relations, whose projections
// the registering transaction has filled; nothing any more of those that left; the scopes that a new manifest affects.
func (a *applier) activate(ctx context.Context, w *work) (*registry, error) {
	old, conn := a.reg, a.conn
	// A registration that was rolled back to a savepoint can leave its message in a streamed transaction.
	made, err := query(ctx, conn, "SELECT 1 FROM synchro.registry_generation WHERE generation = $1::text::int8 AND xid = $2::text::xid8",
		itoa(w.act.generation), itoa(w.act.xid))
	if err != nil || len(made) == 0 {
		return old, err
	}
	next, err := loadRegistry(ctx, conn, w.act.generation)
	if err != nil {
		return nil, err
	}
	r, err := one(ctx, conn, "SELECT transition_class FROM synchro.manifest WHERE schema_version = $1::text::int8", itoa(next.schemaVersion))
	if err != nil {
		return nil, err
	}
	changed, class := next.schemaVersion != old.schemaVersion, r.text(0)
	for _, rel := range old.ordered() {
		if next.byNo[rel.no] == nil {
			if err := a.retire(ctx, rel, next, w, changed && class == "class_4"); err != nil {
				return nil, err
			}
		}
	}
	a.schema = next.schemaVersion
	a.effects.begin(w.commit.commitLSN, w.act.ordinal)
	for _, rel := range next.ordered() {
		if before := old.byNo[rel.no]; before != nil {
			if rel.dependsOnMore(before) {
				if err := a.reevaluate(ctx, rel, w.commit.commitLSN, w.act.ordinal); err != nil {
					return nil, err
				}
			}
			continue
		}
		if err := a.admit(ctx, rel, w.commit.commitLSN, w.act.ordinal); err != nil {
			return nil, err
		}
		if changed && class == "class_3" {
			if err := affect(ctx, conn, next, rel); err != nil {
				return nil, err
			}
		}
	}
	_, err = query(ctx, conn, "UPDATE synchro.progress SET registry_generation = $1::text::int8, schema_version = $2::text::int8",
		itoa(next.generation), itoa(next.schemaVersion))
	if err != nil {
		return nil, fmt.Errorf("activating a generation: %w", err)
	}
	return next, nil
}

// retire removes what is materialized of a relation that left.
func (a *applier) retire(ctx context.Context, rel *relation, next *registry, w *work, affected bool) error {
	if affected {
		if err := affect(ctx, a.conn, next, rel); err != nil {
			return err
		}
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

// affect marks the scopes that hold rows of a relation as affected by the new manifest.
func affect(ctx context.Context, conn *pgconn.PgConn, next *registry, rel *relation) error {
	_, err := query(ctx, conn, `INSERT INTO synchro.manifest_affected_scope (schema_version, scope_no)
SELECT DISTINCT $1::text::int8, e.scope_no FROM synchro.scope_entry e WHERE e.rel_no = $2::text::int4 AND e.state <> 'x'
    ON CONFLICT DO NOTHING`, itoa(next.schemaVersion), itoa(int64(rel.no)))
	return err
}

// dropTriggers takes the triggers off relations that no generation from the active one on contains, outside of any
// materialization: the lock may have to be waited for. What cannot be had now is tried again.
func (s *session) dropTriggers(ctx context.Context, conn *pgconn.PgConn) error {
	rows, err := query(ctx, conn, `SELECT l.relation_oid FROM synchro.relation l
 WHERE NOT EXISTS (SELECT FROM synchro.registration r WHERE r.rel_no = l.rel_no
                      AND r.generation >= (SELECT p.registry_generation FROM synchro.progress p))
   AND EXISTS (SELECT FROM pg_trigger t JOIN pg_proc f ON f.oid = t.tgfoid
                WHERE t.tgrelid = l.relation_oid AND f.proname = 'synchro_fence' AND f.pronamespace = 'synchro'::regnamespace)`)
	if err != nil {
		return err
	}
	s.triggersDue = false
	for _, r := range rows {
		if _, err := query(ctx, conn, "SELECT synchro._remove_triggers($1::text::oid)", r.text(0)); err != nil {
			if sqlState(err) != "55P03" && sqlState(err) != "40P01" {
				return err
			}
			s.triggersDue = true
		}
	}
	return nil
}
