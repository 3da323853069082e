package systest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// secondRules makes another rule for app.second, and one that fails.
const secondRules = `
CREATE FUNCTION app.second_moved(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'second:' || s.owner FROM synchro_projection.second s WHERE s.id = p_row_key AND s.owner IS NOT NULL; END;
CREATE FUNCTION app.second_failing(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'second:' || 1 / (p_row_key - p_row_key); END;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA app FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA app TO synchro_worker`

func secondChange(function string) string {
	return fmt.Sprintf("SELECT synchro.synchro_register_table('app.second', 'app.%s', p_push_policy => 'read_only')", function)
}

// levels gives app.item a column whose rows have values that the projection cannot know, long ones among them.
const levels = `ALTER TABLE app.item ADD level text; ALTER TABLE app.item ALTER level SET STORAGE EXTERNAL;
UPDATE app.item SET level = CASE WHEN id % 5 = 0 THEN repeat('x', 5000) || id ELSE 'l' || id END`

// levelWork writes the new column, and others of rows that keep it.
func levelWork(ctx context.Context, db *pgx.Conn, rng *rand.Rand) error {
	if err := randomWork(ctx, db, rng, 1); err != nil {
		return err
	}
	_, err := db.Exec(ctx, []string{
		fmt.Sprintf("UPDATE app.item SET level = 'm%d' WHERE id = %d", rng.IntN(9), 1+rng.IntN(40)),
		fmt.Sprintf("UPDATE app.item SET n = n + 1 WHERE id = %d", 5*rng.IntN(9)),
		fmt.Sprintf("DELETE FROM app.item WHERE id = %d", 1+rng.IntN(40)),
		fmt.Sprintf("INSERT INTO app.item (id, owner, level) VALUES (%d, 'u1', repeat('y', %d)) ON CONFLICT (id) DO UPDATE SET level = NULL", 1+rng.IntN(40), rng.IntN(4000)),
		fmt.Sprintf("UPDATE app.second SET owner = 'u%d'", rng.IntN(4)),
	}[rng.IntN(5)])
	return err
}

func (c *core) levelsEqual() {
	c.t.Helper()
	c.same("levels", fmt.Sprintf("SELECT %s, %s FROM synchro_data.r_%s", c.column("id"), c.column("level"),
		c.value("SELECT rel_no FROM synchro.relation WHERE physical_relation = 'item'")), "SELECT id, level FROM app.item")
}

// secondIn compares the entries of app.second with the rule that puts rows into scopes of a prefix.
func (c *core) secondIn(prefix string) {
	c.t.Helper()
	c.same("entries of the second table", `SELECT s.scope_id COLLATE "C", e.key FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no) JOIN synchro.relation l USING (rel_no)
		WHERE l.physical_relation = 'second' AND e.state <> 'x'`,
		fmt.Sprintf(`SELECT '%s:' || owner COLLATE "C", synchro._key_bytes('int64', id::text) FROM app.second WHERE owner IS NOT NULL`, prefix))
}

// Rows that are read anew, in one transaction with changed rules and beside pending ones: all come into force at their places, and until
// then clients see nothing of any.
func TestRowsReadAnewBesideChangedRules(t *testing.T) {
	for name, way := range map[string]struct {
		register []string // transactions
		rule     string   // of app.item in the end
	}{
		"in one transaction":      {[]string{itemRegistration + "; " + secondChange("second_moved")}, "app.item_scopes"},
		"behind a pending rule":   {[]string{secondChange("second_moved"), itemRegistration}, "app.item_scopes"},
		"before a changed rule":   {[]string{itemRegistration, secondChange("second_moved")}, "app.item_scopes"},
		"behind a rule of itself": {[]string{ruleChange("app.other_scopes", ""), ruleChange("app.other_scopes", "") + "; " + secondChange("second_moved")}, "app.other_scopes"},
		"with its own rule":       {[]string{ruleChange("app.moved_scopes", "") + "; " + secondChange("second_moved")}, "app.moved_scopes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newRules(t)
			c.exec(secondTable)
			c.exec(secondRegistration)
			c.exec(secondRules)
			c.exec("INSERT INTO synchro.scope (scope_id, high_lsn) VALUES ('other', '0/1')")
			c.newest()
			version := c.value("SELECT schema_version FROM synchro.progress")
			c.exec(levels)
			c.equal() // so nothing in the stream brings the values
			c.released()
			c.limits.BackfillBatchSize = 5
			rng := rand.New(rand.NewPCG(31, 1))
			for i, sql := range way.register {
				before, after := "", ""
				if i == len(way.register)-1 { // what the registering transaction itself writes
					before, after = "UPDATE app.item SET level = 'own' WHERE id = 2; ", "; INSERT INTO app.item (id, owner, level) VALUES (70, 'u2', 'own'); DELETE FROM app.item WHERE id = 9"
				}
				c.exec("BEGIN; " + before + sql + after + "; COMMIT")
				for range 6 {
					if err := levelWork(t.Context(), c.db, rng); err != nil {
						t.Fatal(err)
					}
				}
			}
			passed := c.during("staged", func(db *pgx.Conn, n int64) error {
				var sound bool
				if err := db.QueryRow(context.Background(), `SELECT p.registry_generation < min(b.generation) AND p.schema_version = (SELECT g.schema_version FROM synchro.registry_generation g WHERE g.generation = p.registry_generation)
					  AND (bool_or(r.membership_function = 'app.second_moved'::regproc)
					       OR NOT EXISTS (SELECT FROM synchro.scope WHERE scope_id ~ '^second:' AND scope_no IN (SELECT scope_no FROM synchro.scope_entry)))
					FROM synchro.progress p, synchro.backfill b, synchro.active_registration r GROUP BY p.registry_generation, p.schema_version`).Scan(&sound); err != nil || !sound {
					t.Errorf("something of a pending generation is in force: %v", err)
				}
				if n > 6 {
					return nil
				}
				return levelWork(context.Background(), db, rng)
			})
			c.start()
			c.newest()
			c.cfg.Fail = nil
			c.rule = way.rule
			c.equal()
			c.levelsEqual()
			c.secondIn("second")
			if passed.Load() < 3 {
				t.Errorf("%d batches", passed.Load())
			}
			for range 10 {
				if err := levelWork(t.Context(), c.db, rng); err != nil {
					t.Fatal(err)
				}
			}
			c.equal()
			c.levelsEqual()
			c.want(fmt.Sprintf("SELECT count(*) FROM synchro.manifest WHERE schema_version > %s AND transition_class = 'class_3'", version), "1")
			c.want(`SELECT count(*) FROM synchro.scope s WHERE EXISTS (SELECT FROM synchro.scope_entry e JOIN synchro.relation l USING (rel_no)
				WHERE e.scope_no = s.scope_no AND l.physical_relation = 'item' AND e.state <> 'x' AND e.commit_lsn < (SELECT commit_lsn FROM synchro.progress)) AND s.membership_generation = 1 AND s.scope_id ~ '^user:u[012]'`, "0")
			c.want("SELECT membership_generation FROM synchro.scope WHERE scope_id = 'other'", "1")
			c.poll("end of the stages", stages, "0")
			c.want("SELECT count(*) FROM synchro.quarantine", "0")
		})
	}
}

// A generation whose rows were read and which is rejected leaves nothing; the same rows are read again by the next one.
func TestRowsReadByARejectedGeneration(t *testing.T) {
	t.Parallel()
	c := newRules(t)
	c.exec(secondTable)
	c.exec(secondRegistration)
	c.exec(secondRules)
	c.newest()
	active := c.value("SELECT registry_generation FROM synchro.progress")
	c.exec(levels)
	c.equal()
	c.released()
	c.exec("BEGIN; " + itemRegistration + "; " + secondChange("second_failing") + "; COMMIT")
	c.exec(secondChange("second_moved")) // goes on from the rows that the other one has read
	c.exec("UPDATE app.item SET level = 'before' WHERE id = 3")
	c.start()
	c.poll("rejections", "SELECT string_agg(reason, ',' ORDER BY generation) FROM synchro.backfill", "scope_evaluation_failed,base_rejected")
	c.equal()
	c.want("SELECT registry_generation FROM synchro.progress", active)
	c.poll("end of the stages", stages, "0")
	c.exec("UPDATE app.item SET level = 'after' WHERE id = 4; UPDATE app.item SET n = 7 WHERE id = 5")
	c.exec("BEGIN; " + itemRegistration + "; " + secondChange("second_moved") + "; COMMIT")
	c.exec("UPDATE app.item SET n = 8 WHERE id IN (5, 6)")
	c.newest()
	c.equal()
	c.levelsEqual()
	c.secondIn("second")
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
}

// A generation that is withdrawn before the worker comes to it leaves columns without values in the projection: they are read when they come again.
func TestColumnsOfAWithdrawnGeneration(t *testing.T) {
	t.Parallel()
	c := newRules(t)
	c.exec(teams)
	c.exec("BEGIN; " + ruleChange("app.led_scopes", "") + "; " + fmt.Sprintf(dependOnTeams, 1000) + "COMMIT")
	c.rule = "app.led_scopes"
	c.newest()
	c.exec("ALTER TABLE app.team ADD size int; UPDATE app.team SET size = id")
	c.equal()
	c.released()
	const sizes = "BEGIN; SELECT synchro.synchro_register_capture_dependency('app.team', '{id}', '{owner,lead,size}'); %s; COMMIT"
	c.exec("SET synchro.ddl_guard = off")
	c.exec("BEGIN; ALTER TABLE app.item DISABLE TRIGGER USER; UPDATE app.item SET n = 7 WHERE id = 1; " + triggersOn + "; COMMIT")
	c.exec(fmt.Sprintf(sizes, ruleChange("app.led_scopes", ", p_max_scope_fanout => 9")))
	c.start()
	c.blockedBy("fence_mismatch")
	c.want("SELECT synchro.synchro_withdraw_rules()", "1")
	c.exec(ruleChange("app.led_scopes", ""))
	c.poll("end of the recovery", "SELECT count(*) FROM synchro.quarantine WHERE resolved_at IS NULL", "0")
	c.exec(fmt.Sprintf(sizes, ruleChange("app.led_scopes", ", p_max_scope_fanout => 9")))
	c.newest()
	c.equal()
	c.same("sizes", fmt.Sprintf("SELECT c1, c%s FROM synchro_data.r_%s", c.value("SELECT attnum FROM pg_attribute WHERE attrelid = 'app.team'::regclass AND attname = 'size'"),
		c.value("SELECT rel_no FROM synchro.relation WHERE physical_relation = 'team'")), "SELECT id, size FROM app.team")
}

// Another deletion column beside a changed rule: every entry may mean something else.
func TestOtherDeletionColumnBesideAChangedRule(t *testing.T) {
	t.Parallel()
	c := newRules(t)
	c.exec(secondTable)
	c.exec(secondRegistration)
	c.exec(secondRules)
	c.newest()
	c.released()
	c.limits.BackfillBatchSize = 7
	c.exec("UPDATE app.item SET at = now() WHERE id % 2 = 0; UPDATE app.item SET deleted_at = now() WHERE id % 3 = 0")
	c.exec("BEGIN; " + fmt.Sprintf("SELECT synchro.synchro_register_table('app.item', '%s', 'multi_scope', p_push_policy => 'read_only', p_deleted_at_col => 'at')", "app.moved_scopes") +
		"; " + secondChange("second_moved") + "; COMMIT")
	c.exec("UPDATE app.item SET at = NULL WHERE id = 2; UPDATE app.item SET at = now(), owner = 'u2' WHERE id = 5")
	c.start()
	c.newest()
	c.materialized()
	c.same("states", `SELECT e.key, s.scope_id COLLATE "C", e.state::text, e.row_digest FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no) JOIN synchro.relation l USING (rel_no)
		WHERE l.physical_relation = 'item' AND e.state <> 'x'`, fmt.Sprintf(`SELECT synchro._key_bytes('int64', i.id::text), m COLLATE "C", CASE WHEN i.at IS NULL THEN 'l' ELSE 's' END,
		synchro._row_digest(l.rel_no, g.schema_version, p, p.server_version) FROM app.item i CROSS JOIN LATERAL app.moved_scopes(i.id) m JOIN synchro_data.r_%s p ON p.c1 = i.id
		JOIN synchro.relation l ON l.physical_relation = 'item', synchro.progress g`, c.value("SELECT rel_no FROM synchro.relation WHERE physical_relation = 'item'")))
	c.want("SELECT count(*) FROM synchro.scope WHERE scope_id LIKE 'user:%' AND membership_generation = 1", "0")
	c.secondIn("second")
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
}

// Writers are held to every configuration that their rows may be materialized with: to the one in force until another is, and then to that alone.
func TestWritersAreHeldToWhatIsInForce(t *testing.T) {
	t.Parallel()
	c := newRules(t)
	c.released()
	c.change("app.moved_scopes", "")
	c.change("app.moved_scopes", ", p_text_columns => '{at}'")
	if _, err := c.db.Exec(t.Context(), "UPDATE app.item SET at = 'infinity' WHERE id = 1"); err == nil {
		t.Error("a value that the generation in force cannot show was let in")
	}
	c.start()
	c.newest()
	c.rule = "app.moved_scopes"
	c.poll("new triggers", "SELECT split_part(encode(tgargs, 'escape'), '\\000', 8) <> '' FROM pg_trigger WHERE tgrelid = 'app.item'::regclass AND tgname = 'synchro_fence'", "true")
	c.exec("UPDATE app.item SET at = 'infinity' WHERE id = 1")
	c.equal()
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
}

// A table whose unregistration is committed comes back once that is in force, with the same id, and not before: neither while the core is
// stopped, nor behind a pending rule.
func TestTableComesBackOnceItsUnregistrationIsActive(t *testing.T) {
	for name, pending := range map[string]bool{"at once": false, "behind a pending rule": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newRules(t)
			c.exec(secondTable)
			c.exec(secondRegistration)
			c.exec(secondRules)
			c.newest()
			table := c.value("SELECT synchro.synchro_table_id('app.item')")
			c.equal()
			c.released()
			if pending {
				c.exec(secondChange("second_moved"))
			}
			c.exec("BEGIN; UPDATE app.item SET n = 3 WHERE id = 8; SELECT synchro.synchro_unregister_table('app.item'); UPDATE app.item SET n = 4 WHERE id IN (8, 10); COMMIT")
			_, err := c.db.Exec(t.Context(), ruleChange("app.moved_scopes", ""))
			if refused := (*pgconn.PgError)(nil); !errors.As(err, &refused) || refused.Code != "55000" {
				t.Errorf("%v, want 55000", err)
			}
			c.start()
			c.newest()
			c.exec("BEGIN; UPDATE app.item SET n = 5 WHERE id = 11; " + ruleChange("app.moved_scopes", "") + "; UPDATE app.item SET n = 6 WHERE id IN (8, 12); COMMIT")
			c.newest()
			c.rule = "app.moved_scopes"
			c.equal()
			c.want("SELECT synchro.synchro_table_id('app.item')", table)
			c.want("SELECT string_agg(m.transition_class, ',' ORDER BY m.schema_version) FROM synchro.manifest m WHERE m.schema_version > 3", "class_4,class_3")
			c.want("SELECT count(*) FROM synchro.quarantine", "0")
		})
	}
}
