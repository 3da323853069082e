package systest

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

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
	cursor := a.rebuildCursor(d)
	a.exec("UPDATE app.note SET n = n + 1")
	large(5001, 1, 18<<20)
	a.materialized()
	pages, changes := 0, 0
	for more := true; more; pages++ {
		r := a.post("ada", "pull", pullBody(t, d, 1000, cursor))
		if p := r.page(t); p.HasMore {
			next := p.ScopeCursors["user:ada"]
			cursor["user:ada"] = scopeCursor(next)
			changes += len(p.Changes)
		} else {
			more = false
			changes += len(p.Changes)
		}
		if len(r.body) > 19<<20 {
			t.Errorf("a page of %d octets", len(r.body))
		}
	}
	if pages != 3 || changes != 121 {
		t.Errorf("%d changes in %d pages", changes, pages)
	}
	a.wantRows(d, "user:ada", 121)

	// Replayed octet by octet, cut where it was.
	id := uuid.NewString()
	body := rebuildBody(t, d, "user:ada", id, nil, 1000)
	first := a.post("ada", "rebuild", body)
	if again := a.post("ada", "rebuild", body); again.body != first.body || !first.page(t).HasMore {
		t.Error("a large page is not replayed")
	}
}
