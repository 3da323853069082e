package systest

import (
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
