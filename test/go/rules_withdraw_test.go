package systest

import "testing"

// A changed rule that is pending when capture blocks, before the block or behind it, is in the way of reading rows anew: it can be withdrawn, and
// then the block is recovered under the rule in force.
func TestPendingRulesAreWithdrawn(t *testing.T) {
	const bad = "BEGIN; ALTER TABLE app.item DISABLE TRIGGER USER; UPDATE app.item SET n = 7, owner = 'u9' WHERE id = 1; " + triggersOn + "; COMMIT"
	for name, withdraw := range map[string]func(c *core){
		"behind the block": func(c *core) { // of another table: one of the table that blocks answers the block
			c.exec(`CREATE TABLE app.other (id bigint PRIMARY KEY); GRANT SELECT ON app.other TO synchro_owner, synchro_worker; INSERT INTO app.other VALUES (1)`)
			other := func(scope string) {
				c.exec("CREATE FUNCTION app.other_" + scope + `(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
					BEGIN ATOMIC SELECT '` + scope + "'; END; REVOKE EXECUTE ON FUNCTION app.other_" + scope + "(bigint) FROM PUBLIC; GRANT EXECUTE ON FUNCTION app.other_" + scope +
					"(bigint) TO synchro_worker; SELECT synchro.synchro_register_table('app.other', 'app.other_" + scope + "', p_push_policy => 'read_only')")
			}
			other("one")
			c.newest()
			c.exec(bad)
			c.blockedBy("fence_mismatch")
			other("two")
		},
		"staged before it": func(c *core) {
			c.released()
			c.limits.BackfillBatchSize = 1
			c.change("app.moved_scopes", "")
			c.exec(bad)
			c.start()
			c.blockedBy("fence_mismatch")
			c.want("SELECT count(*) FROM synchro.backfill WHERE state <> 'rejected'", "1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newRules(t)
			if _, err := c.db.Exec(t.Context(), "SELECT synchro.synchro_withdraw_rules()"); sqlStateOf(err) != "55000" {
				t.Errorf("without a block: %v", err)
			}
			c.exec("SET synchro.ddl_guard = off")
			withdraw(c)
			if _, err := c.db.Exec(t.Context(), itemRegistration); sqlStateOf(err) != "55000" {
				t.Errorf("rows read anew behind a pending rule: %v", err)
			}
			c.want("SELECT synchro.synchro_withdraw_rules()", "1")
			c.want("SELECT synchro.synchro_withdraw_rules()", "0")
			c.register()
			c.poll("end of the recovery", "SELECT count(*) FROM synchro.quarantine WHERE resolved_at IS NULL", "0")
			c.newest()
			c.equal()
			c.want("SELECT string_agg(DISTINCT reason, ',') FROM synchro.backfill WHERE reason IS NOT NULL", "withdrawn")
			// The change can be made again.
			c.change("app.moved_scopes", "")
			c.newest()
			c.rule = "app.moved_scopes"
			c.equal()
		})
	}
}
