package systest

import (
	"context"
	"testing"

	"synchro/internal/pgtest"
)

func TestRowsReachExactlyTheirUsers(t *testing.T) {
	a := startApp(t, pgtest.Config{})
	a.insertNotes("ada", 1, 2500)
	a.insertNotes("bob", 3001, 10)
	a.materialized()
	ada, bob := a.synced("ada", "ada-1"), a.synced("bob", "bob-1")
	a.wantRows(ada, "user:ada", 2500)
	a.wantRows(bob, "user:bob", 10)
	if got := ada.Scopes(); len(got) != 1 {
		t.Errorf("ada is assigned %d scopes", len(got))
	}

	// Changes travel by pull; a row that changes hands leaves one scope and enters the other.
	a.exec("UPDATE app.note SET owner = 'bob' WHERE id = md5('1')::uuid")
	a.exec("UPDATE app.note SET n = n + 1 WHERE owner = 'bob'")
	a.exec("DELETE FROM app.note WHERE id = md5('2')::uuid")
	a.exec("UPDATE app.note SET deleted_at = now() WHERE id = md5('3')::uuid")
	a.materialized()
	a.wantRows(ada, "user:ada", 2497)
	a.wantRows(bob, "user:bob", 11)

	// A savepoint that was rolled back leaves nothing, and re-insertion of a deleted row is a row again.
	a.exec(`BEGIN; SAVEPOINT s; INSERT INTO app.note VALUES (md5('9001')::uuid, 'bob', 'no'); ROLLBACK TO s;
		INSERT INTO app.note VALUES (md5('9002')::uuid, 'bob', 'yes'), (md5('2')::uuid, 'bob', 'back'); COMMIT`)
	a.materialized()
	a.wantRows(bob, "user:bob", 13)
	a.wantRows(ada, "user:ada", 2497)
}

func TestGrantAndRevokeTravelWithPull(t *testing.T) {
	a := startApp(t, pgtest.Config{})
	a.insertNotes("ada", 1, 5)
	a.materialized()
	bob := a.synced("bob", "bob-1")
	a.exec("SELECT synchro.synchro_grant_user_scope('bob', 'user:ada')")
	pulled, err := bob.Pull(context.Background(), 0)
	if err != nil || len(pulled.Added) != 1 || len(pulled.Rebuild) != 1 {
		t.Fatalf("pull after the grant: %+v %v", pulled, err)
	}
	a.wantRows(bob, "user:ada", 5)
	a.exec("SELECT synchro.synchro_revoke_user_scope('bob', 'user:ada')")
	if pulled, err = bob.Pull(context.Background(), 0); err != nil || len(pulled.Removed) != 1 {
		t.Fatalf("pull after the revocation: %+v %v", pulled, err)
	}
	if got := bob.Scopes(); len(got) != 1 || got[0] != "user:bob" {
		t.Errorf("bob is assigned %d scopes", len(got))
	}
}

// A digest is bound to its page's snapshot: writers never make a verified pull fail.
func TestPullsUnderWritesNeverMismatch(t *testing.T) {
	a := startApp(t, pgtest.Config{})
	a.insertNotes("ada", 1, 500)
	a.materialized()
	d := a.synced("ada", "ada-1")
	writer := a.Connect(t, "", "")
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			if _, err := writer.Exec(context.Background(), "UPDATE app.note SET n = n + 1 WHERE id = md5($1::int::text)::uuid", i%500+1); err != nil {
				ended <- err
				return
			}
		}
	}()
	upserts := 0
	for range 200 {
		pulled, err := d.Pull(context.Background(), 0)
		if err != nil {
			t.Fatal(err)
		}
		upserts += pulled.Upserts
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if upserts == 0 {
		t.Error("no change arrived while the writer wrote")
	}
	a.materialized()
	a.wantRows(d, "user:ada", 500)
}
