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
	if err := Load(ctx, conn, packages); err != nil {
		t.Fatal(err)
	}
	if err := Register(ctx, conn); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM synchro_projection.package").Scan(&n); err != nil {
		t.Fatal(err)
	}
	if n != len(packages) {
		t.Errorf("%d of %d packages in the projection", n, len(packages))
	}
}
