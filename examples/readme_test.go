package examples

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

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

func TestRegistrationExampleSyncs(t *testing.T) {
	ctx := context.Background()
	c := pgtest.StartWithExtension(t, pgtest.Config{})
	const secret = "a secret of at least thirty-two octets"
	shim, err := c.Serve(ctx, pgtest.ServeConfig{JWTSecret: secret})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shim.Stop(); err != nil {
			t.Error(err)
		}
	})
	psql(t, c, "todo/register.sql")
	if err := c.Exec(ctx, "INSERT INTO todo.item VALUES (gen_random_uuid(), 'ada', 'try it', false)"); err != nil {
		t.Fatal(err)
	}
	// What is committed is only then all there for a new client when the worker has come so far.
	if err := c.WaitReady(ctx, shim, time.Minute); err != nil {
		t.Fatal(err)
	}
	var out []byte
	pgtest.Poll(t, 30*time.Second, "item on the device", func() bool {
		cmd := exec.Command("../.build/synchro", "check", "--user", "ada")
		cmd.Env = append(os.Environ(), "SYNCHRO_URL="+shim.URL, "SYNCHRO_JWT_SECRET="+secret)
		if out, err = cmd.CombinedOutput(); err != nil {
			t.Fatalf("check: %v\n%s", err, out)
		}
		return oneItem.Match(out)
	})

	// A client that follows connects again when the tables change.
	follow := exec.CommandContext(ctx, "../.build/synchro", "check", "--user", "ada", "--follow", "1m")
	follow.Env = append(os.Environ(), "SYNCHRO_URL="+shim.URL, "SYNCHRO_JWT_SECRET="+secret)
	lines, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	found := false
	for scan := bufio.NewScanner(lines); !found && scan.Scan(); {
		if strings.HasPrefix(scan.Text(), "following") {
			if err := c.Exec(ctx, `ALTER TABLE todo.item ADD COLUMN due date;
				SET SESSION AUTHORIZATION todo; SELECT synchro.synchro_register_table('todo.item', 'todo.item_scopes'); RESET SESSION AUTHORIZATION`); err != nil {
				t.Fatal(err)
			}
		}
		found = strings.Contains(scan.Text(), "connected again")
	}
	_ = follow.Process.Kill()
	_ = follow.Wait()
	if !found {
		t.Error("the follower ended at a change of the tables")
	}
}

// oneItem is the line that check prints for the scope once it holds the row.
var oneItem = regexp.MustCompile(`(?m)^ *user:ada +1 .* ok *$`)
