package systest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/jackc/pgx/v5"

	"synchro/client"
	"synchro/internal/pgtest"
)

const jwtSecret = "a secret of the system tests, long enough"

// noteApp is an application with one pushed table: every user has the notes that it owns.
const noteApp = `
CREATE SCHEMA app;
CREATE TABLE app.note (id uuid PRIMARY KEY, owner text NOT NULL, body text NOT NULL, n int NOT NULL DEFAULT 0 CHECK (n >= 0), deleted_at timestamptz);
ALTER TABLE app.note ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON app.note TO synchro_writer USING (owner = (SELECT synchro.synchro_subject())) WITH CHECK (owner = (SELECT synchro.synchro_subject()));
GRANT USAGE ON SCHEMA app TO synchro_owner, synchro_worker, synchro_writer;
GRANT SELECT ON app.note TO synchro_owner, synchro_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.note TO synchro_writer;
SELECT synchro.synchro_prepare_projection_view('app.note', 'note', '{id,owner}');
CREATE FUNCTION app.note_scopes(p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'user:' || n.owner FROM synchro_projection.note n WHERE n.id = p_row_key; END;
REVOKE EXECUTE ON FUNCTION app.note_scopes(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION app.note_scopes(uuid) TO synchro_worker;
SELECT synchro.synchro_register_table('app.note', 'app.note_scopes', p_deleted_at_col => 'deleted_at');`

// app is a cluster that runs noteApp, with a shim.
type app struct {
	*pgtest.Cluster
	t     testing.TB
	db    *pgx.Conn
	serve *pgtest.Serve
}

// startApp starts everything and waits until it is ready.
func startApp(t testing.TB, cfg pgtest.Config) *app {
	t.Helper()
	a := startDatabase(t, cfg)
	a.startShim("")
	t.Cleanup(func() {
		if err := a.serve.Stop(); err != nil {
			t.Errorf("shim: %v", err)
		}
	})
	a.awaitReady()
	return a
}

// startDatabase starts the cluster with the application, and no shim.
func startDatabase(t testing.TB, cfg pgtest.Config) *app {
	t.Helper()
	a := &app{Cluster: pgtest.StartWithExtension(t, cfg), t: t}
	a.db = a.Connect(t, "", "")
	a.exec("BEGIN;" + noteApp + "COMMIT")
	return a
}

// startShim starts a shim at the given address; empty: any.
func (a *app) startShim(listen string, args ...string) {
	a.t.Helper()
	serve, err := a.Serve(context.Background(), pgtest.ServeConfig{JWTSecret: jwtSecret, Listen: listen, Args: args})
	if err != nil {
		a.t.Fatal(err)
	}
	a.serve = serve
}

// restartShim ends the shim and starts another one at the same address.
func (a *app) restartShim() {
	a.t.Helper()
	if err := a.serve.Stop(); err != nil {
		a.t.Fatal(err)
	}
	a.startShim(strings.TrimPrefix(a.serve.URL, "http://"))
}

// restart restarts the server; whoever was connected finds a new one.
func (a *app) restart(mode pgtest.StopMode) {
	a.t.Helper()
	if err := a.Restart(context.Background(), mode); err != nil {
		a.t.Fatal(err)
	}
	a.db = a.Connect(a.t, "", "")
	a.awaitReady()
}

func (a *app) exec(sql string, args ...any) {
	a.t.Helper()
	if _, err := a.db.Exec(context.Background(), sql, args...); err != nil {
		a.t.Fatal(err)
	}
}

func (a *app) awaitReady() {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	err := pgtest.WaitFor(ctx, settle, "readiness", func() (bool, error) { return a.serve.Ready(ctx), nil })
	if err != nil {
		var detail string
		_ = a.db.QueryRow(context.Background(), "SELECT synchro.synchro_health_detail()::text").Scan(&detail)
		a.t.Fatalf("%v; health: %s", err, detail)
	}
}

// materialized waits until everything that is committed so far can be pulled.
func (a *app) materialized() {
	a.t.Helper()
	var done bool
	err := a.db.QueryRow(context.Background(), "SELECT synchro._await_progress(synchro._emit_marker(), 30000)").Scan(&done)
	if err != nil || !done {
		a.t.Fatalf("not materialized: %v %v", done, err)
	}
}

func bearer(user string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		claims := jwt.MapClaims{"sub": user, "exp": time.Now().Add(time.Hour).Unix()}
		return jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(jwtSecret))
	}
}

// device is a client of one user.
func (a *app) device(user, id string) *client.Session {
	return client.NewSession(&client.Client{URL: a.serve.URL, Token: bearer(user), HTTP: &http.Client{Timeout: settle},
		Retry: client.Retry{Attempts: 30, Base: 50 * time.Millisecond, Max: time.Second}}, id, "test", "1.0.0")
}

// synced is a device that has copied and verified everything.
func (a *app) synced(user, id string) *client.Session {
	a.t.Helper()
	d := a.device(user, id)
	if err := d.Connect(context.Background(), false); err != nil {
		a.t.Fatalf("connect: %v", err)
	}
	a.sync(d)
	return d
}

func (a *app) sync(d *client.Session) {
	a.t.Helper()
	if err := d.Sync(context.Background()); err != nil {
		a.t.Fatalf("sync: %v", err)
	}
}

// wantRows checks how many live rows a device holds of a scope, after a verified sync.
func (a *app) wantRows(d *client.Session, scope string, want int) {
	a.t.Helper()
	a.sync(d)
	if got := d.Rows(scope); got != want {
		a.t.Errorf("%s holds %d rows, want %d", scope, got, want)
	}
}

// insertNotes inserts notes of one owner and returns nothing: their ids are derived from the numbers from..from+count-1.
func (a *app) insertNotes(owner string, from, count int) {
	a.t.Helper()
	a.exec(fmt.Sprintf(`INSERT INTO app.note (id, owner, body) SELECT md5(i::text)::uuid, $1, 'note ' || i FROM generate_series(%d, %d) i`,
		from, from+count-1), owner)
}
