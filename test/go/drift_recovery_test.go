package systest

import (
	"testing"

	"synchro/internal/pgtest"
)

// Rows written without fences block; registering the table again reads them, and capture goes on from there by itself, with clients waiting
// until then. What other tables did meanwhile is there too, and a crash on the way changes nothing.
func TestRegistrationRecoversABlock(t *testing.T) {
	t.Parallel()
	c := newCore(t, pgtest.Config{})
	c.exec(`CREATE TABLE app.other (id bigint PRIMARY KEY, n int); GRANT SELECT ON app.other TO synchro_owner, synchro_worker;
		CREATE FUNCTION app.other_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC SELECT 'all'; END;
		REVOKE EXECUTE ON FUNCTION app.other_scopes(bigint) FROM PUBLIC; GRANT EXECUTE ON FUNCTION app.other_scopes(bigint) TO synchro_worker;
		SELECT synchro.synchro_register_table('app.other', 'app.other_scopes', p_push_policy => 'read_only')`)
	c.register()
	c.start()
	c.streaming()
	c.exec("INSERT INTO app.item (id, owner) SELECT g, 'u' || g % 3 FROM generate_series(1, 10) g; INSERT INTO app.other VALUES (1, 1)")
	c.equal()
	c.exec("SET synchro.ddl_guard = off")
	c.exec("BEGIN; ALTER TABLE app.item DISABLE TRIGGER USER; UPDATE app.item SET n = 7, owner = 'u9' WHERE id = 1; DELETE FROM app.item WHERE id = 2; " + triggersOn + "; COMMIT")
	c.blockedBy("fence_mismatch")
	c.exec("UPDATE app.other SET n = 2; INSERT INTO app.other VALUES (2, 2); UPDATE app.item SET n = 8 WHERE id = 3")
	c.want("SELECT count(*) FROM synchro.scope_entry WHERE state = 'l'", "11")
	c.released() // so that the registration, its crash and its restart lie behind the block
	c.register()
	c.exec("UPDATE app.item SET n = 9 WHERE id = 4; INSERT INTO app.other VALUES (3, 3)")
	c.start()
	c.poll("end of the recovery", "SELECT count(*) FROM synchro.quarantine WHERE resolved_at IS NULL", "0")
	c.equal()
	c.want("SELECT string_agg(resolution, ',') FROM synchro.quarantine", "reconfigured")
	c.want("SELECT count(*) FROM synchro.capture_recovery", "0")
	c.same("the other table", "SELECT c1, c2 FROM synchro_data.r_"+c.value("SELECT rel_no FROM synchro.relation WHERE physical_relation = 'other'"), "TABLE app.other")
	c.want("SELECT string_agg(scope_id, ',' ORDER BY scope_id) FROM synchro.scope WHERE membership_generation > 1", "user:u0,user:u1,user:u2,user:u9")
	c.want("SELECT count(DISTINCT schema_version) FROM synchro.registry_generation WHERE generation >= 3", "1") // Class 1: clients keep their manifest
}

// While it recovers, nobody is served and nobody is told that capture may be retried.
func TestRecoveryKeepsClientsWaiting(t *testing.T) {
	t.Parallel()
	c := streamingCore(t, pgtest.Config{})
	c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1')")
	c.equal()
	c.exec("SET synchro.ddl_guard = off")
	c.exec("ALTER TABLE app.item ALTER big TYPE text USING 'x'") // changes rows without a row operation
	c.blockedBy("registered_relation_drift")
	c.exec("SELECT synchro.synchro_retry_capture()")
	c.poll("second block", "SELECT count(*) FROM synchro.quarantine", "2")
	c.released()
	c.register()
	// A recovery that has begun, as a crash leaves it.
	c.exec("INSERT INTO synchro.capture_recovery SELECT rel_no, (SELECT max(generation) FROM synchro.registry_generation), quarantine_no FROM synchro.quarantine WHERE resolved_at IS NULL")
	if _, err := c.db.Exec(t.Context(), "SELECT synchro.synchro_retry_capture()"); err == nil {
		t.Error("a recovery was retried")
	}
	c.want("SELECT count(*) FROM synchro.quarantine WHERE resolved_at IS NULL", "1")
	c.start()
	c.poll("end of the recovery", "SELECT count(*) FROM synchro.quarantine WHERE resolved_at IS NULL", "0")
	c.equal()
	c.want("SELECT big FROM app.item", "x")
}

// Triggers and publication off at once: no retry could notice what was written meanwhile, so only a registration helps.
func TestBlindSpotNeedsARegistration(t *testing.T) {
	t.Parallel()
	c := streamingCore(t, pgtest.Config{})
	c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1')")
	c.equal()
	c.exec("SET synchro.ddl_guard = off")
	c.exec("BEGIN; ALTER TABLE app.item DISABLE TRIGGER USER; ALTER PUBLICATION synchro DROP TABLE app.item; COMMIT")
	c.exec("UPDATE app.item SET n = 5")
	c.blockedBy("registered_relation_drift")
	c.exec(triggersOn + "; ALTER PUBLICATION synchro ADD TABLE app.item")
	if _, err := c.db.Exec(t.Context(), "SELECT synchro.synchro_retry_capture()"); err == nil {
		t.Error("a retry was let through")
	}
	c.register()
	c.poll("end of the recovery", "SELECT count(*) FROM synchro.quarantine WHERE resolved_at IS NULL", "0")
	c.equal()
}

// A function that fails for a row blocks; another function for the table, registered while blocked, ends that. A rule of another table that
// reads the first one is evaluated anew with it.
func TestAnotherFunctionRecoversAnEvaluation(t *testing.T) {
	t.Parallel()
	c := newCore(t, pgtest.Config{})
	c.register()
	c.exec(`CREATE TABLE app.child (id bigint PRIMARY KEY, item bigint NOT NULL); GRANT SELECT ON app.child TO synchro_owner, synchro_worker;
		SELECT synchro.synchro_prepare_projection_view('app.child', 'child', '{id,item}');
		CREATE FUNCTION app.child_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC
		  SELECT 'user:' || i.owner FROM synchro_projection.child c JOIN synchro_projection.item i ON i.id = c.item WHERE c.id = p_row_key AND i.owner IS NOT NULL; END;
		REVOKE EXECUTE ON FUNCTION app.child_scopes(bigint) FROM PUBLIC; GRANT EXECUTE ON FUNCTION app.child_scopes(bigint) TO synchro_worker`)
	table := c.value("SELECT synchro.synchro_table_id('app.child')")
	c.exec(`CREATE FUNCTION app.item_impact(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC
		  SELECT ROW('` + table + `', 'int64', c.id::text)::synchro.synchro_row_ref FROM synchro_projection.child c
		   WHERE c.item IN ((p_old_row->>'id')::bigint, (p_new_row->>'id')::bigint); END;
		REVOKE EXECUTE ON FUNCTION app.item_impact(jsonb, jsonb) FROM PUBLIC; GRANT EXECUTE ON FUNCTION app.item_impact(jsonb, jsonb) TO synchro_worker`)
	c.exec(`BEGIN; SELECT synchro.synchro_register_table('app.child', 'app.child_scopes', p_push_policy => 'read_only');
		SELECT synchro.synchro_register_membership_dependency('app.item', 'app.child', 'app.item_impact', '{id,owner}'); COMMIT`)
	c.start()
	c.streaming()
	c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1'), (2, 'u2'); INSERT INTO app.child VALUES (11, 1), (12, 2)")
	c.equal()
	c.exec("UPDATE app.item SET owner = repeat('x', 300) WHERE id = 1")
	c.blockedBy("scope_evaluation_failed")
	c.exec("UPDATE app.item SET owner = 'u3' WHERE id = 1; INSERT INTO app.child VALUES (13, 1); DELETE FROM app.child WHERE id = 12; UPDATE app.item SET owner = 'u4' WHERE id = 2")
	c.register()
	c.poll("end of the recovery", "SELECT count(*) FROM synchro.quarantine WHERE resolved_at IS NULL", "0")
	c.exec("INSERT INTO app.child VALUES (14, 2)")
	c.equal()
	c.same("entries of the dependent table", `SELECT s.scope_id COLLATE "C", e.key FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no) JOIN synchro.relation l USING (rel_no)
		WHERE l.physical_relation = 'child' AND e.state = 'l'`,
		`SELECT 'user:' || i.owner COLLATE "C", synchro._key_bytes('int64', c.id::text) FROM app.child c JOIN app.item i ON i.id = c.item`)
	c.want("SELECT count(*) FROM synchro.quarantine WHERE resolution = 'reconfigured'", "1")
}

// Off and on again in one transaction: no look at the catalogs ever sees it, so the commands themselves tell the worker.
func TestMomentOfBlindnessBlocks(t *testing.T) {
	t.Parallel()
	c := newCore(t, pgtest.Config{})
	c.exec(`CREATE TABLE app.part (id bigint PRIMARY KEY, owner text NOT NULL) PARTITION BY HASH (id); CREATE TABLE app.part_0 PARTITION OF app.part FOR VALUES WITH (modulus 1, remainder 0);
		GRANT SELECT ON app.part TO synchro_owner, synchro_worker; SELECT synchro.synchro_prepare_projection_view('app.part', 'part', '{id,owner}');
		CREATE FUNCTION app.part_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC
		  SELECT 'user:' || p.owner FROM synchro_projection.part p WHERE p.id = p_row_key; END;
		REVOKE EXECUTE ON FUNCTION app.part_scopes(bigint) FROM PUBLIC; GRANT EXECUTE ON FUNCTION app.part_scopes(bigint) TO synchro_worker`)
	registerPart := "SELECT synchro.synchro_register_table('app.part', 'app.part_scopes', p_push_policy => 'read_only')"
	c.exec(registerPart)
	c.register()
	c.start()
	c.streaming()
	c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1'), (2, 'u2'); INSERT INTO app.part VALUES (1, 'u1'), (2, 'u2')")
	c.equal()
	c.exec("SET synchro.ddl_guard = off")
	for _, moment := range []struct{ what, register string }{
		{"ALTER TABLE app.item DISABLE TRIGGER USER; ALTER PUBLICATION synchro DROP TABLE app.item; UPDATE app.item SET n = n + 1, owner = owner || 'x'; " +
			triggersOn + "; ALTER PUBLICATION synchro ADD TABLE app.item", ""},
		{"ALTER PUBLICATION synchro SET (publish = 'insert'); ALTER TABLE app.item DISABLE TRIGGER USER; DELETE FROM app.item WHERE id = 1; " +
			triggersOn + "; ALTER PUBLICATION synchro SET (publish = 'insert, update, delete, truncate')", ""},
		// The row events of a TRUNCATE are those of the root, and a partition's has none.
		{"ALTER TABLE app.part_0 DISABLE TRIGGER synchro_truncate_guard; TRUNCATE app.part_0; ALTER TABLE app.part_0 ENABLE ALWAYS TRIGGER synchro_truncate_guard", registerPart},
	} {
		c.exec("BEGIN; " + moment.what + "; COMMIT")
		c.want("SELECT count(*) FROM synchro._drift() WHERE blocks", "0")
		c.blockedBy("registered_relation_drift")
		if moment.register != "" {
			c.exec(moment.register)
		} else {
			c.register()
		}
		c.poll("end of the recovery", "SELECT count(*) FROM synchro.quarantine WHERE resolved_at IS NULL", "0")
		c.equal()
	}
	c.same("the partitioned table", "SELECT c1, c2 FROM synchro_data.r_"+c.value("SELECT rel_no FROM synchro.relation WHERE physical_relation = 'part'"), "TABLE app.part")
}

// Two tables block, the second one in the course of the recovery from the first: its block takes the place of the first one, and is answered in the
// same way, or by a retry. Both are as if they had been read at once.
func TestSecondBlockInARecovery(t *testing.T) {
	for name, way := range map[string]struct {
		spoil, class, answer, repair, resolutions string
	}{
		"answered by a registration": {
			spoil: "BEGIN; ALTER TABLE app.second DISABLE TRIGGER USER; UPDATE app.second SET owner = 'u9' WHERE id = 1; ALTER TABLE app.second ENABLE ALWAYS TRIGGER synchro_fence, ENABLE ALWAYS TRIGGER synchro_key_guard, ENABLE ALWAYS TRIGGER synchro_truncate_guard; COMMIT",
			class: "fence_mismatch", answer: secondRegistration, resolutions: "superseded,reconfigured",
		},
		"answered by a retry": {
			spoil: "ALTER FUNCTION app.second_scopes(bigint) COST 77; UPDATE app.second SET owner = 'u9' WHERE id = 1",
			class: "scope_evaluation_failed", repair: "ALTER FUNCTION app.second_scopes(bigint) COST 100", answer: "SELECT synchro.synchro_retry_capture()", resolutions: "superseded,retried,reconfigured",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newRules(t)
			c.exec(secondTable)
			c.exec(secondRegistration)
			c.newest()
			c.exec("SET synchro.ddl_guard = off")
			c.exec("BEGIN; ALTER TABLE app.item DISABLE TRIGGER USER; UPDATE app.item SET n = 7, owner = 'u9' WHERE id = 1; " + triggersOn + "; COMMIT")
			c.blockedBy("fence_mismatch")
			c.exec("UPDATE app.second SET owner = 'u2'")
			c.exec(way.spoil)
			c.exec("INSERT INTO app.second VALUES (2, 'u3'); UPDATE app.item SET n = 8 WHERE id = 2")
			c.register()
			c.poll("second block", "SELECT string_agg(class || ' ' || coalesce(resolution, 'open'), ',' ORDER BY quarantine_no) FROM synchro.quarantine", "fence_mismatch superseded,"+way.class+" open")
			c.want("SELECT count(*) FROM synchro.quarantine q JOIN synchro.relation l USING (rel_no) WHERE q.resolved_at IS NULL AND l.physical_relation = 'second'", "1")
			c.exec("UPDATE app.item SET n = 9 WHERE id = 3; INSERT INTO app.second VALUES (3, 'u1')")
			if way.repair != "" {
				c.exec(way.repair)
			}
			c.exec(way.answer)
			c.poll("end of the recoveries", "SELECT count(*) FROM synchro.capture_recovery", "0")
			c.poll("end of the block", "SELECT count(*) FROM synchro.quarantine WHERE resolved_at IS NULL", "0")
			c.exec("UPDATE app.item SET n = 10 WHERE id = 4; UPDATE app.second SET owner = 'u0' WHERE id = 3")
			c.newest()
			c.equal()
			c.secondEqual()
			c.want("SELECT string_agg(resolution, ',' ORDER BY quarantine_no) FROM synchro.quarantine", way.resolutions)
		})
	}
}
