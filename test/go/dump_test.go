package systest

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"synchro/canonical"
	"synchro/internal/pgtest"
)

// pgProgram runs a client program of the server under test.
func pgProgram(t testing.TB, c *pgtest.Cluster, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(c.Installation().Bin(name), args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

const registeredAgain = `BEGIN; SELECT synchro.synchro_prepare_projection_view('app.note', 'note', '{id,owner}');
	SELECT synchro.synchro_register_table('app.note', 'app.note_scopes', p_deleted_at_col => 'deleted_at'); COMMIT`

// A database that was restored from a dump serves nothing until an operator has registered everything again and says so. It remembers what operators and
// clients have done: grants and revocations, retired clients, outcomes of pushes. Nobody is given a row on the ground of what was before.
func TestRestoredDump(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{})
	a.exec("CREATE TABLE app.extra (id bigint PRIMARY KEY); GRANT SELECT ON app.extra TO synchro_owner, synchro_worker; SELECT synchro.synchro_register_capture_dependency('app.extra', '{id}', '{id}')")
	a.exec("SELECT synchro.synchro_grant_user_scope('ada', 'team'), synchro.synchro_revoke_user_scope('cyd', 'user:cyd'), synchro.synchro_register_shared_scope('all')")
	a.insertNotes("ada", 1, 10)
	a.materialized()
	ada, bob := a.synced("ada", "ada-1"), a.synced("bob", "bob-1")
	id := uuid.NewString()
	pushed := batch(t, ada, noteChange(ada, "insert", id, "", noteColumns{"owner": `"ada"`, "body": `"pushed"`, "n": "1"}))
	outcome := a.post("ada", "push", pushed)
	if outcome.status != 200 || !strings.Contains(outcome.body, "applied") {
		t.Fatalf("push: %d %s", outcome.status, outcome.body)
	}
	a.wantRows(ada, "user:ada", 11)
	a.exec("SELECT synchro.synchro_retire_client('bob', 'bob-1')")
	cursors := a.rebuildCursor(ada)
	dir := t.TempDir()
	roles, dump := filepath.Join(dir, "roles"), filepath.Join(dir, "dump")
	pgProgram(t, a.Cluster, "pg_dumpall", "--roles-only", "-f", roles, "-d", a.DSN("", ""))
	pgProgram(t, a.Cluster, "pg_dump", "-Fc", "-f", dump, a.DSN("", ""))

	restored := func(t *testing.T, cfg pgtest.Config, between func(*pgtest.Cluster), args ...string) *app {
		b := &app{Cluster: pgtest.Start(t, cfg), t: t}
		pgProgram(t, b.Cluster, "psql", "-q", "-d", b.DSN("", ""), "-f", roles)
		args = append(args, "--exit-on-error", "-d", b.DSN("", ""), dump)
		pgProgram(t, b.Cluster, "pg_restore", append([]string{"--section=pre-data"}, args...)...)
		between(b.Cluster)
		pgProgram(t, b.Cluster, "pg_restore", append([]string{"--section=data", "--section=post-data"}, args...)...)
		b.db = b.Connect(t, "", "")
		b.startShim("")
		t.Cleanup(func() {
			if err := b.serve.Stop(); err != nil {
				t.Errorf("shim: %v", err)
			}
		})
		return b
	}
	for name, restore := range map[string]func(t *testing.T) *app{
		"before the worker knows the database": func(t *testing.T) *app {
			b := restored(t, pgtest.Config{NoWorker: true}, func(*pgtest.Cluster) {})
			reconfigure(t, b.Cluster, "synchro.database = '"+pgtest.Database+"'")
			if err := b.Cluster.Restart(context.Background(), pgtest.Fast); err != nil {
				t.Fatal(err)
			}
			b.db = b.Connect(t, "", "")
			return b
		},
		"while the worker captures": func(t *testing.T) *app {
			// The worker has made its slot and publication before the data come.
			return restored(t, pgtest.Config{}, func(c *pgtest.Cluster) { awaitWorking(t, c) }, "--no-publications")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := restore(t)
			closed := func(when string) {
				t.Helper()
				for _, r := range []reply{
					b.post("ada", "connect", connectBody(t, ada, cursors)),
					b.post("eve", "connect", []byte(`{"client_id":"eve-1","platform":"test","app_version":"1.0.0","protocol_version":3,"schema":{"version":0,"hash":""},"scope_set_version":0,"known_scopes":{}}`)),
				} {
					if r.status != 503 || r.code() != "temporary_unavailable" {
						t.Errorf("%s: connect: %d %s", when, r.status, r.body)
					}
				}
				if r := b.post("ada", "pull", pullBody(t, ada, 100, cursors)); r.status != 422 && r.status != 503 {
					t.Errorf("%s: pull: %d %s", when, r.status, r.body)
				}
				if b.serve.Ready(context.Background()) {
					t.Errorf("%s: ready", when)
				}
				b.want(`SELECT reason FROM synchro._health_checks() WHERE "check" = 'stream_identity'`, "restored")
			}
			awaitStatus(t, b.Cluster, "refusing core", func(st workerStatus) bool { return strings.HasSuffix(st.LastError, "stream_identity") })
			closed("restored")
			if r := b.post("ada", "push", pushed); r.status != 200 || r.body != outcome.body {
				t.Errorf("replay: %d %s", r.status, r.body)
			}
			b.exec("UPDATE app.note SET n = n + 1") // its triggers are those of a registration that is not there
			if _, err := b.db.Exec(context.Background(), "SELECT synchro.synchro_accept_restore()"); err == nil || !strings.Contains(err.Error(), "2 tables were registered") {
				t.Errorf("accepted too early: %v", err)
			}
			b.exec(registeredAgain)
			closed("registered")
			b.exec("UPDATE app.note SET n = n + 1")
			if _, err := b.db.Exec(context.Background(), "SELECT synchro.synchro_accept_restore()"); err == nil || !strings.Contains(err.Error(), "1 tables were registered") {
				t.Errorf("accepted too early: %v", err)
			}
			b.exec("DROP TRIGGER synchro_fence ON app.extra; DROP TRIGGER synchro_key_guard ON app.extra; DROP TRIGGER synchro_truncate_guard ON app.extra")
			b.exec("SELECT synchro.synchro_accept_restore()")
			b.awaitReady()
			b.want("SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'v') AND relnamespace IN ('synchro_data'::regnamespace, 'synchro_projection'::regnamespace)", "2")
			b.want("SELECT count(*) FROM synchro_data.r_"+b.value("SELECT rel_no FROM synchro.relation WHERE physical_relation = 'note'"), "11")
			if _, err := b.db.Exec(context.Background(), "SELECT synchro.synchro_accept_restore()"); err == nil || !strings.Contains(err.Error(), "not restored") {
				t.Errorf("accepted twice: %v", err)
			}

			// What a client had is void, each thing in its way.
			if r := b.post("ada", "push", pushed); r.status != 200 || r.body != outcome.body {
				t.Errorf("replay: %d %s", r.status, r.body)
			}
			for _, r := range []reply{b.post("ada", "pull", pullBody(t, ada, 100, cursors)), b.post("ada", "rebuild", rebuildBody(t, ada, "user:ada", uuid.NewString(), nil, 10)),
				b.post("ada", "push", batch(t, ada, noteChange(ada, "delete", id, "v", nil)))} {
				if r.status != 409 || r.code() != "client_generation_expired" {
					t.Errorf("a client of before: %d %s", r.status, r.body)
				}
			}
			if r := b.post("bob", "connect", connectBody(t, bob, cursors)); r.status != 409 || r.code() != "client_retired" {
				t.Errorf("a retired client: %d %s", r.status, r.body)
			}
			var answer struct {
				Generation int64 `json:"client_generation"`
				Schema     struct{ Action, Reason string }
				Cursors    map[string]*string `json:"scope_cursor_updates"`
			}
			if r := b.post("ada", "connect", connectBody(t, ada, cursors)); r.status != 200 || json.Unmarshal([]byte(r.body), &answer) != nil ||
				answer.Generation != 2 || answer.Schema.Action != "unsupported" || answer.Schema.Reason != "unknown_schema_lineage" || len(answer.Cursors) != 0 {
				t.Errorf("connect: %d %s", r.status, r.body)
			}
			fresh := b.synced("ada", "ada-2")
			b.wantRows(fresh, "user:ada", 11)
			if got := strings.Join(fresh.Scopes(), " "); got != "all team user:ada" {
				t.Errorf("ada's scopes: %s", got)
			}
			if got := strings.Join(b.synced("cyd", "cyd-1").Scopes(), " "); got != "all" {
				t.Errorf("cyd's scopes: %s", got)
			}
			// All goes on: writes, pushes, and the copies that the dump brought along are forgotten.
			b.insertNotes("ada", 11, 5)
			if p, err := fresh.Push(context.Background(), []canonical.Mutation{noteChange(fresh, "insert", uuid.NewString(), "", noteColumns{"owner": `"ada"`, "body": `"new"`, "n": "1"})}, false); err != nil || len(p.Accepted) != 1 {
				t.Errorf("push: %+v %v", p, err)
			}
			b.wantRows(fresh, "user:ada", 17)
			b.exec("SELECT synchro.synchro_compact()")
			b.want("SELECT count(*) FROM pg_proc WHERE pronamespace = 'synchro_twin'::regnamespace", "1")
			b.want("SELECT count(*) FROM synchro.quarantine", "0")
		})
	}
}
