package worker

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
)

// progress is the row of synchro.progress that a session starts from.
type progress struct {
	streamGeneration int64
	systemID         string
	timeline         int32
	databaseOID      uint32
	slot             string // "": none yet
	generation       int64
	commitLSN        pglogrepl.LSN
	endLSN           pglogrepl.LSN
	seenLSN          pglogrepl.LSN
	startLSN         pglogrepl.LSN
}

func loadProgress(ctx context.Context, conn *pgconn.PgConn) (*progress, error) {
	r, err := one(ctx, conn, `SELECT stream_generation, system_identifier, timeline, database_oid, coalesce(slot_name, ''),
       registry_generation, commit_lsn, end_lsn, seen_lsn, start_lsn FROM synchro.progress`)
	if err != nil {
		switch sqlState(err) {
		case "42P01", "3F000":
			return nil, errNoExtension
		}
		return nil, fmt.Errorf("reading progress: %w", err)
	}
	p := &progress{
		streamGeneration: r.int64(0), systemID: r.text(1), timeline: int32(r.int64(2)), databaseOID: uint32(r.int64(3)),
		slot: r.text(4), generation: r.int64(5),
	}
	for i, dst := range []*pglogrepl.LSN{&p.commitLSN, &p.endLSN, &p.seenLSN, &p.startLSN} {
		if *dst, err = parseLSN(r[6+i]); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// checkIdentity compares the stream that the state belongs to with the server at hand.
func (p *progress) checkIdentity(ctx context.Context, conn *pgconn.PgConn) error {
	r, err := one(ctx, conn, "SELECT system_identifier, timeline, database_oid FROM synchro._stream_identity()")
	if err != nil {
		return err
	}
	if r.text(0) != p.systemID || r.int64(1) != int64(p.timeline) || uint32(r.int64(2)) != p.databaseOID {
		return errIdentity
	}
	return nil
}

// slotInfo is what the server says of a replication slot.
type slotInfo struct {
	exists    bool
	ours      bool // logical, pgoutput, this database
	active    bool
	lost      bool
	confirmed pglogrepl.LSN
}

func loadSlot(ctx context.Context, conn *pgconn.PgConn, name string) (s slotInfo, err error) {
	rows, err := query(ctx, conn, `SELECT coalesce(slot_type = 'logical' AND plugin = 'pgoutput' AND database = current_database(), false),
       active, wal_status IS NOT DISTINCT FROM 'lost' OR coalesce(to_jsonb(s) ->> 'invalidation_reason', '') <> ''
         OR coalesce(to_jsonb(s) ->> 'conflicting', 'false') = 'true', confirmed_flush_lsn
  FROM pg_replication_slots s WHERE slot_name = $1`, name)
	if err != nil || len(rows) == 0 {
		return s, err
	}
	r := rows[0]
	s = slotInfo{exists: true, ours: r.text(0) == "t", active: r.text(1) == "t", lost: r.text(2) == "t"}
	s.confirmed, err = parseLSN(r[3])
	return s, err
}

// usable tells whether the stream can go on from the slot: everything above what is materialized must still come from it.
// What was acknowledged is never above seen_lsn, so a slot beyond that, or one before the
// start of the stream, is another one of the same name.
func (s slotInfo) usable(p *progress) bool {
	return s.exists && s.ours && !s.lost && s.confirmed >= p.startLSN && s.confirmed <= max(p.endLSN, p.seenLSN)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
