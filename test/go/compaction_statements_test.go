package systest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"synchro/internal/pgtest"
)

// Compaction executes as many statements for many scopes, clients and generations as for few.
func TestCompactionIsAConstantNumberOfStatements(t *testing.T) {
	t.Parallel()
	c := pgtest.StartWithExtension(t, pgtest.Config{NoWorker: true})
	ctx := context.Background()
	cfg, err := pgx.ParseConfig(c.DSN("", ""))
	if err != nil {
		t.Fatal(err)
	}
	statements := 0
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if strings.Contains(n.Message, `FROM ONLY "synchro"`) { // a foreign key's check of a deleted generation: the server's own
			return
		}
		statements++
	}
	db, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(ctx)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Exec(ctx, sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("LOAD 'auto_explain'")
	exec("SET auto_explain.log_nested_statements = on; SET auto_explain.log_level = notice; SET client_min_messages = notice")
	compact := func(scopes int) int {
		t.Helper()
		exec("BEGIN")
		exec(fmt.Sprintf(`INSERT INTO synchro.scope (scope_id, high_lsn) SELECT 's' || n, '0/100' FROM generate_series(1, %[1]d) n;
INSERT INTO synchro.scope_entry (scope_no, commit_lsn, event_ordinal, digest_schema, rel_no, effect_ordinal, state, key, server_version)
SELECT scope_no, '0/10', n, 1, 1, 0, 'x', int4send(n), 'v' FROM synchro.scope, generate_series(1, 3) n;
INSERT INTO synchro.client (client_id, user_id, created_at) SELECT 'c' || n, 'u', now() - interval '2 days' FROM generate_series(1, %[1]d) n;
INSERT INTO synchro.client_scope (client_no, scope_id, assigned) SELECT client_no, 's' || n, n %% 2 = 0 FROM synchro.client, generate_series(1, %[1]d) n;
INSERT INTO synchro.scope_digest_cache SELECT scope_no, 1, '0/100', 0, '' FROM synchro.scope;
INSERT INTO synchro.tombstone SELECT 1, n, 'v', now() - interval '2 days' FROM generate_series(1, %[1]d) n;
INSERT INTO synchro.rebuild_stage (scope_id, schema_version, stream_generation, membership_generation, retention_generation, boundary_lsn, cardinality, digest)
SELECT scope_id, 1, 1, 1, 1, '0/100', 1, '' FROM synchro.scope;
INSERT INTO synchro.rebuild_chunk SELECT stage_no, 0, 1, '{}' FROM synchro.rebuild_stage;
INSERT INTO synchro.registry_generation (generation, schema_version, actor) SELECT n, 1, 'a' FROM generate_series(2, %[1]d + 1) n;
UPDATE synchro.progress SET registry_generation = %[1]d + 1`, scopes))
		exec("SET LOCAL auto_explain.log_min_duration = 0")
		statements = 0
		var expired, deleted, tidied int
		row := db.QueryRow(ctx, "SELECT synchro._expire_clients(now() - interval '1 day'), (SELECT o_deleted FROM synchro._compact_scopes(0, 10000)), synchro._tidy(now() - interval '1 day', 10000)")
		if err := row.Scan(&expired, &deleted, &tidied); err != nil {
			t.Fatal(err)
		}
		if expired != scopes || deleted != 3*scopes || tidied < 5*scopes {
			t.Errorf("%d clients expired, %d entries and %d other rows deleted of %d scopes", expired, deleted, tidied, scopes)
		}
		made := statements
		exec("ROLLBACK")
		return made
	}
	few, many := compact(3), compact(60)
	t.Logf("%d and %d statements", few, many)
	if few != many || few < 10 {
		t.Errorf("%d statements for few scopes, %d for many", few, many)
	}
}
