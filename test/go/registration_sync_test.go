package systest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"synchro/canonical"
	"synchro/client"
	"synchro/internal/pgtest"
)

// A renamed table comes back under its new name, with its ids, once its unregistration is active; not before, when the stream knows it by the old one.
func TestRegistrationOfARenamedTable(t *testing.T) {
	t.Parallel()
	c := newCore(t, pgtest.Config{})
	c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'ada')")
	c.start()
	c.streaming()
	activated := "SELECT p.registry_generation = (SELECT max(generation) FROM synchro.registry_generation) FROM synchro.progress p"
	c.register()
	c.poll("activation", activated, "true")
	table := c.value("SELECT table_id FROM synchro.relation WHERE relation_oid = 'app.item'::regclass")
	register := "SELECT synchro.synchro_register_table('app.renamed', 'app.item_scopes', p_push_policy => 'read_only')"
	var refused *pgconn.PgError
	if _, err := c.db.Exec(t.Context(), "SELECT synchro.synchro_unregister_table('app.item'); ALTER TABLE app.item RENAME TO renamed; "+register); !errors.As(err, &refused) || refused.Code != "0A000" {
		t.Fatalf("registered under another name in the same transaction: %v", err)
	}
	c.exec("SELECT synchro.synchro_unregister_table('app.item'); ALTER TABLE app.item RENAME TO renamed")
	c.poll("activation", activated, "true")
	c.exec(register + "; UPDATE app.renamed SET owner = 'bob'; INSERT INTO app.renamed (id, owner) VALUES (2, 'ada')")
	c.exec("DELETE FROM app.renamed WHERE id = 1")
	c.poll("activation", activated, "true")
	c.materialized()
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
	c.want("SELECT count(*) FROM synchro._drift()", "0")
	c.want("SELECT count(*) FROM synchro.scope_entry WHERE state = 'l'", "1")
	c.want("SELECT table_id FROM synchro.relation WHERE relation_oid = 'app.renamed'::regclass", table)
}

// Writers go on while the table is registered, unregistered and registered again: each time all rows and changes are there.
func TestRegistrationUnderWrites(t *testing.T) {
	t.Parallel()
	c := newCore(t, pgtest.Config{})
	c.exec("INSERT INTO app.item (id, owner) SELECT g, 'u' || g % 3 FROM generate_series(1, 300) g")
	c.start()
	c.streaming()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 3 {
		conn := c.Connect(t, "", "")
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				for _, sql := range []string{
					fmt.Sprintf("INSERT INTO app.item (id, owner) VALUES (%d, 'u%d')", 1000+w*100000+i, i%5),
					fmt.Sprintf("BEGIN; UPDATE app.item SET n = n + 1, owner = 'u%d' WHERE id = %d; SAVEPOINT s; DELETE FROM app.item WHERE id = %d; %s; COMMIT",
						i%4, i%100*3+w+1, 1000+w*100000+i/2, []string{"ROLLBACK TO s", "RELEASE s"}[i%2]),
				} {
					if _, err := conn.Exec(context.Background(), sql); err != nil {
						t.Errorf("a writer failed: %v", err)
						return
					}
				}
			}
		})
	}
	activated := "SELECT p.registry_generation = (SELECT max(generation) FROM synchro.registry_generation) FROM synchro.progress p"
	for range 3 {
		c.register()
		c.poll("activation", activated, "true")
		c.materialized()
		c.exec("SELECT synchro.synchro_unregister_table('app.item')")
		c.poll("activation", activated, "true")
	}
	c.register()
	close(stop)
	wg.Wait()
	c.equal()
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
}

// Registrations that follow each other while nobody captures: each transaction is captured under the one before it.
func TestRegistrationsBeforeTheWorkerRuns(t *testing.T) {
	t.Parallel()
	c := newCore(t, pgtest.Config{})
	c.start()
	c.streaming()
	c.stop()
	c.exec("INSERT INTO app.item (id, owner) VALUES (1, 'u1')")
	c.register()
	c.exec("INSERT INTO app.item (id, owner) VALUES (2, 'u1'); UPDATE app.item SET n = 5 WHERE id = 1")
	c.exec(itemRegistration[:len(itemRegistration)-1] + ", p_max_scope_fanout => 2)")
	c.exec("INSERT INTO app.item (id, owner, shared) VALUES (3, 'u1', true)")
	c.exec(itemRegistration) // the bound as it was
	c.exec("DELETE FROM app.item WHERE id = 2")
	c.start()
	c.newest()
	c.equal()
	c.want("SELECT registry_generation - (SELECT min(generation) FROM synchro.registry_generation) FROM synchro.progress", "3")
	c.stop()
	// Leaving while rows change, with nobody to see it.
	c.exec("UPDATE app.item SET n = 6; SELECT synchro.synchro_unregister_table('app.item'); UPDATE app.item SET n = 7; INSERT INTO app.item (id, owner) VALUES (9, 'u9')")
	c.start()
	c.materialized()
	c.want("SELECT count(*) FROM synchro.scope_entry", "0")
	c.poll("removal of the triggers", "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'app.item'::regclass AND NOT tgisinternal", "0")
	c.register()
	c.equal()
}

// A table leaves and comes back: clients are told so, and hold what the table says then, under the same ids.
func TestTableLeavesAndComesBack(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{})
	a.insertNotes("ada", 1, 10)
	a.materialized()
	ada := a.synced("ada", "ada-1")
	id := tableNamed(t, ada, "note").TableID
	again := func(want int) {
		t.Helper()
		if err := ada.Connect(context.Background(), false); !errors.Is(err, client.ErrUnsupportedSchema) && err != nil {
			t.Fatalf("connect: %v", err)
		} else if err != nil {
			if err := ada.Connect(context.Background(), true); err != nil {
				t.Fatalf("connect with a reset: %v", err)
			}
		}
		a.wantRows(ada, "user:ada", want)
	}
	a.exec("SELECT synchro.synchro_unregister_table('app.note')")
	a.materialized()
	a.awaitReady()
	if _, err := ada.Pull(context.Background(), 0); err == nil {
		t.Error("a pull under the manifest with the table was answered")
	}
	again(0)
	pgtest.Poll(t, settle, "removal of the triggers", func() bool {
		return a.value("SELECT count(*) FROM pg_trigger WHERE tgrelid = 'app.note'::regclass AND NOT tgisinternal") == "0"
	})
	a.exec("DELETE FROM app.note WHERE id IN (SELECT id FROM app.note LIMIT 3); UPDATE app.note SET n = 3")
	a.exec("TRUNCATE app.note; INSERT INTO app.note (id, owner, body) SELECT md5(i::text)::uuid, 'ada', 'again' FROM generate_series(5, 11) i")
	a.exec("SELECT synchro.synchro_register_table('app.note', 'app.note_scopes', p_deleted_at_col => 'deleted_at')")
	a.awaitReady()
	a.materialized()
	again(7)
	if got := tableNamed(t, ada, "note").TableID; got != id {
		t.Error("the table has another id")
	}
	a.sameAsSource()
}

// A registered table is dropped, with its rows, and made again: not ready, until it is unregistered and registered anew.
func TestDroppedTableIsUnregistered(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{})
	a.insertNotes("ada", 1, 3)
	a.materialized()
	a.synced("ada", "ada-1")
	core := awaitWorking(t, a.Cluster)
	a.exec("SET synchro.ddl_guard = off")
	a.exec("DROP TABLE app.note CASCADE")
	a.awaitUnready("relations")
	pgtest.Poll(t, settle, "block", func() bool {
		return a.value("SELECT count(*) FROM synchro.quarantine WHERE resolved_at IS NULL") == "1"
	})
	_ = a.Kill(core.CorePID) // the next one starts over a registry with a table that is gone
	a.exec("CREATE TABLE app.note (id uuid PRIMARY KEY, owner text NOT NULL)")
	a.exec("GRANT SELECT ON app.note TO synchro_owner, synchro_worker")
	a.exec("INSERT INTO app.note VALUES (gen_random_uuid(), 'ada'), (gen_random_uuid(), 'bob')")
	a.exec("SELECT synchro.synchro_unregister_table('app.note')")
	a.materialized()
	a.awaitReady()
	a.want("SELECT count(*) FROM synchro.scope_entry", "0")
	a.exec(`CREATE FUNCTION app.new_scopes(p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC SELECT 'user:ada'; END`)
	a.exec("REVOKE EXECUTE ON FUNCTION app.new_scopes(uuid) FROM PUBLIC; GRANT EXECUTE ON FUNCTION app.new_scopes(uuid) TO synchro_worker")
	a.exec("SELECT synchro.synchro_register_table('app.note', 'app.new_scopes', p_push_policy => 'read_only')")
	a.awaitReady()
	a.materialized()
	a.wantRows(a.synced("ada", "ada-2"), "user:ada", 2)
}

// Changes of the table that do not concern what is synced, rewrites, and two-phase commits: capture goes on.
func TestHarmlessSchemaChanges(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{Settings: []string{"max_prepared_transactions = 5"}})
	a.insertNotes("ada", 1, 10)
	a.materialized()
	ada := a.synced("ada", "ada-1")
	a.exec("BEGIN; UPDATE app.note SET n = 1; PREPARE TRANSACTION 'one'")
	a.exec("BEGIN; INSERT INTO app.note VALUES (gen_random_uuid(), 'ada', 'prepared'); PREPARE TRANSACTION 'two'")
	a.exec("COMMIT PREPARED 'one'")
	a.exec("ROLLBACK PREPARED 'two'")
	a.materialized()
	a.wantRows(ada, "user:ada", 10)
	a.exec("ALTER TABLE app.note ADD COLUMN extra text DEFAULT 'x', ADD COLUMN volatile timestamptz DEFAULT clock_timestamp()")
	a.exec("UPDATE app.note SET n = 2, extra = 'y'")
	a.exec("VACUUM FULL app.note")
	a.exec("CREATE INDEX CONCURRENTLY ON app.note (body)")
	a.exec("DO $$ BEGIN ALTER TABLE app.note RENAME extra TO other; ALTER TABLE app.note DROP COLUMN volatile; ALTER TABLE app.note ALTER n SET DEFAULT 5, SET (fillfactor = 50); END $$")
	a.exec("UPDATE app.note SET n = 3, other = 'y'; INSERT INTO app.note (id, owner, body) VALUES (gen_random_uuid(), 'ada', 'new')")
	a.materialized()
	a.awaitReady()
	a.wantRows(ada, "user:ada", 11)
	pushed, err := ada.Push(context.Background(), []canonical.Mutation{mutation(ada, "insert", noteID(1), "", noteColumns{"owner": `"ada"`, "body": `"pushed"`})}, false)
	if err != nil || len(pushed.Accepted) != 1 {
		t.Errorf("push: %+v %v", pushed, err)
	}
	a.wantRows(ada, "user:ada", 12)
	a.want("SELECT count(*) FROM synchro.quarantine", "0")
}

// A shim does not start over an extension of another version.
func TestShimRefusesAnotherExtensionVersion(t *testing.T) {
	t.Parallel()
	c := pgtest.StartWithExtension(t, pgtest.Config{NoWorker: true})
	mustExec(t, c, "UPDATE pg_extension SET extversion = '0.0.0-other' WHERE extname = 'synchro'")
	if s, err := c.Serve(context.Background(), pgtest.ServeConfig{JWTSecret: jwtSecret}); err == nil {
		_ = s.Stop()
		t.Error("the shim started")
	}
}

// A table whose key, and a column's name and type, are others now becomes another table: with ids of its own, a view of its own, and
// for clients that knew the former one in a schema that they cannot be led to without a reset.
func TestAnotherKeyMakesAnotherTable(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{})
	a.insertNotes("ada", 1, 3)
	a.materialized()
	ada := a.synced("ada", "ada-1")
	former := a.value("SELECT synchro.synchro_table_id('app.note')")
	a.exec("SELECT synchro.synchro_unregister_table('app.note')")
	a.materialized()
	a.awaitReady()
	a.exec(`ALTER TABLE app.note RENAME body TO said; ALTER TABLE app.note ALTER n TYPE bigint; ALTER TABLE app.note DROP CONSTRAINT note_pkey;
		ALTER TABLE app.note ADD no bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY`)
	prepare := "SELECT synchro.synchro_prepare_projection_view('app.note', 'note', '{no,owner}')"
	if _, err := a.db.Exec(t.Context(), prepare); sqlStateOf(err) != "55000" {
		t.Errorf("a view beside one that functions read: %v", err)
	}
	a.exec("DROP FUNCTION app.note_scopes(uuid)")
	a.exec("BEGIN;" + prepare + `; CREATE FUNCTION app.note_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
		BEGIN ATOMIC SELECT 'user:' || n.owner FROM synchro_projection.note n WHERE n.no = p_row_key; END;
		REVOKE EXECUTE ON FUNCTION app.note_scopes(bigint) FROM PUBLIC; GRANT EXECUTE ON FUNCTION app.note_scopes(bigint) TO synchro_worker;
		SELECT synchro.synchro_register_table('app.note', 'app.note_scopes', p_pk_column => 'no', p_push_policy => 'read_only'); COMMIT`)
	a.materialized()
	a.awaitReady()
	if now := a.value("SELECT synchro.synchro_table_id('app.note')"); now == former {
		t.Error("a table with another key has the former one's id")
	}
	a.want("SELECT count(*) FROM synchro.relation WHERE physical_relation = 'note'", "2")
	a.exec("UPDATE app.note SET said = 'again', n = 5000000000 WHERE no = 1; DELETE FROM app.note WHERE no = 2")
	a.materialized()
	a.wantRows(a.synced("ada", "ada-2"), "user:ada", 2)
	if err := ada.Connect(t.Context(), false); !errors.Is(err, client.ErrUnsupportedSchema) {
		t.Errorf("a client of the former table: %v", err)
	}
	if err := ada.Connect(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	a.sync(ada)
	a.wantRows(ada, "user:ada", 2)
}
