package systest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"synchro/client"
	"synchro/internal/pgtest"
)

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
