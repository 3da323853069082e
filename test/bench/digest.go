package main

import "context"

const digestRows = 1_000_000

// measureDigest times the digest of one scope with a million rows: computed, and from the cache.
func measureDigest(ctx context.Context, b *bench) error {
	s, err := newStage(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.table(ctx, "item", true); err != nil {
		return err
	}
	for from := range digestRows / 100_000 {
		if err := s.fill(ctx, "item", from*100_000, 100_000, 1); err != nil {
			return err
		}
	}
	if err := s.materialized(ctx); err != nil {
		return err
	}
	var cold, used, cached series
	pid := int(s.conn.PgConn().PID())
	for range b.runs {
		before := cpu(pid)
		t, err := timed(func() error {
			return s.exec(ctx, `SELECT d.digest FROM synchro.scope s, synchro.progress p, synchro._scope_digest(s.scope_no, p.schema_version, s.scope_id) d
				WHERE s.scope_id = 'user:u0'`)
		})
		if err != nil {
			return err
		}
		cold, used = append(cold, t*1000), append(used, (cpu(pid)-before)*1000)
		for range 2 { // the first one fills the cache
			if t, err = timed(func() error {
				return s.exec(ctx, `SELECT d.digest FROM synchro.scope s, synchro.progress p, synchro._cached_digest(s.scope_no, p.schema_version, s.scope_id, s.high_lsn) d
					WHERE s.scope_id = 'user:u0'`)
			}); err != nil {
				return err
			}
		}
		cached = append(cached, t*1000)
	}
	b.figure("digest of a scope of 1 000 000 rows", "ms", cold, 0, 1500)
	b.figure("digest of a scope of 1 000 000 rows: processor time", "ms", used, 0, 1500)
	b.figure("digest of a scope of 1 000 000 rows, cached", "ms", cached, 0, 5)
	return nil
}
