package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const blockedPoll = 500 * time.Millisecond

// block records durably that a transaction cannot be materialized. It commits synchronously: readiness and operators
// must see it after a crash too.
func block(ctx context.Context, conn *pgconn.PgConn, state *progress, p *poison) error {
	ordinal, rel := any(nil), any(nil)
	if p.ordinal >= 0 {
		ordinal = p.ordinal
	}
	if p.relNo != 0 {
		rel = int64(p.relNo)
	}
	// A block in the course of a recovery takes the place of the one that the recovery answers.
	if _, err := query(ctx, conn, "BEGIN"); err != nil {
		return err
	}
	if _, err := query(ctx, conn, `UPDATE synchro.quarantine q SET resolved_at = now(), resolution = 'superseded'
 WHERE q.resolved_at IS NULL AND EXISTS (SELECT FROM synchro.capture_recovery c WHERE c.quarantine_no = q.quarantine_no)`); err != nil {
		return err
	}
	_, err := queryAny(ctx, conn, `WITH at AS (SELECT greatest($2::text::pg_lsn, p.end_lsn) AS lsn FROM synchro.progress p)
INSERT INTO synchro.quarantine (stream_generation, commit_lsn, event_ordinal, class, rel_no, retryable, attempts)
SELECT $1::text::int8, at.lsn, $3::text::int8, $4, $5::text::int4, $6::text::boolean,
       1 + coalesce((SELECT max(q.attempts) FROM synchro.quarantine q
                      WHERE q.stream_generation = $1::text::int8 AND q.commit_lsn = at.lsn AND q.resolution = 'retried'), 0)
  FROM at WHERE NOT EXISTS (SELECT FROM synchro.quarantine q WHERE q.resolved_at IS NULL)`,
		state.streamGeneration, p.commitLSN.String(), ordinal, p.class, rel, !p.blind)
	if err == nil {
		_, err = query(ctx, conn, "COMMIT")
	}
	if err != nil {
		return fmt.Errorf("recording a block: %w", err)
	}
	return nil
}

// blocked tells whether a block is open that no recovery answers.
func blocked(ctx context.Context, conn *pgconn.PgConn) (bool, error) {
	rows, err := query(ctx, conn, `SELECT 1 FROM synchro.quarantine q WHERE q.resolved_at IS NULL
   AND NOT EXISTS (SELECT FROM synchro.capture_recovery c WHERE c.quarantine_no = q.quarantine_no)`)
	return len(rows) > 0, err
}

// awaitRelease waits, with heartbeats, until an operator has resolved the block, or has registered what answers it.
func (s *session) awaitRelease(ctx context.Context) error {
	s.report(Blocked)
	told := false // clients that wait must learn of it
	for {
		if !told {
			told = notify(ctx, s.side, s.state.commitLSN.String()+";*") == nil
		}
		if err := s.recover(ctx, s.side); err != nil {
			return err
		}
		open, err := blocked(ctx, s.side)
		if err != nil || !open {
			return err
		}
		if err := s.heart.beat(ctx, s.side); err != nil {
			return err
		}
		select {
		case <-s.cfg.Wake:
		case <-time.After(min(blockedPoll, s.heart.due())):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// queryAny is query with parameters that may be null.
func queryAny(ctx context.Context, conn *pgconn.PgConn, sql string, args ...any) ([]row, error) {
	params := make([][]byte, len(args))
	for i, a := range args {
		if a != nil {
			params[i] = []byte(fmt.Sprint(a))
		}
	}
	res := conn.ExecParams(ctx, sql, params, nil, nil, nil).Read()
	if res.Err != nil {
		return nil, res.Err
	}
	rows := make([]row, len(res.Rows))
	for i, r := range res.Rows {
		rows[i] = r
	}
	return rows, nil
}
