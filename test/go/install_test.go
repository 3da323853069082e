package systest

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"synchro/internal/pgtest"
)

// The extension goes into its own schemas or nowhere, and gives nobody anything by the default privileges of whoever installs it.
func TestInstallation(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t, pgtest.Config{NoWorker: true})
	db := c.Connect(t, "", "")
	exec := func(sql string) error {
		_, err := db.Exec(context.Background(), sql)
		return err
	}
	var refused *pgconn.PgError
	if err := exec("CREATE EXTENSION synchro SCHEMA public"); !errors.As(err, &refused) || refused.Code != "0A000" {
		t.Errorf("another schema: %v", err)
	}
	count := func(sql string) (n int) {
		t.Helper()
		if err := db.QueryRow(context.Background(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'synchro%'"); n != 0 {
		t.Errorf("%d schemas of an extension that was refused", n)
	}
	for _, sql := range []string{
		"CREATE ROLE everybody; CREATE ROLE joe LOGIN IN ROLE everybody",
		"ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO joe", "ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO joe", "ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO everybody",
		"ALTER DEFAULT PRIVILEGES GRANT ALL ON TYPES TO joe", "ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO everybody",
		"CREATE EXTENSION synchro",
	} {
		if err := exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	for what, sql := range map[string]string{
		"schemas":   "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'synchro%' AND (has_schema_privilege('joe', oid, 'USAGE') OR has_schema_privilege('joe', oid, 'CREATE'))",
		"functions": "SELECT count(*) FROM pg_proc WHERE pronamespace = 'synchro'::regnamespace AND has_function_privilege('joe', oid, 'EXECUTE')",
		"tables":    "SELECT count(*) FROM pg_class WHERE relnamespace = 'synchro'::regnamespace AND relkind IN ('r', 'v') AND has_table_privilege('joe', oid, 'SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER')",
		"sequences": "SELECT count(*) FROM pg_class WHERE relnamespace = 'synchro'::regnamespace AND CASE relkind WHEN 'S' THEN has_sequence_privilege('joe', oid, 'USAGE,SELECT,UPDATE') END",
		"types":     "SELECT count(*) FROM pg_type WHERE typnamespace = 'synchro'::regnamespace AND typcategory <> 'A' AND has_type_privilege('joe', oid, 'USAGE')",
	} {
		if n := count(sql); n != 0 {
			t.Errorf("a stranger has privileges on %d %s", n, what)
		}
	}
}
