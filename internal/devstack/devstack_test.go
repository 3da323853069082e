package devstack

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"synchro/internal/pgtest"
)

func open(t *testing.T, dir string) *Stack {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func up(t *testing.T, dir string) *Stack {
	t.Helper()
	s := open(t, dir)
	if err := s.Up(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s
}

// env reads the file that tools source.
func env(t *testing.T, dir string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{}
	for line := range strings.Lines(string(b)) {
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "='")
		if !ok || !strings.HasSuffix(value, "'") {
			t.Fatalf("line %q is not KEY='value'", line)
		}
		vars[key] = strings.TrimSuffix(value, "'")
	}
	return vars
}

func TestStackLife(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	t.Cleanup(func() {
		if err := open(t, dir).Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	first := up(t, dir)
	vars := env(t, dir)

	t.Run("env leads to shim and database", func(t *testing.T) {
		resp, err := http.Get(vars["SYNCHRO_URL"] + "/ready")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("ready: %s", resp.Status)
		}
		conn, err := pgx.Connect(context.Background(), "host="+vars["PGHOST"]+" port="+vars["PGPORT"]+" user="+vars["PGUSER"]+
			" dbname="+vars["PGDATABASE"]+" sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		var super string
		if err := conn.QueryRow(context.Background(), "SHOW is_superuser").Scan(&super); err != nil || super != "on" {
			t.Errorf("superuser: %s, %v", super, err)
		}
		if len(vars["SYNCHRO_JWT_SECRET"]) < 32 || vars["SYNCHRO_OPERATOR_URL"] == "" {
			t.Errorf("incomplete: %v", vars)
		}
	})

	t.Run("up again changes nothing", func(t *testing.T) {
		if second := up(t, dir); second.st != first.st {
			t.Error("the second start started something anew")
		}
	})

	t.Run("up after a crash keeps ports and data", func(t *testing.T) {
		c, err := first.cluster(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Exec(context.Background(), "CREATE TABLE kept ()"); err != nil {
			t.Fatal(err)
		}
		if err := c.Kill(c.PID()); err != nil {
			t.Fatal(err)
		}
		pgtest.Poll(t, 10*time.Second, "end of the killed server", func() bool { return !c.Running() })
		up(t, dir)
		if err := c.Exec(context.Background(), "TABLE kept"); err != nil {
			t.Error(err)
		}
		for key, value := range env(t, dir) {
			if vars[key] != value {
				t.Errorf("%s changed", key)
			}
		}
	})

	t.Run("down removes everything", func(t *testing.T) {
		clusterDir := first.st.ClusterDir
		if err := open(t, dir).Down(context.Background()); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{dir, clusterDir} {
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("%s is left: %v", path, err)
			}
		}
		if _, err := http.Get(vars["SYNCHRO_URL"] + "/ready"); err == nil {
			t.Error("something still answers")
		}
	})
}
