package systest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"synchro/internal/pgtest"
)

func TestHostSettingsAreDocumented(t *testing.T) {
	t.Parallel()
	repo, err := pgtest.RepoDir()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(repo, "docs/configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	c := pgtest.Start(t, pgtest.Config{NoWorker: true})
	rows, err := c.Connect(t, "", "").Query(t.Context(), "SELECT name FROM pg_settings WHERE name LIKE 'synchro.%'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), "| `"+name+"` |") {
			t.Errorf("%s is not in docs/configuration.md", name)
		}
		n++
	}
	if n < 15 || rows.Err() != nil {
		t.Errorf("%d settings, %v", n, rows.Err())
	}
}

func TestHostRefusesReservedNames(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t, pgtest.Config{NoWorker: true})
	conn := c.Connect(t, "", "")
	if _, err := conn.Exec(t.Context(), "SET synchro.no_such_setting = 1"); err == nil {
		t.Error("an unknown setting was accepted")
	}
	if _, err := conn.Exec(t.Context(), "SET synchro.user_id = 'somebody'"); err != nil {
		t.Error(err)
	}
}
