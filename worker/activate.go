package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"

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
	anew, err := a.renewed(ctx, next)
	if err != nil {
		return nil, err
	}
	if err := a.recovered(ctx, next, anew); err != nil {
		return nil, err
	}
	return next, a.install(ctx, w, next, anew, func(ctx context.Context, rel, before *relation) error {
		if (before != nil && !anew.entries[rel.no]) || rel.ahead { // one that is left out is admitted with its recovery
			return nil
		}
		return a.admit(ctx, rel, w.commit.commitLSN, w.act.ordinal)
	})
}

// install makes a generation current: nothing any more of relations that left, what enter makes of the others, the scopes that the new
// manifests affect. before is the relation in the generation so far, nil for a new one. Rows that come anew are put in place first, because
// functions read the projections of others; the scopes that hold them begin anew.
func (a *applier) install(ctx context.Context, w *work, next *registry, anew renewal, enter func(ctx context.Context, rel, before *relation) error) error {
	old := a.active
	rebuilt := map[int64]struct{}{} // scopes whose rows are others than their effects tell
	version, err := a.rematerializes(ctx, old, next)
	if err != nil {
		return err
	}
	for _, rel := range old.ordered() {
		now := next.byNo[rel.no]
		if now != nil && !anew.entries[rel.no] && (now.kind == rel.kind || rel.kind != kindSynced) {
			continue
		}
		held, err := a.retire(ctx, rel, w, version)
		if err != nil {
			return err
		}
		if err := a.leaveRows(ctx, rel, next, anew); err != nil {
			return err
		}
		for _, scope := range held {
			a.scopes[scope] = struct{}{}
			if now != nil && now.kind == kindSynced {
				rebuilt[scope] = struct{}{}
			}
		}
	}
	if err := a.take(ctx, next, anew); err != nil {
		return err
	}
	a.schema = next.schemaVersion
	a.effects.begin(w.commit.commitLSN, w.act.ordinal)
	for _, rel := range next.ordered() {
		before := old.byNo[rel.no]
		if err := enter(ctx, rel, before); err != nil {
			return err
		}
		known := before != nil && before.kind == kindSynced // to clients
		if known && !anew.entries[rel.no] {
			continue
		}
		if err := affect(ctx, a.conn, version, rel); err != nil {
			return err
		}
		if known {
			if err := holders(ctx, a.conn, rel, rebuilt); err != nil {
				return err
			}
		}
	}
	if err := rebuild(ctx, a.conn, rebuilt); err != nil {
		return err
	}
	if err := a.reopen(ctx, next); err != nil {
		return err
	}
	_, err = query(ctx, a.conn, "UPDATE synchro.progress SET registry_generation = $1::text::int8, schema_version = $2::text::int8",
		itoa(next.generation), itoa(next.schemaVersion))
	if err != nil {
		return fmt.Errorf("activating a generation: %w", err)
	}
	return a.cfg.failAt("installed")
}

// rematerializes is the last manifest between two generations that rematerializes rows, 0 when none does. There is more than one between
// them when a generation there was rejected.
func (a *applier) rematerializes(ctx context.Context, old, next *registry) (int64, error) {
	return count(ctx, a.conn, `WITH RECURSIVE l AS (
  SELECT m.* FROM synchro.manifest m WHERE m.schema_version = $2::text::int8 AND m.schema_version <> $1::text::int8
  UNION ALL
  SELECT m.* FROM l JOIN synchro.manifest m ON m.schema_version = l.parent_version AND m.schema_version <> $1::text::int8
)
SELECT coalesce(max(l.schema_version), 0) FROM l WHERE l.transition_class IN ('class_3', 'class_4')`, itoa(old.schemaVersion), itoa(next.schemaVersion))
}

// retire removes the entries of a relation that left, or whose entries come anew. It returns the scopes that held rows of it.
func (a *applier) retire(ctx context.Context, rel *relation, w *work, version int64) ([]int64, error) {
	if err := affect(ctx, a.conn, version, rel); err != nil {
		return nil, err
	}
	rows, err := query(ctx, a.conn, `WITH e AS (DELETE FROM synchro.scope_entry WHERE rel_no = $1::text::int4 RETURNING scope_no)
UPDATE synchro.scope s SET high_lsn = $2::text::pg_lsn FROM (SELECT DISTINCT e.scope_no FROM e) v WHERE s.scope_no = v.scope_no
RETURNING s.scope_no`, itoa(int64(rel.no)), w.commit.commitLSN.String())
	if err != nil {
		return nil, err
	}
	var scopes []int64
	for _, r := range rows {
		scopes = append(scopes, r.int64(0))
	}
	return scopes, nil
}

// holders adds the scopes that hold rows of a relation.
func holders(ctx context.Context, conn *pgconn.PgConn, rel *relation, to map[int64]struct{}) error {
	rows, err := query(ctx, conn, "SELECT DISTINCT scope_no FROM synchro.scope_entry WHERE rel_no = $1::text::int4", itoa(int64(rel.no)))
	for _, r := range rows {
		to[r.int64(0)] = struct{}{}
	}
	return err
}

// rebuild begins a new membership generation of scopes: no cursor of before goes on in them.
func rebuild(ctx context.Context, conn *pgconn.PgConn, scopes map[int64]struct{}) error {
	if len(scopes) == 0 {
		return nil
	}
	_, err := query(ctx, conn, "UPDATE synchro.scope SET membership_generation = synchro._next(membership_generation) WHERE scope_no = ANY ($1::text::int8[])",
		string(appendList(nil, slices.Collect(maps.Keys(scopes)))))
	return err
}

// affect marks the scopes that hold rows of a relation as affected by a manifest. Only the last one counts: whoever holds an earlier
// manifest than that rebuilds the scope, whatever came before.
func affect(ctx context.Context, conn *pgconn.PgConn, version int64, rel *relation) error {
	if version == 0 {
		return nil
	}
	_, err := query(ctx, conn, `UPDATE synchro.scope s SET affected_version = $1::text::int8
  FROM (SELECT DISTINCT e.scope_no FROM synchro.scope_entry e WHERE e.rel_no = $2::text::int4 AND e.state <> 'x') e
 WHERE s.scope_no = e.scope_no AND s.affected_version < $1::text::int8`, itoa(version), itoa(int64(rel.no)))
	return err
}

// dropTriggers takes the triggers off relations that are not registered any more, takes them out of the publication, drops what
// activations have used up, and renews triggers that held writers to a generation which is gone by, outside of any materialization: locks may
// have to be waited for. What cannot be had now is tried again.
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
	for _, sql := range []string{"SELECT synchro._drop_stages()", "SELECT synchro._renew_fences()"} {
		if _, err := query(ctx, conn, sql); err != nil {
			if sqlState(err) != lockNotAvailable && sqlState(err) != "40P01" {
				return err
			}
			s.triggersDue = true
		}
	}
	return nil
}
