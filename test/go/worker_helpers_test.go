package systest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"synchro/internal/pgtest"
	"synchro/worker"
)

// itemApp is an application with one table: a row is in the scope of its owner and, when it is shared, in one of all.
const itemApp = `
CREATE SCHEMA app;
CREATE TABLE app.item (id bigint PRIMARY KEY, owner text, shared boolean NOT NULL DEFAULT false, n int NOT NULL DEFAULT 0, big text,
  twice int GENERATED ALWAYS AS (n * 2) STORED, at timestamptz, deleted_at timestamptz);
ALTER TABLE app.item ALTER big SET STORAGE EXTERNAL;
GRANT USAGE ON SCHEMA app TO synchro_owner, synchro_worker;
GRANT SELECT ON app.item TO synchro_owner, synchro_worker;
SELECT synchro.synchro_prepare_projection_view('app.item', 'item', '{id,owner,shared}');
CREATE FUNCTION app.item_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC
  SELECT 'user:' || i.owner FROM synchro_projection.item i WHERE i.id = p_row_key AND i.owner IS NOT NULL
  UNION ALL SELECT 'all' FROM synchro_projection.item i WHERE i.id = p_row_key AND i.shared;
END;
REVOKE EXECUTE ON FUNCTION app.item_scopes(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION app.item_scopes(bigint) TO synchro_worker;`

const itemRegistration = `SELECT synchro.synchro_register_table('app.item', 'app.item_scopes', 'multi_scope', p_push_policy => 'read_only',
  p_deleted_at_col => 'deleted_at')`

// core runs the worker in this process, without its host, over a cluster whose own worker is off.
type core struct {
	*pgtest.Cluster
	t      testing.TB
	db     *pgx.Conn
	cfg    worker.Config
	limits worker.Limits
	rule   string // the membership function in force

	mu     sync.Mutex
	states []worker.State
	cancel context.CancelFunc
	done   chan error
}

// newCore starts a cluster with itemApp; the worker does not run yet.
func newCore(t testing.TB, cfg pgtest.Config) *core {
	t.Helper()
	cfg.NoWorker = true
	c := &core{Cluster: pgtest.StartWithExtension(t, cfg), t: t, rule: "app.item_scopes", limits: worker.Limits{
		MaxHeartbeatAge: 30 * time.Second, BatchMaxRows: 10000, BatchMaxBytes: 8 << 20, MemoryBytes: 192 << 20, BackfillBatchSize: 1000,
	}}
	c.db = c.Connect(t, "", "")
	c.exec("CREATE ROLE core_login LOGIN REPLICATION IN ROLE synchro_worker")
	c.exec(itemApp)
	c.cfg = worker.Config{
		Conninfo: c.DSN("core_login", ""), Database: pgtest.Database, Slot: "core_slot", Publication: "synchro",
		Limits: func() worker.Limits { return c.limits },
	}
	t.Cleanup(c.stop)
	return c
}

// register registers the table and commits.
func (c *core) register() {
	c.t.Helper()
	c.exec(itemRegistration)
}

// start runs the worker until stop, starting it again as a host does when it returns an error.
func (c *core) start() {
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel, c.done = cancel, make(chan error, 1)
	cfg := c.cfg
	go func() {
		for {
			err := worker.Run(ctx, cfg, func(s worker.State) {
				c.mu.Lock()
				c.states = append(c.states, s)
				c.mu.Unlock()
			})
			if ctx.Err() != nil {
				c.done <- err
				return
			}
			c.t.Logf("worker: %v", err)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
}

// stop ends the worker and waits for its end.
func (c *core) stop() {
	if c.cancel == nil {
		return
	}
	c.cancel()
	c.cancel = nil
	select {
	case err := <-c.done:
		if err != nil {
			c.t.Errorf("worker ended with %v", err)
		}
	case <-time.After(settle):
		c.t.Error("worker does not end")
	}
}

// released waits until the slot is free after stop.
func (c *core) released() {
	c.t.Helper()
	c.stop()
	c.poll("free slot", "SELECT count(*) FROM pg_replication_slots WHERE active", "0")
}

func (c *core) state() worker.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.states) == 0 {
		return ""
	}
	return c.states[len(c.states)-1]
}

func (c *core) exec(sql string, args ...any) {
	c.t.Helper()
	if _, err := c.db.Exec(context.Background(), sql, args...); err != nil {
		c.t.Fatalf("%v\n%s", err, sql)
	}
}

// value returns the text of a query's one value.
func (c *core) value(sql string, args ...any) string {
	c.t.Helper()
	var v *string
	if err := c.db.QueryRow(context.Background(), "SELECT ("+sql+")::text", args...).Scan(&v); err != nil {
		c.t.Fatalf("%v\n%s", err, sql)
	}
	if v == nil {
		return "NULL"
	}
	return *v
}

func (c *core) want(sql, want string) {
	c.t.Helper()
	if got := c.value(sql); got != want {
		c.t.Errorf("%s: %s, want %s", sql, got, want)
	}
}

func (c *core) poll(what, sql, want string) {
	c.t.Helper()
	last := ""
	err := pgtest.WaitFor(context.Background(), settle, what, func() (bool, error) {
		last = c.value(sql)
		return last == want, nil
	})
	if err != nil {
		c.t.Fatalf("%v: last %s, want %s; states %v; blocks %s", err, last, want, c.states, c.value("SELECT json_agg(to_jsonb(q) || to_jsonb(l)) FROM synchro.quarantine q LEFT JOIN synchro.relation l USING (rel_no)"))
	}
}

// streaming waits until the worker streams.
func (c *core) streaming() {
	c.t.Helper()
	c.poll("streaming", "SELECT count(*) FROM pg_stat_replication WHERE application_name = 'synchro stream' AND state = 'streaming'", "1")
}

// materialized waits until everything that is committed so far is materialized.
func (c *core) materialized() {
	c.t.Helper()
	lsn := c.value("synchro._emit_marker()")
	c.poll("materialized", fmt.Sprintf("SELECT seen_lsn >= '%s' FROM synchro.progress", lsn), "true")
}

// equal compares projection and entries with the source: what a baseline of this moment would make.
func (c *core) equal() {
	c.t.Helper()
	c.materialized()
	c.compare()
}

// compare is equal without waiting.
func (c *core) compare() {
	c.t.Helper()
	p := c.value("SELECT 'synchro_data.r_' || rel_no FROM synchro.relation WHERE physical_relation = 'item'")
	num := func(name string) string {
		return "c" + c.value("SELECT attnum FROM pg_attribute WHERE attrelid = 'app.item'::regclass AND attname = $1", name)
	}
	columns := ""
	for i, n := range []string{"id", "owner", "shared", "n", "big", "twice", "at", "deleted_at"} {
		if i > 0 {
			columns += ", "
		}
		columns += num(n)
	}
	projected := fmt.Sprintf("SELECT %s, row_xmin::text FROM %s", columns, p)
	original := "SELECT id, owner, shared, n, big, twice, at, deleted_at, xmin::text FROM app.item"
	c.same("projection", projected, original)

	rel := c.value("SELECT rel_no FROM synchro.relation WHERE physical_relation = 'item'")
	entries := fmt.Sprintf(`SELECT s.scope_id COLLATE "C", e.key, e.state::text, e.server_version, e.row_digest
		FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no) WHERE e.rel_no = %s AND e.state <> 'x'`, rel)
	members := fmt.Sprintf(`SELECT m.scope_id COLLATE "C", synchro._key_bytes('int64', p.%[2]s::text), CASE WHEN p.%[3]s IS NULL THEN 'l' ELSE 's' END,
		  p.server_version, synchro._row_digest(%[1]s, coalesce((SELECT e.digest_schema FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no)
		    WHERE s.scope_id = m.scope_id AND e.rel_no = %[1]s AND e.key = synchro._key_bytes('int64', p.%[2]s::text)), 1), p, p.server_version)
		FROM app.item i JOIN %[4]s p ON p.%[2]s = i.id CROSS JOIN LATERAL %[5]s(i.id) AS m(scope_id)`, rel, num("id"), num("deleted_at"), p, c.rule)
	c.same("entries", entries, members)
	c.same("scopes of rows",
		fmt.Sprintf("SELECT synchro._key_bytes('int64', p.%s::text), s FROM %s p, unnest(p.scopes) s", num("id"), p),
		fmt.Sprintf("SELECT key, scope_no FROM synchro.scope_entry WHERE rel_no = %s AND state <> 'x'", rel))
	c.want(`SELECT count(*) FROM (SELECT FROM synchro.scope_entry GROUP BY scope_no, commit_lsn, event_ordinal, effect_ordinal HAVING count(*) > 1) d`, "0")
	c.want(`SELECT count(*) FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no) WHERE e.commit_lsn > s.high_lsn`, "0")
	c.want(`SELECT count(*) FROM synchro.scope_entry e, synchro.progress p WHERE e.commit_lsn > p.commit_lsn`, "0")
}

// same compares two queries as multisets.
func (c *core) same(what, got, want string) {
	c.t.Helper()
	diff := func(a, b string) string {
		return c.value(fmt.Sprintf("SELECT count(*) FROM ((%s) EXCEPT ALL (%s)) d", a, b))
	}
	if extra, missing := diff(got, want), diff(want, got); extra != "0" || missing != "0" {
		c.t.Errorf("%s: %s extra, %s missing", what, extra, missing)
	}
}
