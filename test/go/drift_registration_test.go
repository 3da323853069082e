package systest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"synchro/internal/pgtest"
)

// reregister registers the table with another configuration than itemRegistration's.
func reregister(more string) string {
	return strings.TrimSuffix(itemRegistration, ")") + ", " + more + ")"
}

// pending waits for nothing: it says how many tables with rows read anew there are.
const stages = `SELECT count(*) FROM pg_class WHERE relnamespace = 'synchro_data'::regnamespace AND relname LIKE 's\_%'`

func (c *core) class() string {
	c.t.Helper()
	return c.value("SELECT transition_class FROM synchro.manifest ORDER BY schema_version DESC LIMIT 1")
}

// column is the projection's column of a source column.
func (c *core) column(name string) string {
	c.t.Helper()
	return "c" + c.value("SELECT attnum FROM pg_attribute WHERE attrelid = 'app.item'::regclass AND attname = $1", name)
}

// A column without values joins: a compatible step that reads nothing anew and takes nothing from clients. Its later values are captured.
func TestAddedColumnWithoutValues(t *testing.T) {
	t.Parallel()
	c := streamingCore(t, pgtest.Config{})
	c.exec("INSERT INTO app.item (id, owner, shared) SELECT g, 'u' || g % 3, g % 2 = 0 FROM generate_series(1, 20) g")
	c.equal()
	entries := "SELECT md5(string_agg(format('%s %s %s %s %s', scope_no, commit_lsn, event_ordinal, key, server_version), ',' ORDER BY scope_no, key)) FROM synchro.scope_entry"
	before := c.value(entries)
	c.stop()
	c.exec("ALTER TABLE app.item ADD extra text")
	c.exec("UPDATE app.item SET extra = 'gone' WHERE id = 1; UPDATE app.item SET extra = NULL WHERE id = 1; DELETE FROM app.item WHERE id = 20")
	c.register()
	c.want(stages, "0")
	c.exec("INSERT INTO app.item (id, owner, extra) VALUES (30, 'u1', 'new'); UPDATE app.item SET extra = 'set' WHERE id = 2")
	c.start()
	c.equal()
	if got := c.class(); got != "class_2" {
		t.Errorf("an added column without values is %s", got)
	}
	c.same("added column", fmt.Sprintf("SELECT c1, %s FROM synchro_data.r_1", c.column("extra")), "SELECT id, extra FROM app.item")
	c.want("SELECT max(membership_generation) FROM synchro.scope", "1")
	c.want("SELECT count(*) FROM synchro.scope WHERE affected_version = (SELECT schema_version FROM synchro.progress)", "0")
	c.exec("DELETE FROM app.item WHERE id IN (1, 2, 30); INSERT INTO app.item (id, owner, shared) VALUES (20, 'x', true)")
	if before == c.value(entries) {
		t.Error("the comparison of entries says nothing")
	}
}

// A column whose rows have values joins, each with the default of its time: all rows are read anew, under the lock, while the old projection
// serves the old generation, and the scopes that hold them are rebuilt.
func TestAddedColumnWithValues(t *testing.T) {
	t.Parallel()
	c := streamingCore(t, pgtest.Config{})
	c.exec("INSERT INTO app.item (id, owner, shared) SELECT g, 'u' || g % 3, false FROM generate_series(1, 10) g")
	c.exec("INSERT INTO synchro.scope (scope_id, high_lsn) VALUES ('other', '0/1')")
	c.equal()
	c.released()
	c.exec("INSERT INTO app.item (id, owner) VALUES (11, 'u7')")
	c.exec("ALTER TABLE app.item ADD level int DEFAULT 1")
	c.exec("ALTER TABLE app.item ALTER level SET DEFAULT 2")
	c.exec("INSERT INTO app.item (id, owner) VALUES (12, 'u1')")
	c.exec("BEGIN; UPDATE app.item SET n = 5 WHERE id = 3; " + itemRegistration + "; UPDATE app.item SET n = 6 WHERE id = 4; INSERT INTO app.item (id, owner) VALUES (13, 'u8'); COMMIT")
	c.exec("UPDATE app.item SET level = 3 WHERE id = 5; DELETE FROM app.item WHERE id = 6")
	// Not active yet: what is materialized is as it was.
	c.want(stages, "1")
	c.want("SELECT count(*) FROM synchro_data.r_1", "10")
	c.want("SELECT count(*) FROM synchro.scope_entry", "10")
	c.start()
	c.equal()
	if got := c.class(); got != "class_3" {
		t.Errorf("an added column with values is %s", got)
	}
	c.same("added column", fmt.Sprintf("SELECT c1, %s FROM synchro_data.r_1", c.column("level")), "SELECT id, level FROM app.item")
	c.want("SELECT count(*) FROM app.item WHERE level = 1", "9")
	c.want("SELECT string_agg(scope_id, ',' ORDER BY scope_id) FROM synchro.scope WHERE membership_generation = 2", "user:u0,user:u1,user:u2,user:u7,user:u8")
	c.want("SELECT string_agg(DISTINCT scope_id, ',') FROM synchro.scope WHERE membership_generation = 1", "other")
	c.want(`SELECT string_agg(scope_id, ',' ORDER BY scope_id) FROM synchro.scope
		WHERE affected_version = (SELECT schema_version FROM synchro.progress)`, "user:u0,user:u1,user:u2,user:u7,user:u8")
	c.poll("end of the stage", stages, "0")
}

// What clients get less of, or in another form, is a step that they cannot follow, but reads nothing anew.
func TestRemovedColumnsAndOtherForms(t *testing.T) {
	t.Parallel()
	c := streamingCore(t, pgtest.Config{})
	c.exec("INSERT INTO app.item (id, owner, n) SELECT g, 'u' || g % 3, g FROM generate_series(1, 10) g")
	c.equal()
	for sql, class := range map[string]string{"p_exclude_columns => '{big}'": "class_4", "p_text_columns => '{at}'": "class_4", "p_updated_at_col => 'at'": "class_2"} {
		versions := c.value("SELECT md5(string_agg(server_version, ',' ORDER BY key)) FROM synchro.scope_entry")
		c.exec(reregister(sql))
		c.want(stages, "0")
		c.equal()
		if got := c.class(); got != class {
			t.Errorf("%s is %s, not %s", sql, got, class)
		}
		c.want("SELECT md5(string_agg(server_version, ',' ORDER BY key)) FROM synchro.scope_entry", versions)
		generation := c.value("SELECT registry_generation FROM synchro.progress")
		c.exec(reregister(sql)) // the same again
		c.want("SELECT max(generation) FROM synchro.registry_generation", generation)
		c.register()
		c.equal()
	}
}

// Another deletion column: all entries are made anew. An infinite timestamp keeps a column from being synced as what it is.
func TestOtherDeletionColumn(t *testing.T) {
	t.Parallel()
	c := streamingCore(t, pgtest.Config{})
	c.exec("INSERT INTO app.item (id, owner, at) SELECT g, 'u' || g % 3, CASE WHEN g % 2 = 0 THEN now() END FROM generate_series(1, 10) g")
	c.equal()
	c.exec(strings.Replace(itemRegistration, "deleted_at'", "at'", 1))
	c.materialized()
	c.want("SELECT string_agg(DISTINCT state::text, '' ORDER BY state::text) FROM synchro.scope_entry", "ls")
	c.want("SELECT count(*) FROM synchro.scope_entry WHERE state = 's'", "5")
	if got := c.class(); got != "class_3" {
		t.Errorf("another deletion column is %s", got)
	}
	c.want("SELECT count(*) FROM synchro.scope WHERE membership_generation = 2", "3")
}

// A column that was captured keeps its meaning: renamed or retyped it is refused, and nothing has changed.
func TestRenamedColumnsAreNotRegisteredAgain(t *testing.T) {
	t.Parallel()
	c := streamingCore(t, pgtest.Config{})
	c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1')")
	c.equal()
	for _, sql := range []string{"ALTER TABLE app.item RENAME big TO large", "ALTER TABLE app.item ALTER big TYPE varchar"} {
		_, err := c.db.Exec(t.Context(), "BEGIN; SELECT synchro.synchro_unregister_table('app.item'); "+sql+"; "+itemRegistration+"; COMMIT")
		if sqlStateOf(err) != "0A000" {
			t.Errorf("%s: %v", sql, err)
		}
		c.exec("ROLLBACK")
	}
	c.equal()
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
}

// A registration waits a second for a writer, and no longer: others queue behind it. Then it can be tried again.
func TestRegistrationDoesNotQueueWriters(t *testing.T) {
	t.Parallel()
	c := streamingCore(t, pgtest.Config{})
	other := c.Connect(t, "", "")
	if _, err := other.Exec(t.Context(), "BEGIN; INSERT INTO app.item (id, owner) VALUES (1, 'u1')"); err != nil {
		t.Fatal(err)
	}
	c.exec("SET deadlock_timeout = '10s'")
	start := time.Now()
	_, err := c.db.Exec(t.Context(), reregister("p_exclude_columns => '{big}'"))
	if sqlStateOf(err) != "55P03" || time.Since(start) > 10*time.Second {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
	if _, err := other.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	c.exec(reregister("p_exclude_columns => '{big}'"))
	c.equal()
}
