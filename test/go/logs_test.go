package systest

import (
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"

	"synchro/canonical"
	"synchro/internal/pgtest"
	"synchro/protocol"
)

// riskyTable has a membership function that fails on some values, with the value in the error.
const riskyTable = `
CREATE TABLE app.risky (id text PRIMARY KEY, owner text NOT NULL, number text NOT NULL);
GRANT SELECT ON app.risky TO synchro_owner, synchro_worker;
SELECT synchro.synchro_prepare_projection_view('app.risky', 'risky', '{id,owner,number}');
CREATE FUNCTION app.risky_scopes(p_row_key text) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'user:' || r.owner FROM synchro_projection.risky r WHERE r.id = p_row_key AND r.number::int > 0; END;
REVOKE EXECUTE ON FUNCTION app.risky_scopes(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION app.risky_scopes(text) TO synchro_worker;
SELECT synchro.synchro_register_table('app.risky', 'app.risky_scopes', p_push_policy => 'read_only');`

// Whatever goes wrong, logs, metrics, health and error answers hold no row value, key, user, client, scope or token.
func TestLogsHoldNoData(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{Settings: []string{"log_min_messages = info", "log_error_verbosity = verbose"}})
	a.exec("BEGIN;" + riskyTable + "COMMIT")
	a.awaitReady()
	const user, client, value, key = "mark-user", "mark-client", "mark-value", "11111111-aaaa-4aaa-8aaa-222222222222"
	d := a.synced(user, client)
	marks := []string{"mark-", key, "11111111", hex.EncodeToString([]byte("11111111"))} // the last as it is stored
	var refusals []reply
	post := func(as, route string, body []byte) reply {
		r := a.post(as, route, body)
		if r.status != http.StatusOK {
			refusals = append(refusals, r)
		}
		return r
	}

	// Outcomes of every kind.
	columns := noteColumns{"owner": `"` + user + `"`, "body": `"` + value + `"`}
	pushed, err := d.Push(context.Background(), []canonical.Mutation{
		mutation(d, "insert", key, "", columns),
		mutation(d, "insert", noteID(1), "", noteColumns{"owner": `"mark-other"`, "body": `"` + value + `"`}),            // RLS
		mutation(d, "insert", noteID(2), "", noteColumns{"owner": columns["owner"], "body": columns["body"], "n": "-1"}), // CHECK
		mutation(d, "insert", noteID(3), "", noteColumns{"owner": columns["owner"]}),                                     // NOT NULL
		mutation(d, "update", noteID(4), "mark-version", columns),
		mutation(d, "insert", noteID(5), "", noteColumns{"owner": columns["owner"], "body": columns["body"], "n": `"mark-cast"`}),
	}, false)
	if err != nil || len(pushed.Accepted) != 1 || len(pushed.Rejected) != 5 {
		t.Fatalf("push: %+v %v", pushed, err)
	}
	// Refusals: conflicts of ids, forged tokens, other people's scopes, garbage.
	body := batch(t, d, noteChange(d, "update", key, pushed.Accepted[0].Row.ServerVersion, noteColumns{"body": `"mark-second"`}))
	post(user, "push", body)
	post(user, "push", []byte(strings.Replace(string(body), "mark-second", "mark-third", 1)))
	post("mark-stranger", "push", body)
	forged := "mark-cursor"
	post(user, "pull", pullBody(t, d, 10, map[string]protocol.ScopeCursor{"user:" + user: {Cursor: &forged}}))
	post(user, "pull", pullBody(t, d, 10, map[string]protocol.ScopeCursor{"user:mark-stranger": {}}))
	post(user, "rebuild", rebuildBody(t, d, "user:mark-stranger", uuid.NewString(), nil, 10))
	post(user, "push", []byte(`{"mark-member": "`+value+`"}`))
	post(user, "push", []byte(`{"mark-member": `))
	if len(refusals) != 7 {
		t.Errorf("%d refusals", len(refusals))
	}
	// An operational failure inside the database, and one of a serialization kind.
	a.exec("CREATE FUNCTION app.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'XX000', MESSAGE = 'mark-message ' || NEW.body, DETAIL = NEW.body, HINT = NEW.body; END $$")
	a.exec("CREATE TRIGGER fail BEFORE UPDATE ON app.note FOR EACH ROW EXECUTE FUNCTION app.fail()")
	if r := post(user, "push", batch(t, d, noteChange(d, "update", key, pushed.Accepted[0].Row.ServerVersion, noteColumns{"body": `"mark-fourth"`}))); r.status != http.StatusOK && r.status != http.StatusInternalServerError {
		t.Errorf("a failing trigger: %d %s", r.status, r.code())
	}
	a.exec("DROP TRIGGER fail ON app.note")
	// A credential of somebody else.
	q, _ := http.NewRequest(http.MethodPost, a.serve.URL+"/sync/pull", strings.NewReader(`{}`))
	q.Header.Set("Authorization", "Bearer mark-token.mark-token.mark-token")
	response, err := plain.Do(q)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		t.Fatalf("credential: %v %v", response, err)
	}
	response.Body.Close()
	a.sync(d)

	// A key that comes back has entries already: the batch fails once and is tried again.
	a.exec("CREATE TABLE app.kept AS SELECT * FROM app.note WHERE id = '" + key + "'")
	a.exec("DELETE FROM app.note WHERE id = '" + key + "'")
	a.materialized()
	a.exec("INSERT INTO app.note SELECT * FROM app.kept")
	a.sync(d)

	// Capture that fails on a value.
	a.exec("INSERT INTO app.risky VALUES ('mark-key', 'mark-user', 'mark-number')")
	a.wantBlocked()
	a.want("SELECT string_agg(class, ',') FROM synchro.quarantine WHERE resolved_at IS NULL", "scope_evaluation_failed")
	for _, r := range refusals {
		for _, mark := range marks {
			if strings.Contains(r.body, mark) {
				t.Errorf("a refusal %d %s carries data", r.status, r.code())
			}
		}
	}

	shimLog, err := os.ReadFile(a.serve.LogPath)
	if err != nil {
		t.Fatal(err)
	}
	response, err = http.Get(a.serve.OperatorURL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	metrics, _ := io.ReadAll(response.Body)
	response.Body.Close()
	for name, text := range map[string]string{
		"the server's log": a.Logs(), "the shim's log": string(shimLog), "the metrics": string(metrics),
		"the health report": a.Health(context.Background()), "the quarantine": a.value("SELECT json_agg(q) FROM synchro.quarantine q"),
	} {
		if len(text) == 0 {
			t.Errorf("%s is empty", name)
		}
		for line := range strings.Lines(text) {
			for _, mark := range marks {
				if strings.Contains(line, mark) {
					t.Errorf("%s: %s", name, line)
				}
			}
		}
	}
}
