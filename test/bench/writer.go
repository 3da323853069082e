package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

const bulkRows = 100_000

// measureWriters compares writes of a registered table with the same writes of an equal table that is not.
func measureWriters(ctx context.Context, b *bench) error {
	s, err := newStage(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	for name, registered := range map[string]bool{"plain": false, "item": true} {
		if err := s.table(ctx, name, registered); err != nil {
			return err
		}
	}
	if err := s.bulkWrites(ctx, b); err != nil {
		return err
	}
	return s.singleWrites(ctx, b)
}

// bulkWrites takes the time of each statement, and the processor time of its backend, which other work on the machine
// hardly changes. The worker materializes meanwhile, as it always does.
func (s *stage) bulkWrites(ctx context.Context, b *bench) error {
	tables := []string{"plain", "item"}
	elapsed, used := map[string]series{}, map[string]series{}
	pid := int(s.conn.PgConn().PID())
	write := func(what, table string, statement func() error) error {
		before := cpu(pid)
		t, err := timed(statement)
		elapsed[what+table] = append(elapsed[what+table], t*1000)
		used[what+table] = append(used[what+table], (cpu(pid)-before)*1000)
		if err != nil {
			return err
		}
		return s.materialized(ctx)
	}
	for range b.runs {
		for _, table := range tables {
			if err := s.exec(ctx, "DELETE FROM bench."+table); err != nil {
				return err
			}
			if err := s.materialized(ctx); err != nil {
				return err
			}
			for _, sql := range []string{"VACUUM bench." + table, "CHECKPOINT"} {
				if err := s.exec(ctx, sql); err != nil {
					return err
				}
			}
			if err := write("insert ", table, func() error { return s.fill(ctx, table, 1, bulkRows, 100) }); err != nil {
				return err
			}
			if err := write("update ", table, func() error { return s.exec(ctx, "UPDATE bench."+table+" SET n = n + 1") }); err != nil {
				return err
			}
		}
	}
	for _, what := range []struct{ key, name string }{
		{"insert ", "INSERT ... SELECT of 100 000 rows, registered"}, {"update ", "UPDATE of 100 000 rows, registered"},
	} {
		b.against(what.name, "ms", elapsed[what.key+"item"], elapsed[what.key+"plain"], 0, 1.6)
		b.against(what.name+": processor time", "ms", used[what.key+"item"], used[what.key+"plain"], 0, 1.6)
	}
	return nil
}

// singleWrites uses pgbench with one client; a synchronous commit of each would hide the cost, so commits are asynchronous.
func (s *stage) singleWrites(ctx context.Context, b *bench) error {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, kind := range []struct{ name, script string }{
		{"insert", "INSERT INTO bench.%s (id, owner, body) VALUES (nextval('bench.%[1]s_seq'), 'u1', 'a short body of a note')"},
		{"update", "\\set id random(1, 1000)\nUPDATE bench.%s SET n = n + 1 WHERE id = :id"},
	} {
		tps := map[string]series{}
		for i := range b.runs {
			for _, table := range []string{"plain", "item"} {
				prepare := fmt.Sprintf("CREATE SEQUENCE IF NOT EXISTS bench.%[1]s_seq START 10000000;"+
					"INSERT INTO bench.%[1]s SELECT i, 'u1', 0, 'x' FROM generate_series(1, 1000) i ON CONFLICT DO NOTHING", table)
				if i == 0 {
					if err := s.exec(ctx, prepare); err != nil {
						return err
					}
				}
				rate, err := s.pgbench(ctx, filepath.Join(dir, "script.sql"), fmt.Sprintf(kind.script, table))
				if err != nil {
					return err
				}
				tps[table] = append(tps[table], 1e6/rate)
				if err := s.materialized(ctx); err != nil {
					return err
				}
			}
		}
		b.against("single-row "+kind.name+", registered", "µs", tps["item"], tps["plain"], 0, 0)
	}
	return nil
}

var tpsLine = regexp.MustCompile(`tps = ([0-9.]+)`)

func (s *stage) pgbench(ctx context.Context, path, script string) (float64, error) {
	if err := os.WriteFile(path, []byte(script+";\n"), 0o644); err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, s.Installation().Bin("pgbench"), "-n", "-M", "prepared", "-c", "1", "-T", "2", "-f", path,
		s.TCPDSN("postgres", ""))
	cmd.Env = append(os.Environ(), "PGOPTIONS=-c synchronous_commit=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("pgbench: %w: %s", err, out)
	}
	found := tpsLine.FindSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("pgbench printed no rate: %s", out)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}
