package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pglogrepl"
)

func quoteIdent(s string) string   { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
func quoteLiteral(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// bootstrap makes the slot and, under the snapshot that it begins with, the materialized state of what was registered
// before. It is repeated from the start until progress names the slot: a slot of our name that it does not name is a
// leftover of a try that died.
func (s *session) bootstrap(ctx context.Context) error {
	s.report("bootstrapping")
	if _, err := query(ctx, s.side, "SELECT synchro._ensure_publication()"); err != nil {
		return fmt.Errorf("making the publication: %w", err)
	}
	slot, err := loadSlot(ctx, s.side, s.cfg.Slot)
	switch {
	case err != nil:
		return err
	case slot.exists && !slot.ours:
		return errSlotForeign
	case slot.active:
		return errSlotActive
	case slot.exists:
		if err := pglogrepl.DropReplicationSlot(ctx, s.stream, quoteIdent(s.cfg.Slot), pglogrepl.DropReplicationSlotOptions{}); err != nil {
			return fmt.Errorf("dropping an unfinished slot: %w", err)
		}
	}
	var start pglogrepl.LSN
	var generation int64
	// The slot waits for every transaction that is in progress, and the baseline takes what it takes.
	err = s.heart.during(ctx, s.side, func(ctx context.Context) error {
		made, err := pglogrepl.CreateReplicationSlot(ctx, s.stream, quoteIdent(s.cfg.Slot), "pgoutput",
			pglogrepl.CreateReplicationSlotOptions{Mode: pglogrepl.LogicalReplication, SnapshotAction: "EXPORT_SNAPSHOT"})
		if err != nil {
			return fmt.Errorf("creating the slot: %w", err)
		}
		if start, err = pglogrepl.ParseLSN(made.ConsistentPoint); err != nil {
			return err
		}
		generation, err = s.baseline(ctx, made.SnapshotName, start)
		return err
	})
	if err != nil {
		return err
	}
	if err := s.fail("baselined"); err != nil {
		return err
	}
	// A first transaction may commit exactly at the consistent point: what is materialized is what committed below it.
	if _, err := query(ctx, s.side, `UPDATE synchro.progress
   SET slot_name = $1, registry_generation = $2::text::int8,
       schema_version = (SELECT g.schema_version FROM synchro.registry_generation g WHERE g.generation = $2::text::int8),
       commit_lsn = $3::text::pg_lsn, end_lsn = $4::text::pg_lsn, seen_lsn = $4::text::pg_lsn, start_lsn = $4::text::pg_lsn,
       heartbeat_at = clock_timestamp()
 WHERE slot_name IS NULL AND stream_generation = $5::text::int8`,
		s.cfg.Slot, itoa(generation), (start - 1).String(), start.String(), itoa(s.state.streamGeneration)); err != nil {
		return fmt.Errorf("recording the slot: %w", err)
	}
	if s.state, err = loadProgress(ctx, s.side); err == nil && s.state.slot == "" {
		return errIdentity // a dump is being restored into this database
	}
	return err
}

// baseline fills the projections and entries of the newest generation that the slot's snapshot sees.
func (s *session) baseline(ctx context.Context, snapshot string, at pglogrepl.LSN) (generation int64, err error) {
	for _, sql := range []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "SET TRANSACTION SNAPSHOT " + quoteLiteral(snapshot), "DELETE FROM synchro.scope_entry",
		"DELETE FROM synchro.staged_membership", "DELETE FROM synchro.backfill WHERE state <> 'rejected'"} {
		if _, err := query(ctx, s.apply, sql); err != nil {
			return 0, fmt.Errorf("baseline: %w", err)
		}
	}
	r, err := one(ctx, s.apply, "SELECT synchro._newest_generation()")
	if err != nil {
		return 0, err
	}
	generation = r.int64(0)
	reg, err := loadRegistry(ctx, s.apply, generation)
	if err != nil {
		return 0, err
	}
	a := &applier{materializer: newMaterializer(newPipeline(s.apply), s.returning), cfg: s.cfg, scopes: map[int64]struct{}{}}
	a.setRegistry(reg)
	for _, rel := range reg.ordered() {
		if _, err := query(ctx, s.apply, "SELECT synchro._baseline($1::text::int4, $2::text::int8, ('r_' || $1)::name)", itoa(int64(rel.no)), itoa(generation)); err != nil {
			return 0, baselineError(err, rel, at)
		}
	}
	a.effects.begin(at-1, 0)
	for _, rel := range reg.ordered() { // only now: rules read other relations' projections
		if err := a.admit(ctx, rel, at-1, 0); err != nil {
			return 0, baselineError(err, rel, at)
		}
	}
	if _, err = query(ctx, s.apply, "COMMIT"); err != nil {
		return 0, err
	}
	return generation, a.forget(ctx) // the stream uses the same connection
}

// baselineError makes an error that will come again a block.
func baselineError(err error, rel *relation, at pglogrepl.LSN) error {
	if transient(err) && !errors.Is(err, errCount) {
		return err
	}
	return &poison{class: evaluationClass(err), commitLSN: at, ordinal: -1, relNo: rel.no, err: err}
}
