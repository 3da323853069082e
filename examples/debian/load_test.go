package debian

import (
	"context"
	"testing"

	"synchro/internal/pgtest"
)

// The SQL of the example registers, and what it registers holds what was loaded.
func TestArchiveLoadsAndRegisters(t *testing.T) {
	ctx := context.Background()
	packages, err := ReadArchive(ctx)
	if err != nil {
		t.Fatal(err)
	}
	packages = packages[:min(len(packages), 500)]
	c := pgtest.StartWithExtension(t, pgtest.Config{NoWorker: true})
	if err := CreateSchema(ctx, c.Connect(t, "", "")); err != nil {
		t.Fatal(err)
	}
	conn := c.Connect(t, Role, "")
	dependencies, err := Load(ctx, conn, packages)
	if err != nil {
		t.Fatal(err)
	}
	if err := Share(ctx, conn, "transition", Team{Address: "team@lists.example.org"}, []string{"first", "second"}); err != nil {
		t.Fatal(err)
	}
	if err := Register(ctx, conn); err != nil {
		t.Fatal(err)
	}
	for view, want := range map[string]int{"package": len(packages), "dependency": dependencies, "note": 0, "team": 1, "team_member": 1, "task": 2} {
		var n int
		if err := conn.QueryRow(ctx, "SELECT count(*) FROM synchro_projection."+view).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n != want {
			t.Errorf("%d of %d rows of %s in the projection", n, want, view)
		}
	}
}
