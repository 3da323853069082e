package systest

import (
	"fmt"
	"testing"

	"synchro/internal/pgtest"
)

// A column that has left the registration is nobody's business any more: it may be dropped, and another one made
// of its name, in the same transaction even, while capture goes on. The table can be read anew without it.
func TestColumnThatLeft(t *testing.T) {
	t.Parallel()
	c := streamingCore(t, pgtest.Config{})
	c.exec("ALTER TABLE app.item ADD goes int, ADD replaced text, ADD computed int GENERATED ALWAYS AS (1) STORED, ADD stays text")
	c.register()
	c.exec("INSERT INTO app.item (id, owner, goes, replaced, stays) VALUES (1, 'u1', 1, 'a', 'a'), (2, 'u2', 1, 'a', NULL)")
	c.equal()
	c.exec("BEGIN")
	c.exec(reregister("p_exclude_columns => '{goes,replaced,computed}'"))
	c.exec("ALTER TABLE app.item DROP goes, DROP replaced, ADD replaced text, DROP computed")
	c.exec("COMMIT")
	c.exec("INSERT INTO app.item (id, owner, stays) VALUES (3, 'u1', 'b'); UPDATE app.item SET stays = 'c' WHERE id = 2")
	c.equal()
	same := func(what string) {
		c.same(what, "SELECT c1, "+c.column("stays")+" FROM synchro_data.r_1", "SELECT id, stays FROM app.item")
	}
	same("after columns left")
	c.exec(reregister("p_exclude_columns => '{replaced,stays}'"))
	c.exec(reregister("p_exclude_columns => '{replaced}'")) // stays has values: all rows are read anew
	c.exec("INSERT INTO app.item (id, owner, stays) VALUES (4, 'u1', 'd')")
	c.equal()
	same("after rows were read anew")
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
}

// A table that has lost a column of its projection view becomes another one too, and says so; before, it can't be registered.
func TestColumnThatLeftTheView(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{})
	a.insertNotes("ada", 1, 3)
	a.materialized()
	a.exec("SELECT synchro.synchro_unregister_table('app.note')")
	a.materialized()
	a.awaitReady()
	a.exec("ALTER TABLE app.note ADD keeper text; UPDATE app.note SET keeper = owner; ALTER TABLE app.note DROP owner CASCADE")
	register := "SELECT synchro.synchro_register_table('app.note', 'app.note_scopes', p_push_policy => 'read_only')"
	if _, err := a.db.Exec(t.Context(), register); sqlStateOf(err) != "55000" {
		t.Errorf("a table without a column of its view: %v", err)
	}
	a.exec("DROP FUNCTION app.note_scopes(uuid)")
	a.exec(`BEGIN; SELECT synchro.synchro_prepare_projection_view('app.note', 'note', '{id,keeper}');
		CREATE FUNCTION app.note_scopes(p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
		BEGIN ATOMIC SELECT 'user:' || n.keeper FROM synchro_projection.note n WHERE n.id = p_row_key; END;
		REVOKE EXECUTE ON FUNCTION app.note_scopes(uuid) FROM PUBLIC; GRANT EXECUTE ON FUNCTION app.note_scopes(uuid) TO synchro_worker;` + register + "; COMMIT")
	a.materialized()
	a.awaitReady()
	a.wantRows(a.synced("ada", "ada-1"), "user:ada", 3)
}

// A synced column that may be NULL now is still not null for clients, and a NULL is refused at the writer, until the table is registered again: a
// compatible step, for which nothing is read anew. So it is with a domain's NOT NULL. A column that is bound anew is noticed in the same way.
func TestColumnThatLostNotNull(t *testing.T) {
	t.Parallel()
	c := streamingCore(t, pgtest.Config{})
	c.exec("CREATE DOMAIN app.name AS text NOT NULL; ALTER TABLE app.item ADD must text NOT NULL DEFAULT 'm', ADD named app.name DEFAULT 'n'")
	c.register()
	c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1'), (2, 'u2')")
	c.equal()
	nullable := func(column, want string) {
		t.Helper()
		c.want("SELECT f.nullable FROM synchro.manifest_field f JOIN synchro.progress USING (schema_version) WHERE f.column_name = '"+column+"'", want)
	}
	refused := func(sql, want string) {
		t.Helper()
		if _, err := c.db.Exec(t.Context(), sql); sqlStateOf(err) != want {
			t.Errorf("%s: %v", sql, err)
		}
	}
	generations := c.value("SELECT count(*) FROM synchro.registry_generation")
	c.register()
	c.want("SELECT count(*) FROM synchro.registry_generation", generations)
	for _, column := range []struct{ name, relax string }{
		{"must", "ALTER TABLE app.item ALTER must DROP NOT NULL"},
		{"named", "ALTER DOMAIN app.name DROP NOT NULL"},
	} {
		nullable(column.name, "false")
		c.exec(column.relax)
		refused("INSERT INTO app.item (id, owner, "+column.name+") VALUES (3, 'u1', NULL)", "23502")
		refused("UPDATE app.item SET n = n + 1, "+column.name+" = NULL WHERE id = 1", "23502")
		c.exec("UPDATE app.item SET n = n + 1, " + column.name + " = 'other' WHERE id = 1")
		c.equal()
		// Neither does the registration of another table tell clients, nor one that waits for a changed rule.
		c.exec(`BEGIN; DROP TABLE IF EXISTS app.other; CREATE TABLE app.other (id bigint PRIMARY KEY); GRANT SELECT ON app.other TO synchro_owner, synchro_worker;
			SELECT synchro.synchro_register_capture_dependency('app.other', '{id}', '{id}'); COMMIT`)
		c.equal()
		nullable(column.name, "false")
		refused("UPDATE app.item SET "+column.name+" = NULL WHERE id = 1", "23502")
		c.exec("SELECT synchro.synchro_unregister_capture_dependency('app.other')")
		c.equal()
		c.register()
		c.want(stages, "0")
		c.exec("UPDATE app.item SET " + column.name + " = NULL WHERE id = 1")
		c.equal()
		nullable(column.name, "true")
		if got := c.class(); got != "class_2" {
			t.Errorf("a column that may be null now is %s", got)
		}
	}
	c.same("the rows", fmt.Sprintf("SELECT c1, %s, %s FROM synchro_data.r_1", c.column("must"), c.column("named")), "SELECT id, must, named FROM app.item")
	c.want("SELECT max(membership_generation) FROM synchro.scope", "1")
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
	// Back again is no compatible step: who has not pulled yet may hold a NULL.
	c.exec("UPDATE app.item SET must = 'm'; ALTER TABLE app.item ALTER must SET NOT NULL")
	c.register()
	c.equal()
	nullable("must", "false")
	if got := c.class(); got != "class_3" {
		t.Errorf("a column that may not be null any more is %s", got)
	}
	c.want("SELECT string_agg(scope_id, ',' ORDER BY scope_id) FROM synchro.scope WHERE affected_version = (SELECT schema_version FROM synchro.progress)", "user:u1,user:u2")
	c.want("SELECT min(membership_generation) FROM synchro.scope", "2")
}

// Columns that leave, or may be null, wait with a changed rule as everything does. Until then writers are held to the manifest in force, and what it
// carries cannot be dropped.
func TestColumnsThatLeaveBehindARule(t *testing.T) {
	t.Parallel()
	c := streamingCore(t, pgtest.Config{})
	c.exec("ALTER TABLE app.item ADD must text NOT NULL DEFAULT 'm'")
	c.register()
	c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1')")
	c.equal()
	c.exec(`CREATE TABLE app.other (id bigint PRIMARY KEY, owner text); GRANT SELECT ON app.other TO synchro_owner, synchro_worker;
		CREATE FUNCTION app.other_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC SELECT 'all'; END;
		REVOKE EXECUTE ON FUNCTION app.other_scopes(bigint) FROM PUBLIC; GRANT EXECUTE ON FUNCTION app.other_scopes(bigint) TO synchro_worker;
		SELECT synchro.synchro_register_table('app.other', 'app.other_scopes', p_push_policy => 'read_only')`)
	changed := "SELECT synchro.synchro_register_table('app.other', 'app.other_scopes', p_push_policy => 'read_only', p_max_scope_fanout => %d)"
	refused := func(sql, want string) {
		t.Helper()
		if _, err := c.db.Exec(t.Context(), sql); sqlStateOf(err) != want {
			t.Errorf("%s: %v", sql, err)
		}
	}
	refused("BEGIN; "+reregister("p_exclude_columns => '{must}'")+"; ALTER TABLE app.item DROP must; "+fmt.Sprintf(changed, 2)+"; COMMIT", "55000")
	c.exec("ROLLBACK")
	c.equal()
	c.released()
	c.exec("BEGIN; ALTER TABLE app.item ALTER must DROP NOT NULL; " + itemRegistration + "; " + fmt.Sprintf(changed, 3) + "; COMMIT")
	refused("UPDATE app.item SET must = NULL", "23502")
	c.exec(reregister("p_exclude_columns => '{must}'"))
	refused("UPDATE app.item SET must = NULL", "23502")
	refused("ALTER TABLE app.item DROP must", "0A000")
	c.exec("INSERT INTO app.item (id, owner) VALUES (2, 'u1')")
	c.start()
	c.newest()
	c.poll("new triggers", fmt.Sprintf(`SELECT '%s' = ANY (string_to_array(split_part(encode(tgargs, 'escape'), '\000', 7), ' ')) FROM pg_trigger
		WHERE tgrelid = 'app.item'::regclass AND tgname = 'synchro_fence'`, c.column("must")[1:]), "false")
	c.exec("UPDATE app.item SET must = NULL; ALTER TABLE app.item DROP must; INSERT INTO app.item (id, owner) VALUES (3, 'u1')")
	c.equal()
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
}
