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
