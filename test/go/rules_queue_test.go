package systest

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Generations that are registered while another one waits come into force one after the other, each at its place.
func TestChangesQueue(t *testing.T) {
	c := newRules(t)
	c.released()
	c.change("app.moved_scopes", "")
	c.exec("UPDATE app.item SET owner = 'u2' WHERE id = 1")
	c.change("app.other_scopes", "")
	c.exec("UPDATE app.item SET owner = 'u1' WHERE id = 2")
	c.change("app.item_scopes", "")
	var seen atomic.Int64
	c.during("switch", func(db *pgx.Conn, n int64) error {
		if n > 3 {
			return nil
		}
		// The switch itself is not committed yet: so many wait.
		var waiting, listed int64
		err := db.QueryRow(context.Background(), `SELECT count(*), jsonb_array_length(synchro.synchro_health_detail()#>'{staging,generations}') FROM synchro.backfill`).Scan(&waiting, &listed)
		if waiting != listed || waiting > 4-n {
			t.Errorf("%d generations wait at switch %d, %d are listed", waiting, n, listed)
		}
		seen.Store(n)
		return err
	})
	c.start()
	c.streaming()
	c.newest()
	c.equal()
	if seen.Load() != 3 {
		t.Errorf("%d switches", seen.Load())
	}
	// Each change counts: u2 loses its rows and gets them back, u1 keeps what both rules say.
	c.want("SELECT membership_generation FROM synchro.scope WHERE scope_id = 'user:u2'", "3")
	c.want("SELECT membership_generation FROM synchro.scope WHERE scope_id = 'user:u1'", "1")
	c.want("SELECT membership_generation FROM synchro.scope WHERE scope_id = 'other:u1'", "3")
}

// A generation behind a rejected one goes on from the rules in force, unless it needs rows that the rejected one has read.
func TestQueueBehindARejection(t *testing.T) {
	c := newRules(t)
	c.exec(secondTable)
	c.released()
	c.change("app.failing_scopes", "")
	c.change("app.moved_scopes", "")
	c.start()
	c.newest()
	c.rule = "app.moved_scopes"
	c.equal()
	c.want("SELECT string_agg(state || ' ' || reason, ', ') FROM synchro.backfill", "rejected scope_evaluation_failed")
	c.want(`SELECT synchro.synchro_health_detail()#>'{staging,generations}'`, "[]")

	c.released()
	c.exec("BEGIN; " + ruleChange("app.failing_scopes", "") + "; " + secondRegistration + "; COMMIT")
	c.exec("INSERT INTO app.second VALUES (2, 'u1')")
	c.change("app.other_scopes", "")
	c.start()
	c.poll("rejections", "SELECT string_agg(reason, ', ' ORDER BY generation) FROM synchro.backfill WHERE generation > (SELECT registry_generation FROM synchro.progress)",
		"scope_evaluation_failed, base_rejected")
	c.equal()
	// The new table is let go, and may come again.
	c.poll("sweep", "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'app.second'::regclass AND tgname LIKE 'synchro%'", "0")
	c.want("SELECT count(*) FROM pg_publication_tables WHERE tablename = 'second'", "0")
	c.exec("UPDATE app.second SET owner = 'u2'; INSERT INTO app.second VALUES (3, 'u1')")
	c.exec("BEGIN; " + ruleChange("app.item_scopes", "") + "; " + secondRegistration + "; COMMIT")
	c.newest()
	c.rule = "app.item_scopes"
	c.equal()
	c.secondEqual()
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
}

const secondTable = `
CREATE TABLE app.second (id bigint PRIMARY KEY, owner text);
INSERT INTO app.second VALUES (1, 'u1');
GRANT SELECT ON app.second TO synchro_owner, synchro_worker;
SELECT synchro.synchro_prepare_projection_view('app.second', 'second', '{id,owner}');
CREATE FUNCTION app.second_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'user:' || s.owner FROM synchro_projection.second s WHERE s.id = p_row_key AND s.owner IS NOT NULL; END;
REVOKE EXECUTE ON FUNCTION app.second_scopes FROM PUBLIC;
GRANT EXECUTE ON FUNCTION app.second_scopes TO synchro_worker`

const secondRegistration = "SELECT synchro.synchro_register_table('app.second', 'app.second_scopes', p_push_policy => 'read_only')"

// secondEqual compares what is materialized of app.second with the table.
func (c *core) secondEqual() {
	c.t.Helper()
	rel := c.value("SELECT rel_no FROM synchro.relation WHERE physical_relation = 'second'")
	c.same("second projection", "SELECT c1, c2, row_xmin::text FROM synchro_data.r_"+rel, "SELECT id, owner, xmin::text FROM app.second")
	c.same("second entries", fmt.Sprintf(`SELECT s.scope_id COLLATE "C", e.key, e.server_version FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no)
  WHERE e.rel_no = %s AND e.state <> 'x'`, rel), fmt.Sprintf(`SELECT ('user:' || c2) COLLATE "C", synchro._key_bytes('int64', c1::text), server_version FROM synchro_data.r_%s WHERE c2 IS NOT NULL`, rel))
}

// Tables that come and go with a changed rule: a new one is captured from its registration on and has its rows with the rule; one
// that leaves stays until then.
func TestTablesThatComeAndGoWithARule(t *testing.T) {
	c := newRules(t)
	c.exec(secondTable)
	c.released()
	c.limits.BackfillBatchSize = 5
	version := c.value("SELECT schema_version FROM synchro.progress")
	c.exec("BEGIN; " + ruleChange("app.moved_scopes", "") + "; " + secondRegistration + "; COMMIT")
	passed := c.during("staged", func(db *pgx.Conn, n int64) error {
		if n > 6 {
			return nil
		}
		var live int
		if err := db.QueryRow(context.Background(), "SELECT count(*) FROM synchro.scope_entry e JOIN synchro.relation l USING (rel_no) WHERE l.physical_relation = 'second'").Scan(&live); err != nil || live != 0 {
			t.Errorf("%d entries of a table that is not active, %v", live, err)
		}
		_, err := db.Exec(context.Background(), fmt.Sprintf("INSERT INTO app.second VALUES (%d, 'u%[1]d'); UPDATE app.second SET owner = 'u3' WHERE id = 1; DELETE FROM app.second WHERE id = %d", n+10, n+8))
		return err
	})
	c.start()
	c.streaming()
	c.newest()
	c.cfg.Fail = nil
	c.rule = "app.moved_scopes"
	c.equal()
	c.secondEqual()
	if passed.Load() < 6 {
		t.Errorf("%d batches", passed.Load())
	}
	c.want("SELECT string_agg(s.scope_id, ', ' ORDER BY s.scope_id) FROM synchro.scope s WHERE affected_version > "+version+" AND scope_id = 'user:u3'", "user:u3")

	c.released()
	c.exec("BEGIN; " + ruleChange("app.item_scopes", "") + "; SELECT synchro.synchro_unregister_table('app.second'); COMMIT")
	c.exec("UPDATE app.second SET owner = 'u1'")
	c.during("staged", func(db *pgx.Conn, n int64) error {
		if n > 3 {
			return nil
		}
		var err error
		if n > 1 { // what was written while it waits is there
			var owners string
			if err = db.QueryRow(context.Background(), `SELECT string_agg(DISTINCT s.scope_id, ',') FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no)
  JOIN synchro.relation l USING (rel_no) WHERE l.physical_relation = 'second' AND e.state = 'l'`).Scan(&owners); err == nil && owners != "user:u1" {
				t.Errorf("scopes of the leaving table: %s", owners)
			}
		}
		return err
	})
	c.start()
	c.newest()
	c.rule = "app.item_scopes"
	c.equal()
	c.poll("sweep", "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'app.second'::regclass AND tgname LIKE 'synchro%'", "0")
	c.want("SELECT count(*) FROM pg_publication_tables WHERE tablename = 'second'", "0")
	c.want("SELECT count(*) FROM synchro.scope_entry e JOIN synchro.relation l USING (rel_no) WHERE l.physical_relation = 'second'", "0")
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
}

// The same function with another definition: until the new one is in force, the old one goes on.
func TestFunctionThatIsReplaced(t *testing.T) {
	c := newRules(t)
	c.released()
	c.limits.BackfillBatchSize = 5
	body := rules[strings.Index(rules, "CREATE FUNCTION app.moved_scopes"):strings.Index(rules, "CREATE FUNCTION app.other_scopes")]
	c.exec("BEGIN; " + strings.Replace(body, "CREATE FUNCTION app.moved_scopes", "CREATE OR REPLACE FUNCTION app.item_scopes", 1) + ruleChange("app.item_scopes", "") + "; COMMIT")
	passed := c.during("staged", func(db *pgx.Conn, n int64) error {
		if n > 6 {
			return nil
		}
		var moved int
		if err := db.QueryRow(context.Background(), "SELECT count(*) FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no) WHERE s.scope_id = 'user:u9'").Scan(&moved); err != nil || moved != 0 {
			t.Errorf("%d rows under the new definition, %v", moved, err)
		}
		_, err := db.Exec(context.Background(), fmt.Sprintf("UPDATE app.item SET owner = 'u2' WHERE id IN (%d, %d)", n, 40-n))
		return err
	})
	c.start()
	c.streaming()
	c.newest()
	c.cfg.Fail = nil
	c.equal()
	if passed.Load() < 6 {
		t.Errorf("%d batches", passed.Load())
	}
	c.want("SELECT membership_generation FROM synchro.scope WHERE scope_id = 'user:u9'", "2")
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
	// Replaced and not registered: capture stops rather than use either.
	c.exec(strings.Replace(rules[strings.Index(rules, "CREATE FUNCTION app.other_scopes"):strings.Index(rules, "CREATE FUNCTION app.failing_scopes")],
		"CREATE FUNCTION app.other_scopes", "CREATE OR REPLACE FUNCTION app.item_scopes", 1))
	c.exec("UPDATE app.item SET n = 9")
	c.poll("block", "SELECT string_agg(class, ' ') FROM synchro.quarantine WHERE resolved_at IS NULL", "scope_evaluation_failed")
	// Registered after all: the copy stands in, the blocked transaction passes, and the new rule comes behind it.
	c.change("app.item_scopes", "")
	c.exec("SELECT synchro.synchro_retry_capture()")
	c.newest()
	c.equal()
	c.want("SELECT count(*) FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no) WHERE s.scope_id = 'other:u2' AND e.state = 'l'",
		c.value("SELECT count(*) FROM app.item WHERE owner = 'u2' AND deleted_at IS NULL"))
}

// A replaced function whose registration was rejected is known for good: the copy stands in behind later generations too.
func TestRejectedDefinitionIsOvertaken(t *testing.T) {
	c := newRules(t)
	c.exec(`BEGIN; CREATE OR REPLACE FUNCTION app.item_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
		BEGIN ATOMIC SELECT repeat('x', 300); END; ` + ruleChange("app.item_scopes", "") + "; COMMIT")
	c.poll("rejection", "SELECT state || ' ' || reason FROM synchro.backfill ORDER BY generation DESC LIMIT 1", "rejected scope_evaluation_failed")
	c.exec(`CREATE TABLE app.aside (id bigint PRIMARY KEY); GRANT SELECT ON app.aside TO synchro_owner, synchro_worker;
		SELECT synchro.synchro_register_capture_dependency('app.aside', '{id}', '{id}')`)
	c.newest()
	c.exec("UPDATE app.item SET n = n + 1, owner = 'u8' WHERE id = 1")
	c.materialized()
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
	c.want("SELECT count(*) FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no) WHERE s.scope_id = 'user:u8' AND e.state = 'l'", "1")
	c.want(`SELECT h.state FROM synchro._health_checks() h WHERE h."check" = 'functions'`, "ok")
}

// Another composition is another manifest: every scope that holds rows is affected.
func TestCompositionChange(t *testing.T) {
	c := newRules(t)
	c.exec("UPDATE app.item SET shared = false")
	c.equal()
	c.exec("SELECT synchro.synchro_register_table('app.item', 'app.item_scopes', 'single_scope', p_push_policy => 'read_only', p_deleted_at_col => 'deleted_at')")
	c.newest()
	c.want("SELECT m.transition_class FROM synchro.progress p JOIN synchro.manifest m USING (schema_version)", "class_3")
	c.want("SELECT string_agg(s.scope_id, ', ' ORDER BY s.scope_id) FROM synchro.progress p JOIN synchro.scope s ON s.affected_version = p.schema_version",
		"user:u0, user:u1, user:u2, user:u3")
	c.want(memberships, "all 1, user:u0 2, user:u1 2, user:u2 2, user:u3 2")
	c.exec("UPDATE app.item SET shared = true WHERE id = 1")
	c.poll("block", "SELECT string_agg(class, ' ') FROM synchro.quarantine WHERE resolved_at IS NULL", "scope_evaluation_failed")
}
