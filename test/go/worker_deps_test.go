package systest

import (
	"testing"

	"synchro/internal/pgtest"
)

const depsRows = `
INSERT INTO lib.folder SELECT g, 'u' || g % 3, 't' FROM generate_series(1, 6) g;
INSERT INTO lib.member SELECT g, 1 + g % 6, 'm' || g % 4 FROM generate_series(1, 8) g;
INSERT INTO lib.note SELECT g, 1 + g % 6, 'b' FROM generate_series(1, 30) g;
INSERT INTO lib.tag SELECT g, 1 + g % 30, 'l' FROM generate_series(1, 60) g;
INSERT INTO lib.seat SELECT g, g % 4, 'u' || g % 3 FROM generate_series(1, 12) g;`

// depsScenarios are transactions, one after the other. Most change rows that others depend on.
var depsScenarios = []struct{ name, sql string }{
	{"a parent moves to another owner", "UPDATE lib.folder SET owner = 'u9' WHERE id = 1"},
	{"a column that no rule reads", "UPDATE lib.folder SET title = 'other' WHERE id = 2"},
	{"an owner leaves and none comes", "UPDATE lib.folder SET owner = NULL WHERE id = 3"},
	{"several dependencies change one target", "BEGIN; UPDATE lib.folder SET owner = 'u8' WHERE id = 4; UPDATE lib.member SET who = 'm9' WHERE folder = 4; COMMIT"},
	{"a member moves between folders", "UPDATE lib.member SET folder = 6 WHERE id = 1"},
	{"a member goes", "DELETE FROM lib.member WHERE id = 2"},
	{"a row moves to another parent", "UPDATE lib.note SET folder = 5 WHERE id = 1"},
	{"a row moves and its old and new parents change", "BEGIN; UPDATE lib.folder SET owner = 'u7' WHERE id IN (2, 5); UPDATE lib.note SET folder = 2 WHERE id = 1; UPDATE lib.folder SET owner = 'u6' WHERE id = 5; COMMIT"},
	{"the same, the row first", "BEGIN; UPDATE lib.note SET folder = 6 WHERE id = 2; UPDATE lib.folder SET owner = 'u5' WHERE id IN (3, 6); COMMIT"},
	{"a chain made in one transaction, from its end", `BEGIN; INSERT INTO lib.tag VALUES (101, 101, 'l'); INSERT INTO lib.note VALUES (101, 101, 'b');
		INSERT INTO lib.folder VALUES (101, 'u1', 't'); INSERT INTO lib.member VALUES (101, 101, 'm1'); COMMIT`},
	{"children whose parent comes later", "INSERT INTO lib.note VALUES (102, 102, 'b'); INSERT INTO lib.tag VALUES (102, 102, 'l'); INSERT INTO lib.folder VALUES (102, 'u2', 't')"},
	{"a parent goes with its members", "DELETE FROM lib.folder WHERE id = 1"},
	{"a parent goes and comes back", "BEGIN; DELETE FROM lib.folder WHERE id = 4; INSERT INTO lib.folder VALUES (4, 'u4', 't'); COMMIT"},
	{"a target goes with what impacts it", "BEGIN; UPDATE lib.folder SET owner = 'u3' WHERE id = 2; DELETE FROM lib.note WHERE folder = 2; COMMIT"},
	{"a target that was never there", "INSERT INTO lib.member VALUES (103, 6, 'm3'); DELETE FROM lib.note WHERE id = 30; UPDATE lib.tag SET note = 9999 WHERE id = 3"},
	{"membership toggled", "BEGIN; INSERT INTO lib.member VALUES (104, 6, 'm7'); DELETE FROM lib.member WHERE id = 104; INSERT INTO lib.member VALUES (104, 6, 'm7'); COMMIT"},
	{"and toggled to nothing", "BEGIN; DELETE FROM lib.member WHERE id = 104; INSERT INTO lib.member VALUES (104, 6, 'm7'); DELETE FROM lib.member WHERE id = 104; COMMIT"},
	{"came and went", "BEGIN; INSERT INTO lib.folder VALUES (105, 'u1', 't'); INSERT INTO lib.note VALUES (105, 105, 'b'); DELETE FROM lib.folder WHERE id = 105; COMMIT"},
	{"rolled back to a savepoint", `BEGIN; UPDATE lib.folder SET owner = 'u1' WHERE id = 5; SAVEPOINT a; UPDATE lib.folder SET owner = 'no' WHERE id IN (5, 6);
		DELETE FROM lib.member; ROLLBACK TO a; UPDATE lib.note SET body = 'c' WHERE folder = 5; COMMIT`},
	{"soft-deleted rows change hands", "UPDATE lib.note SET deleted_at = now() WHERE folder = 6; UPDATE lib.folder SET owner = 'u9' WHERE id = 6"},
	{"the first in a room goes", "DELETE FROM lib.seat WHERE id = 1"},
	{"a seat moves, first there", "UPDATE lib.seat SET room = 1 WHERE id = 2"},
	{"a room changes while others join it", "BEGIN; UPDATE lib.seat SET owner = 'u7' WHERE id = 3; UPDATE lib.seat SET room = 3 WHERE id IN (4, 5); INSERT INTO lib.seat VALUES (0, 3, 'u5'); COMMIT"},
	{"a seat and its room go", "DELETE FROM lib.seat WHERE room = 3"},
	{"all parents at once", "UPDATE lib.folder SET owner = 'w' || id % 2"},
	{"all gone", "BEGIN; DELETE FROM lib.folder; DELETE FROM lib.seat; COMMIT"},
}

// Every change of a dependency leaves what the rules say of the source tables, with the rows registered before and after they were there.
func TestDependenciesAsTheRulesSay(t *testing.T) {
	t.Parallel()
	c := depsCore(t, pgtest.Config{})
	c.exec(depsRows)
	c.exec(depsRegistration(1000))
	c.start()
	c.streaming()
	c.asRuled()
	for _, s := range depsScenarios {
		c.exec(s.sql)
		c.asRuled()
		if t.Failed() {
			t.Fatalf("after: %s", s.name)
		}
	}
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
}

// The same as a backlog: consecutive transactions share batches where that gives the same result, and come in pieces where they are too large.
func TestDependenciesInABacklog(t *testing.T) {
	t.Parallel()
	for name, small := range map[string]bool{"batches": false, "pieces": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := depsCore(t, pgtest.Config{})
			if small {
				c.smallPieces()
			}
			c.exec(depsRegistration(1000))
			c.start()
			c.streaming()
			c.exec(depsRows)
			c.asRuled()
			c.released()
			for _, s := range depsScenarios[:len(depsScenarios)-2] {
				c.exec(s.sql)
			}
			c.start()
			c.asRuled()
			c.exec("BEGIN; UPDATE lib.folder SET owner = 'p' || id; UPDATE lib.seat SET owner = 'p' || id; UPDATE lib.note SET body = 'd' WHERE id % 2 = 0; COMMIT")
			c.asRuled()
			c.exec(depsScenarios[len(depsScenarios)-1].sql)
			c.asRuled()
			c.want("SELECT count(*) FROM synchro.quarantine", "0")
		})
	}
}
