package systest

import (
	"context"
	"strings"
	"testing"

	"synchro/internal/pgtest"
)

func TestHostWaitsForDatabaseAndExtension(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t, pgtest.Config{Database: "later"})
	awaitLog(t, c, `database "later" does not exist`)
	// The worker has come back and waits quietly.
	pgtest.Poll(t, settle, "waiting worker", func() bool { return workersIn(t, c, "datname IS NULL") == 1 })
	admin := c.Connect(t, "", "postgres")
	if _, err := admin.Exec(t.Context(), "CREATE DATABASE later"); err != nil {
		t.Fatal(err)
	}
	pgtest.Poll(t, settle, "worker in the new database", func() bool { return workersIn(t, c, "datname = 'later'") == 1 })
	if n := strings.Count(c.Logs(), `database "later" does not exist`); n != 1 {
		t.Errorf("%d attempts to use the missing database", n)
	}
	conn := c.Connect(t, "", "later")
	if _, err := conn.Exec(t.Context(), "CREATE EXTENSION synchro"); err != nil {
		t.Fatal(err)
	}
	pgtest.Poll(t, settle, "working core", func() bool {
		st, ok := queryStatus(conn)
		return ok && st.State == "streaming"
	})
}

// workersIn counts the background workers whose pg_stat_activity row fulfils a condition.
func workersIn(t testing.TB, c *pgtest.Cluster, condition string) (n int) {
	t.Helper()
	conn, err := c.Conn(t.Context(), "", "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	err = conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'synchro worker' AND "+condition).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestHostFollowsDropAndCreateExtension(t *testing.T) {
	eachHost(t, func(t *testing.T, c *pgtest.Cluster) {
		conn := c.Connect(t, "", "")
		before := awaitWorking(t, c)
		if _, err := conn.Exec(t.Context(), "DROP EXTENSION synchro CASCADE"); err != nil {
			t.Fatal(err)
		}
		pgtest.Poll(t, settle, "end of the core's sessions", func() bool { return coreSessions(t, c) == 0 })
		mustExec(t, c, "CREATE EXTENSION synchro")
		awaitOther(t, c, before)
		// At once, faster than the worker looks.
		before = awaitWorking(t, c)
		mustExec(t, c, "DROP EXTENSION synchro CASCADE; CREATE EXTENSION synchro")
		awaitOther(t, c, before)
	})
}

func TestHostEmptiesThePublicationOfADroppedExtension(t *testing.T) {
	t.Parallel()
	c := pgtest.StartWithExtension(t, pgtest.Config{})
	awaitWorking(t, c)
	mustExec(t, c, "CREATE TABLE left_over (id int PRIMARY KEY); ALTER PUBLICATION synchro ADD TABLE left_over")
	mustExec(t, c, "DROP EXTENSION synchro CASCADE; CREATE EXTENSION synchro")
	conn := c.Connect(t, "", "")
	pgtest.Poll(t, settle, "empty publication", func() bool {
		var n int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_publication_tables").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
}

func TestHostDropsSlotOfDroppedExtension(t *testing.T) {
	eachHost(t, func(t *testing.T, c *pgtest.Cluster) {
		conn := c.Connect(t, "", "")
		slots := func() (n int) {
			if err := conn.QueryRow(context.Background(), "SELECT count(*) FROM pg_replication_slots").Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		// Ours, made by the core or, while it makes none, by hand under the name that it would have.
		if slots() == 0 {
			mustExec(t, c, `SELECT pg_create_logical_replication_slot('synchro_' || oid, 'pgoutput') FROM pg_database
				WHERE datname = current_database()`)
		}
		mustExec(t, c, "SELECT pg_create_logical_replication_slot('foreign_slot', 'pgoutput')")
		mustExec(t, c, "DROP EXTENSION synchro CASCADE")
		pgtest.Poll(t, settle, "dropped slot", func() bool { return slots() == 1 })
		var left string
		if err := conn.QueryRow(t.Context(), "SELECT slot_name FROM pg_replication_slots").Scan(&left); err != nil || left != "foreign_slot" {
			t.Errorf("left: %q, %v", left, err)
		}
	})
}
