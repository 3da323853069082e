package systest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"synchro/internal/pgtest"
)

// rules makes functions with other rules than app.item_scopes.
const rules = `
CREATE FUNCTION app.moved_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC
  SELECT 'user:' || CASE i.owner WHEN 'u2' THEN 'u9' ELSE i.owner END FROM synchro_projection.item i WHERE i.id = p_row_key AND i.owner IS NOT NULL
  UNION ALL SELECT 'all' FROM synchro_projection.item i WHERE i.id = p_row_key AND i.shared;
END;
CREATE FUNCTION app.other_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC
  SELECT 'other:' || coalesce(i.owner, 'none') FROM synchro_projection.item i WHERE i.id = p_row_key
  UNION ALL SELECT 'all' FROM synchro_projection.item i WHERE i.id = p_row_key AND NOT i.shared
  UNION ALL SELECT 'user:' || i.owner FROM synchro_projection.item i WHERE i.id = p_row_key AND i.owner = 'u1';
END;
CREATE FUNCTION app.failing_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC
  SELECT 'one:' || (1 / (i.id - 7)) FROM synchro_projection.item i WHERE i.id = p_row_key;
END;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA app FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA app TO synchro_worker`

// newRules starts a core with rows under app.item_scopes, materialized.
func newRules(t testing.TB) *core {
	c := newCore(t, pgtest.Config{})
	c.exec(rules)
	c.register()
	c.start()
	c.streaming()
	c.exec("INSERT INTO app.item (id, owner, shared) SELECT g, 'u' || g % 4, g % 3 = 0 FROM generate_series(1, 40) g")
	c.equal()
	return c
}

func ruleChange(function, more string) string {
	return fmt.Sprintf("SELECT synchro.synchro_register_table('app.item', '%s', 'multi_scope', p_push_policy => 'read_only', p_deleted_at_col => 'deleted_at'%s)", function, more)
}

// change registers another rule.
func (c *core) change(function, more string) {
	c.t.Helper()
	c.exec(ruleChange(function, more))
}

// newest waits until the newest generation is active and nothing waits.
func (c *core) newest() {
	c.t.Helper()
	c.poll("activation", `SELECT p.registry_generation = synchro._newest_generation() AND NOT EXISTS (SELECT FROM synchro.backfill b WHERE b.state <> 'rejected')
  FROM synchro.progress p`, "true")
	c.want("SELECT count(*) FROM synchro.staged_membership", "0")
}

const memberships = "SELECT string_agg(scope_id || ' ' || membership_generation, ', ' ORDER BY scope_id) FROM synchro.scope"

// A changed rule gives exactly the scopes that gain or lose rows a new membership generation.
func TestRuleChangeInvalidatesTheScopesThatItAffects(t *testing.T) {
	c := newRules(t)
	c.want(memberships, "all 1, user:u0 1, user:u1 1, user:u2 1, user:u3 1")
	c.change("app.moved_scopes", "")
	c.newest()
	c.rule = "app.moved_scopes"
	c.equal()
	c.want(memberships, "all 1, user:u0 1, user:u1 1, user:u2 2, user:u3 1, user:u9 2")
	c.want("SELECT count(*) FROM synchro.manifest WHERE schema_version > 2", "0")
	// What was not affected was not written.
	c.want("SELECT count(*) FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no), synchro.progress p WHERE s.scope_id IN ('all', 'user:u1') AND e.commit_lsn <> (SELECT min(commit_lsn) FROM synchro.scope_entry)", "0")
	// The bound alone: no row moves, no scope is affected.
	c.change("app.moved_scopes", ", p_max_scope_fanout => 3")
	c.newest()
	c.equal()
	c.want(memberships, "all 1, user:u0 1, user:u1 1, user:u2 2, user:u3 1, user:u9 2")
	// There and back again: once for each change.
	c.change("app.item_scopes", "")
	c.newest()
	c.rule = "app.item_scopes"
	c.equal()
	c.want(memberships, "all 1, user:u0 1, user:u1 1, user:u2 3, user:u3 1, user:u9 3")
	c.exec("UPDATE app.item SET owner = 'u9' WHERE id = 3")
	c.equal()
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
}

// Listed scopes get a new membership generation, affected or not; a list that lacks an affected one rejects the registration.
func TestListedScopes(t *testing.T) {
	c := newRules(t)
	active := c.value("SELECT registry_generation FROM synchro.progress")
	c.change("app.moved_scopes", ", p_affected_scopes => '{user:u2,user:u1}'")
	c.poll("rejection", "SELECT string_agg(concat_ws(' ', state, reason, rel_no IS NOT NULL), ',') FROM synchro.backfill", "rejected affected_scopes_incomplete t")
	c.equal()
	c.want("SELECT registry_generation FROM synchro.progress", active)
	c.want(memberships, "all 1, user:u0 1, user:u1 1, user:u2 1, user:u3 1, user:u9 1")
	c.want("SELECT count(*) FROM synchro.staged_membership", "0")
	c.want(`SELECT jsonb_path_query_array(synchro.synchro_health_detail()->'staging', '$.generations[*].reason')`, `["affected_scopes_incomplete"]`)
	c.change("app.moved_scopes", ", p_affected_scopes => '{user:u2,user:u9,user:u1,user:new}'")
	c.newest()
	c.rule = "app.moved_scopes"
	c.equal()
	c.want(memberships, "all 1, user:new 2, user:u0 1, user:u1 2, user:u2 2, user:u3 1, user:u9 2")
	c.want(`SELECT synchro.synchro_health_detail()#>'{staging,generations}'`, "[]")
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
}

// A rule that fails for some row is rejected; the one before it stays in force, and capture goes on.
func TestRuleThatFailsIsRejected(t *testing.T) {
	c := newRules(t)
	c.limits.BackfillBatchSize = 3
	for _, change := range []struct{ function, more, reason string }{
		{"app.failing_scopes", "", "rejected scope_evaluation_failed"},
		{"app.item_scopes", ", p_max_scope_fanout => 1", "rejected scope_evaluation_failed"},
	} {
		c.change(change.function, change.more)
		c.poll("rejection", "SELECT state || ' ' || reason FROM synchro.backfill ORDER BY generation DESC LIMIT 1", change.reason)
		c.exec("UPDATE app.item SET n = n + 1; DELETE FROM app.item WHERE id = 11; INSERT INTO app.item (id, owner) VALUES (11, 'u5')")
		c.equal()
	}
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
	// The same again is tried again.
	c.exec("DELETE FROM app.item WHERE id = 7")
	c.change("app.failing_scopes", "")
	c.newest()
	c.rule = "app.failing_scopes"
	c.equal()
}

// during makes the core call fn, on a connection of its own, at every passage of a point while something waits.
func (c *core) during(point string, fn func(db *pgx.Conn, passage int64) error) *atomic.Int64 {
	var passed atomic.Int64
	db := c.Connect(c.t, "", "")
	c.cfg.Fail = func(at string) error {
		if at != point {
			return nil
		}
		return fn(db, passed.Add(1))
	}
	return &passed
}

// Transactions that commit between the batches are evaluated under both rules: the live edges stay those of the old one until the end.
func TestStagingFollowsTheStream(t *testing.T) {
	for _, size := range []int{1, 3, 1000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			c := newRules(t)
			c.released()
			c.limits.BackfillBatchSize = size
			rng := rand.New(rand.NewPCG(uint64(size), 21))
			passed := c.during("staged", func(db *pgx.Conn, n int64) error {
				var old bool
				err := db.QueryRow(context.Background(), "SELECT NOT EXISTS (SELECT FROM synchro.scope WHERE scope_id ~ '^other:' AND scope_no IN (SELECT scope_no FROM synchro.scope_entry))").Scan(&old)
				if err == nil && !old {
					t.Error("edges of the new rule are live before it is active")
				}
				if err == nil && n <= 60 {
					err = randomWork(context.Background(), db, rng, 1+rng.IntN(3))
				}
				return err
			})
			c.start()
			c.streaming()
			c.change("app.other_scopes", "")
			c.newest()
			c.rule = "app.other_scopes"
			c.cfg.Fail = nil
			c.equal()
			if passed.Load() < 2 {
				t.Errorf("%d batches", passed.Load())
			}
			if err := randomWork(t.Context(), c.db, rng, 30); err != nil {
				t.Fatal(err)
			}
			c.equal()
			c.want("SELECT count(*) FROM synchro.quarantine", "0")
		})
	}
}

// Wherever the core ends, it goes on to the same result.
func TestStagingGoesOnAfterAFailure(t *testing.T) {
	for _, point := range []string{"apply", "stored", "committed", "stage", "staged", "switch"} {
		t.Run(point, func(t *testing.T) {
			c := newRules(t)
			c.released()
			c.limits.BackfillBatchSize = 4
			rng := rand.New(rand.NewPCG(1, 22))
			db := c.Connect(t, "", "")
			var passed, batches atomic.Int64
			c.cfg.Fail = func(at string) error {
				if at == "staged" && batches.Add(1) < 20 {
					if err := randomWork(context.Background(), db, rng, 1); err != nil {
						return err
					}
				}
				if n := passed.Add(1); at == point && n%3 != 0 && n < 60 {
					return errInjected
				}
				return nil
			}
			c.start()
			for _, rule := range []string{"app.other_scopes", "app.moved_scopes", "app.item_scopes"} {
				c.change(rule, "")
				c.newest()
				c.rule = rule
				c.equal()
			}
			c.want("SELECT count(*) FROM synchro.quarantine", "0")
			c.want("SELECT count(*) FROM synchro.backfill", "0")
		})
	}
}
