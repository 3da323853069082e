package worker

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const driftPeriod = 2 * time.Second

// driftQuery says what of the registered relations is no longer as it was registered, the worst first.
const driftQuery = `SELECT coalesce(d.rel_no, 0), d.blind FROM synchro._drift() d WHERE d.blocks ORDER BY d.blind DESC, d.rel_no LIMIT 1`

// checkDrift looks at the catalogs: a relation whose rows do not change gives no sign in the stream. What the stream cannot carry any
// more blocks at once, before the position that is reached.
func (s *session) checkDrift(ctx context.Context, conn *pgconn.PgConn) error {
	rows, err := query(ctx, conn, driftQuery)
	if sqlState(err) == lockNotAvailable {
		return nil // a command is at work on a relation: soon again
	}
	if err != nil || len(rows) == 0 {
		return err
	}
	return &poison{class: classDrift, commitLSN: s.ledger.reached(), ordinal: -1, relNo: int32(rows[0].int64(0)), blind: rows[0].text(1) == "t"}
}
