package systest

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"synchro/client"
	"synchro/internal/pgtest"
)

// attackApp lets whoever owns the table run code in the push that writes it. What app.evil is called by is written down.
const attackApp = `
CREATE TABLE app.ran (by text);
GRANT USAGE ON SCHEMA app TO PUBLIC;
GRANT SELECT, INSERT ON app.ran TO PUBLIC;
CREATE FUNCTION app.evil() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO app.ran VALUES (current_user);
  RETURN '{}';
END $$;
CREATE FUNCTION app.replace_statements() RETURNS void LANGUAGE plpgsql AS $$
DECLARE s record;
BEGIN
  FOR s IN SELECT name FROM pg_prepared_statements WHERE statement LIKE '%synchro_push%' LOOP
    EXECUTE format('DEALLOCATE %I', s.name);
    EXECUTE format('PREPARE %I(text, text, text) AS SELECT 200 AS status, app.evil() AS body '
                   'WHERE $1 IS NOT NULL OR $2 IS NOT NULL OR $3 IS NOT NULL', s.name);
  END LOOP;
END $$;
CREATE FUNCTION app.attack() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.body LIKE 'sql %' THEN EXECUTE substr(NEW.body, 5); END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER attack BEFORE INSERT ON app.note FOR EACH ROW EXECUTE FUNCTION app.attack();`

// attack pushes a note that runs sql, and then others in the same session. Nothing may have run outside of the push.
func attack(t *testing.T, sql string) {
	t.Parallel()
	a := startDatabase(t, pgtest.Config{})
	a.exec(attackApp)
	a.startShim("", "--pool-size", "1")
	t.Cleanup(func() { _ = a.serve.Stop() })
	a.awaitReady()
	ada := a.synced("ada", "ada-1")
	if r := a.pushNote(ada, "first"); r.status != http.StatusOK {
		t.Fatalf("first push: %d %s", r.status, r.code())
	}
	if r := a.pushNote(ada, "sql "+sql); r.status == http.StatusOK {
		t.Errorf("the attack was accepted: %s", r.body)
	}
	for range 2 {
		if r := a.pushNote(ada, "later"); r.status != http.StatusOK {
			t.Errorf("later push: %d %s", r.status, r.code())
		}
	}
	a.want("SELECT count(*) FROM app.ran", "0")
	a.wantRows(ada, "user:ada", 3)
}

func (a *app) pushNote(d *client.Session, body string) reply {
	a.t.Helper()
	return a.post("ada", "push", batch(a.t, d, noteChange(d, "insert", uuid.NewString(), "", noteColumns{"owner": `"ada"`, "body": `"` + body + `"`})))
}

func TestTriggerCannotReplaceStatementsOfTheSession(t *testing.T) {
	attack(t, "SELECT app.replace_statements()")
}

func TestTriggerCannotShadowTypesInTheSession(t *testing.T) {
	attack(t, "CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (app.evil() IS NOT NULL)")
}

func TestTriggerCannotShadowTablesInTheSession(t *testing.T) {
	attack(t, "CREATE TEMP TABLE note (id uuid)")
}

func TestTriggerCannotListenInTheSession(t *testing.T) { attack(t, "LISTEN anything") }

// Advisory locks are everybody's; what the extension waits for must not be among them.
func TestAdvisoryLocksStopNobody(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{})
	a.insertNotes("ada", 1, 10)
	a.materialized()
	rival := a.Connect(t, "", "")
	mustExec(t, a.Cluster, "CREATE ROLE rival LOGIN")
	for _, sql := range []string{"SET ROLE rival", "SELECT pg_advisory_lock(1398360133, hashtext('user:ada'))",
		"SELECT pg_advisory_lock(1398359107, n) FROM generate_series(0, 50) n"} {
		if _, err := rival.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	a.wantRows(a.synced("ada", "ada-1"), "user:ada", 10)
}
