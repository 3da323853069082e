package model

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"synchro/internal/pgtest"
)

const jwtSecret = "a secret of the model test, long enough"

// application has a table with soft deletion whose rows are in up to three scopes, one with hard deletion and one scope a row, and one
// that is registered now and then, for reading. Columns come and go too, and rules change (shape_test.go).
// rev changes with every write, by whomever: it names a state of a row without the help of the code under test. written lists what
// was executed, and for which user.
const application = `
CREATE SCHEMA app;
CREATE SEQUENCE app.rev;
CREATE TABLE app.task (id uuid PRIMARY KEY, owner text, team text, shelf text, title text NOT NULL, n int NOT NULL DEFAULT 0 CHECK (n >= 0),
  note text, rev bigint NOT NULL, deleted_at timestamptz);
CREATE TABLE app.tag (id bigint PRIMARY KEY, team text, title text NOT NULL, color text, rev bigint NOT NULL);
CREATE TABLE app.memo (id int PRIMARY KEY, owner text, title text NOT NULL, rev bigint NOT NULL);
CREATE TABLE app.member (user_id text, team text, PRIMARY KEY (user_id, team));
CREATE TABLE app.written (n bigint GENERATED ALWAYS AS IDENTITY, op text NOT NULL, row text NOT NULL, subject text, title text NOT NULL);

CREATE FUNCTION app.stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.rev := nextval('app.rev'); RETURN NEW; END $$;
CREATE FUNCTION app.tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    INSERT INTO app.written (op, row, subject, title) VALUES ('purge', TG_TABLE_NAME || '/' || OLD.id, synchro.synchro_subject(), '');
  ELSIF TG_OP = 'UPDATE' AND (to_jsonb(OLD) ->> 'deleted_at') IS NULL AND (to_jsonb(NEW) ->> 'deleted_at') IS NOT NULL THEN
    INSERT INTO app.written (op, row, subject, title) VALUES ('delete', TG_TABLE_NAME || '/' || NEW.id, synchro.synchro_subject(), '');
  ELSE
    INSERT INTO app.written (op, row, subject, title) VALUES (lower(TG_OP), TG_TABLE_NAME || '/' || NEW.id, synchro.synchro_subject(), NEW.title);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER stamp BEFORE INSERT OR UPDATE ON app.task FOR EACH ROW EXECUTE FUNCTION app.stamp();
CREATE TRIGGER stamp BEFORE INSERT OR UPDATE ON app.tag FOR EACH ROW EXECUTE FUNCTION app.stamp();
CREATE TRIGGER stamp BEFORE INSERT OR UPDATE ON app.memo FOR EACH ROW EXECUTE FUNCTION app.stamp();
CREATE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE ON app.task FOR EACH ROW EXECUTE FUNCTION app.tell();
CREATE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE ON app.tag FOR EACH ROW EXECUTE FUNCTION app.tell();

ALTER TABLE app.task ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.tag ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON app.task TO synchro_writer USING (owner = (SELECT synchro.synchro_subject()) OR team IS NOT NULL)
  WITH CHECK (owner = (SELECT synchro.synchro_subject()) OR team IS NOT NULL);
CREATE POLICY everyone ON app.tag TO synchro_writer USING (true) WITH CHECK (true);
GRANT USAGE ON SCHEMA app TO synchro_owner, synchro_worker, synchro_writer;
GRANT USAGE ON SEQUENCE app.rev TO synchro_writer;
GRANT INSERT ON app.written TO synchro_writer;
GRANT SELECT ON app.task, app.tag, app.memo TO synchro_owner, synchro_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.task, app.tag TO synchro_writer;

SELECT synchro.synchro_prepare_projection_view('app.task', 'task', '{id,owner,team,shelf,n}');
SELECT synchro.synchro_prepare_projection_view('app.tag', 'tag', '{id,team,color}');
SELECT synchro.synchro_prepare_projection_view('app.memo', 'memo', '{id,owner}');
%s
CREATE FUNCTION app.teams(p_user_id text) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'team:' || m.team FROM app.member m WHERE m.user_id = p_user_id; END;
REVOKE EXECUTE ON FUNCTION app.teams(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION app.teams(text) TO synchro_owner;
SELECT synchro.synchro_register_assignment_function('app.teams');`

// rule is the body of a membership function.
type rule struct{ table, key, body string }

// rules are those that the tables may have, by name and number.
var scopeRules = []rule{
	{"task", "uuid", scopeOf("task", "user", "owner", "") + union + scopeOf("task", "team", "team", "") + union + scopeOf("task", "shelf", "shelf", "")},
	{"task", "uuid", scopeOf("task", "user", "owner", "") + union + scopeOf("task", "team", "team", "")},
	{"task", "uuid", scopeOf("task", "user", "owner", "") + union + scopeOf("task", "team", "team", "AND t.n = 0") + union + scopeOf("task", "shelf", "shelf", "")},
	{"tag", "bigint", scopeOf("tag", "team", "team", "")},
	{"tag", "bigint", scopeOf("tag", "team", "team", "AND t.color IS NULL")},
	{"memo", "int", scopeOf("memo", "user", "owner", "")},
}

const union = " UNION ALL "

func scopeOf(table, namespace, column, more string) string {
	return fmt.Sprintf("SELECT '%s:' || t.%s FROM synchro_projection.%s t WHERE t.id = p_row_key AND t.%[2]s IS NOT NULL %[4]s", namespace, column, table, more)
}

// functions are the rules as functions: table_scopes_number.
func functions() string {
	var sql strings.Builder
	numbers := map[string]int{}
	for _, r := range scopeRules {
		fmt.Fprintf(&sql, `CREATE FUNCTION app.%s_scopes_%d(p_row_key %s) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC %s; END;
REVOKE EXECUTE ON FUNCTION app.%[1]s_scopes_%d FROM PUBLIC;
GRANT EXECUTE ON FUNCTION app.%[1]s_scopes_%[2]d TO synchro_worker;
`, r.table, numbers[r.table], r.key, r.body)
		numbers[r.table]++
	}
	return sql.String()
}

// stack is a cluster that runs the application, with a shim. It serves one run after the other.
type stack struct {
	*pgtest.Cluster
	db    *pgx.Conn
	serve *pgtest.Serve
	shape shape  // what is registered
	grown string // a column that the table of tags has grown
	grows int
}

func startStack(t testing.TB) *stack {
	t.Helper()
	s := startEmpty(t)
	if err := s.exec("BEGIN;" + fmt.Sprintf(application, functions()) + firstShape.register("task") + firstShape.register("tag") + "COMMIT"); err != nil {
		t.Fatal(err)
	}
	s.shape = firstShape
	if err := s.ready(); err != nil {
		t.Fatal(err)
	}
	return s
}

// startEmpty starts a stack without the application.
func startEmpty(t testing.TB, settings ...string) *stack {
	t.Helper()
	s := &stack{Cluster: pgtest.StartWithExtension(t, pgtest.Config{Settings: settings})}
	s.db = s.Connect(t, "", "")
	if err := s.startShim(""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.db.Close(context.Background())
		_ = s.serve.Stop()
	})
	return s
}

func (s *stack) startShim(listen string) (err error) {
	s.serve, err = s.Serve(context.Background(), pgtest.ServeConfig{JWTSecret: jwtSecret, Listen: listen})
	return err
}

// restartShim ends the shim and starts another one at the same address.
func (s *stack) restartShim() error {
	if err := s.serve.Stop(); err != nil {
		return err
	}
	return s.startShim(strings.TrimPrefix(s.serve.URL, "http://"))
}

// ready waits until the whole stack works, with a connection that does.
func (s *stack) ready() error {
	ctx := context.Background()
	if err := s.WaitReady(ctx, s.serve, settle); err != nil {
		return err
	}
	if s.db.Ping(ctx) == nil {
		return nil
	}
	_ = s.db.Close(ctx)
	db, err := s.Conn(ctx, "", "")
	if err == nil {
		s.db = db
	}
	return err
}

// core waits for a working core and returns its process and the worker's.
func (s *stack) core() (core, worker int, err error) {
	err = pgtest.WaitFor(context.Background(), settle, "working core", func() (bool, error) {
		var state string
		err := s.db.QueryRow(context.Background(), "SELECT coalesce(core_pid, 0), coalesce(pid, 0), state FROM synchro._worker_status()").
			Scan(&core, &worker, &state)
		return core != 0 && state == "streaming", err
	})
	return core, worker, err
}

func (s *stack) exec(sql string, args ...any) error {
	_, err := s.db.Exec(context.Background(), sql, args...)
	return err
}
