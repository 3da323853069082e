package examples

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"synchro/internal/pgtest"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReadmeShowsTheRegistrationExample(t *testing.T) {
	if !strings.Contains(read(t, "../README.md"), "```sql\n"+read(t, "todo/register.sql")+"```") {
		t.Error("the README's registration is not examples/todo/register.sql")
	}
}

func TestReadmeNamesEveryDirectory(t *testing.T) {
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	readme := read(t, "../README.md")
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !strings.Contains(readme, "`"+e.Name()+"/") {
			t.Errorf("the README does not say what lives in %s/", e.Name())
		}
	}
}

// psql runs a script as the superuser and fails the test at its first error.
func psql(t *testing.T, c *pgtest.Cluster, script string) {
	t.Helper()
	cmd := exec.Command(c.Installation().Bin("psql"), "-XqAt", "-v", "ON_ERROR_STOP=1", c.DSN("", ""), "-f", script)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("psql -f %s: %v\n%s", script, err, out)
	}
}

func TestRegistrationExampleRegisters(t *testing.T) {
	c := pgtest.StartWithExtension(t, pgtest.Config{NoWorker: true})
	psql(t, c, "todo/register.sql")
	var id string
	err := c.Connect(t, "", "").QueryRow(context.Background(), "SELECT synchro.synchro_table_id('todo.item')").Scan(&id)
	if err != nil || id == "" {
		t.Errorf("table id %q: %v", id, err)
	}
}
