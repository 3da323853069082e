package worker

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// A registration that is committed while capture is blocked lies behind the block. When it replaces that of the relation which blocks, by
// one that has read all its rows anew, or takes the relation out, the stream goes on without the relation until there: nothing of what is
// left out matters then. Rules that read the relation are not evaluated meanwhile, and clients wait.

// recover answers an open block with the oldest such registration, if there is one. It is noted before anything follows from it.
func (s *session) recover(ctx context.Context, conn *pgconn.PgConn) error {
	_, err := query(ctx, conn, `INSERT INTO synchro.capture_recovery AS c (rel_no, generation, quarantine_no)
SELECT q.rel_no, g.generation, q.quarantine_no
  FROM synchro.quarantine q
 CROSS JOIN LATERAL (
   SELECT min(g.generation) AS generation FROM synchro.registry_generation g
    WHERE g.generation > greatest((SELECT p.registry_generation FROM synchro.progress p),
                                  (SELECT c.generation FROM synchro.capture_recovery c WHERE c.rel_no = q.rel_no))
      AND NOT g.staged
      AND (NOT EXISTS (SELECT FROM synchro.registration r WHERE r.generation = g.generation AND r.rel_no = q.rel_no)
           OR EXISTS (SELECT FROM synchro.registration r WHERE r.generation = g.generation AND r.rel_no = q.rel_no AND r.since = g.generation
                         AND NOT r.amends))) g
 WHERE q.resolved_at IS NULL AND q.rel_no IS NOT NULL AND g.generation IS NOT NULL
   AND NOT EXISTS (SELECT FROM synchro.capture_recovery c WHERE c.quarantine_no = q.quarantine_no)
    ON CONFLICT (rel_no) DO UPDATE SET generation = excluded.generation, quarantine_no = excluded.quarantine_no`)
	if err != nil {
		return fmt.Errorf("beginning a recovery: %w", err)
	}
	return nil
}

// suspend marks relations of a generation that a recovery leaves out, and those whose rules read one of them.
func (g *registry) suspend(ctx context.Context, conn *pgconn.PgConn) error {
	rows, err := query(ctx, conn, "SELECT rel_no FROM synchro.capture_recovery WHERE generation > $1::text::int8", itoa(g.generation))
	if err != nil || len(rows) == 0 {
		return err
	}
	for _, r := range rows {
		if rel := g.byNo[int32(r.int64(0))]; rel != nil {
			rel.suspended, rel.ahead = true, true
			for _, d := range rel.impacts {
				d.target.ahead = true
			}
		}
	}
	for _, rel := range g.byNo { // what is not evaluated is not impacted either
		var left []*dependency
		for _, d := range rel.impacts {
			if !rel.suspended && !d.target.ahead {
				left = append(left, d)
			}
		}
		rel.impacts = left
	}
	return nil
}

// recovered adds to what a generation makes anew the entries of rules that read a relation which was left out until here.
func (a *applier) recovered(ctx context.Context, next *registry, anew renewal) error {
	rows, err := query(ctx, a.conn, `SELECT d.target_rel_no FROM synchro.capture_recovery c
  JOIN synchro.membership_dependency d ON d.source_rel_no = c.rel_no AND d.generation = $2::text::int8
 WHERE c.generation = $1::text::int8`, itoa(next.generation), itoa(a.active.generation))
	for _, r := range rows {
		if rel := next.byNo[int32(r.int64(0))]; rel != nil {
			anew.entries[rel.no] = true
		}
	}
	return err
}

// reopen ends the recoveries that a generation was waited for, and with the last of them the block.
func (a *applier) reopen(ctx context.Context, next *registry) error {
	done, err := query(ctx, a.conn, "DELETE FROM synchro.capture_recovery WHERE generation <= $1::text::int8 RETURNING 1", itoa(next.generation))
	if err != nil || len(done) == 0 {
		return err
	}
	_, err = query(ctx, a.conn, `UPDATE synchro.quarantine SET resolved_at = now(), resolution = 'reconfigured'
 WHERE resolved_at IS NULL AND NOT EXISTS (SELECT FROM synchro.capture_recovery)`)
	return err
}
