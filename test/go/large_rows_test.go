package systest

import (
	"context"
	"fmt"
	"testing"

	"synchro/internal/pgtest"
)

// Rows of any size that may be written travel: a page of large ones ends early instead of growing without limit.
func TestPagesOfLargeRows(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{})
	large := func(from, count, octets int) {
		a.exec(fmt.Sprintf("INSERT INTO app.note (id, owner, body) SELECT md5(i::text)::uuid, 'ada', repeat(md5(i::text), %d) FROM generate_series(%d, %d) i", octets/32, from, from+count-1))
	}
	large(1, 20, 1<<20)
	a.insertNotes("ada", 1001, 100)
	a.materialized()
	d := a.device("ada", "ada-1")
	a.wantRows(d, "user:ada", 120)
	stats, _ := d.Stats("user:ada")
	if stats.Pages < 2 {
		t.Errorf("%d pages of a rebuild for 20 MiB", stats.Pages)
	}
	a.exec("UPDATE app.note SET n = n + 1")
	large(5001, 1, 18<<20)
	a.materialized()
	pulled, err := d.Pull(context.Background(), 0)
	if err != nil || pulled.Upserts != 121 || pulled.Pages != 3 {
		t.Errorf("pull: %+v %v", pulled, err)
	}
}
