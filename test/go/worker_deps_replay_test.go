package systest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"synchro/internal/pgtest"
	"synchro/worker"
)

// captured are the tables that the worker writes for depsApp.
func (c *core) captured() []string {
	list := c.value(`SELECT string_agg(t, ' ') FROM (SELECT 'synchro.' || unnest('{scope,scope_entry,progress}'::text[]) AS t
		UNION ALL SELECT 'synchro_data.r_' || rel_no FROM synchro.relation) l`)
	return strings.Fields(list)
}

func (c *core) save() {
	c.exec("CREATE SCHEMA saved")
	for _, t := range c.captured() {
		c.exec(fmt.Sprintf("CREATE TABLE saved.%s AS TABLE %s", strings.ReplaceAll(t, ".", "_"), t))
	}
}

// restore brings back what save has saved; the stream goes on from a slot of that moment.
func (c *core) restore(slot string) {
	for _, t := range c.captured() {
		c.exec("BEGIN")
		c.exec("ALTER TABLE synchro.progress DISABLE TRIGGER restored") // a row of progress that comes back would be taken for one of a dump
		c.exec("DELETE FROM " + t)
		c.exec(fmt.Sprintf("INSERT INTO %s OVERRIDING SYSTEM VALUE TABLE saved.%s", t, strings.ReplaceAll(t, ".", "_")))
		c.exec("COMMIT")
	}
	c.exec("UPDATE synchro.progress SET slot_name = $1", slot)
	c.cfg.Slot = slot
}

// stateAs keeps what is materialized, in words that do not depend on the order in which scopes got their numbers.
func (c *core) stateAs(name string) {
	var parts []string
	for _, t := range c.captured() {
		if strings.HasPrefix(t, "synchro_data.") {
			parts = append(parts, fmt.Sprintf(`SELECT '%[1]s' AS t, (to_jsonb(p) - 'scopes' || jsonb_build_object('in',
			  (SELECT array_agg(s.scope_id ORDER BY s.scope_id) FROM synchro.scope s WHERE s.scope_no = ANY (p.scopes))))::text AS v FROM %[1]s p`, t))
		}
	}
	parts = append(parts, `SELECT 'entry', (to_jsonb(e) - 'scope_no' || jsonb_build_object('scope', s.scope_id))::text FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no)`)
	c.exec(fmt.Sprintf("CREATE TABLE saved.%s AS %s", name, strings.Join(parts, " UNION ALL ")))
}

// The same stream gives the same state, to the last position: in batches, one transaction at a time, in pieces, and when the core is
// killed on the way again and again.
func TestTheSameStreamGivesTheSameState(t *testing.T) {
	t.Parallel()
	c := depsCore(t, pgtest.Config{})
	c.exec(depsRegistration(1000))
	c.start()
	c.streaming()
	c.exec(depsRows)
	c.asRuled()
	c.released()
	ample := c.limits
	alone := ample
	alone.BatchMaxRows = 1
	runs := []struct {
		name   string
		limits worker.Limits
		fail   []string
	}{
		{"batches", ample, nil},
		{"alone", alone, nil},
		{"pieces", worker.Limits{MaxHeartbeatAge: 30 * time.Second, BatchMaxRows: 5, BatchMaxBytes: 8 << 20, MemoryBytes: 8 << 10}, nil},
		{"killed", ample, []string{"apply", "stored", "impacted", "evaluated", "committed"}},
		{"killed_pieces", worker.Limits{MaxHeartbeatAge: 30 * time.Second, BatchMaxRows: 3, BatchMaxBytes: 8 << 20, MemoryBytes: 8 << 10},
			[]string{"apply", "stored", "impacted", "evaluated", "committed"}},
	}
	for _, r := range runs[1:] {
		c.exec("SELECT pg_copy_logical_replication_slot('core_slot', $1)", r.name)
	}
	c.save()
	for _, s := range depsScenarios[:len(depsScenarios)-2] {
		c.exec(s.sql)
	}
	for i := range 60 { // what can share batches, with a parent's change now and then
		c.exec(fmt.Sprintf("INSERT INTO lib.note VALUES (%d, %d, 'x'); UPDATE lib.tag SET note = %[1]d WHERE id = %[3]d", 1000+i, 1+i%6, 1+i%60))
		if i%15 == 0 {
			c.exec(fmt.Sprintf("UPDATE lib.folder SET owner = 'z%d' WHERE id = %d", i%3, 1+i%6))
		}
	}
	for i, r := range runs {
		c.cfg.Fail, c.limits = nil, r.limits
		if len(r.fail) > 0 {
			at, passed := 0, 0
			c.cfg.Fail = func(point string) error {
				if point != r.fail[at%len(r.fail)] {
					return nil
				}
				if passed++; passed%3 != 0 || at >= 8 {
					return nil
				}
				at++
				return errInjected
			}
		}
		if i > 0 {
			c.restore(r.name)
		}
		c.start()
		c.asRuled()
		c.released()
		c.stateAs("state_" + r.name)
		if i > 0 {
			c.same(r.name, "SELECT t, v FROM saved.state_"+r.name, "SELECT t, v FROM saved.state_batches")
		}
		if t.Failed() {
			t.Fatalf("run %s", r.name)
		}
	}
	c.want("SELECT count(*) > 100 FROM saved.state_batches", "true")
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
}

// The server crashes in the middle of changes that impact others, and loses what it had not flushed.
func TestServerCrashesAmidDependencies(t *testing.T) {
	t.Parallel()
	c := depsCore(t, pgtest.Config{Fsync: true, Settings: []string{"wal_writer_delay = '2s'"}})
	c.exec(depsRegistration(1000))
	c.exec(depsRows)
	c.start()
	c.streaming()
	for round := range 3 {
		conn, err := c.Conn(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for i := 0; ; i++ {
				if _, err := conn.Exec(context.Background(), fmt.Sprintf(`UPDATE lib.folder SET owner = 'c%d' WHERE id = %d;
					UPDATE lib.note SET folder = %d WHERE id = %d; DELETE FROM lib.member WHERE id = 500; INSERT INTO lib.member VALUES (500, %[2]d, 'c%[1]d')`,
					i%5, 1+i%6, 1+(i+round)%6, 1+i%30)); err != nil {
					return // the server has crashed
				}
			}
		}()
		time.Sleep(300 * time.Millisecond)
		if err := c.Restart(t.Context(), pgtest.Immediate); err != nil {
			t.Fatal(err)
		}
		<-ended
		c.db = c.Connect(t, "", "")
		c.asRuled()
	}
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
}
