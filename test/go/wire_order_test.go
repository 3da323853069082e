package systest

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"synchro/internal/pgtest"
)

// members are those of a request, by name.
type members map[string]any

// fault is one thing wrong with a request, and what is answered when it is the first one.
type fault struct {
	what    string
	inflict func(q members)
	user    string // who asks instead
	client  string // whose request it is instead
	status  int
	code    string
	more    string // further members of the error, sorted
}

func set(name string, value any) func(members) { return func(q members) { q[name] = value } }

// Of several things that are wrong, the first in the order of the checks is answered, with exactly its members.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{Settings: []string{"synchro.min_client_version = '1.0.0'"}})
	d := a.device("ada", "ada-live")
	for _, id := range []string{"ada-live", "ada-gone"} {
		d = a.device("ada", id)
		if err := d.Connect(context.Background(), false); err != nil {
			t.Fatal(err)
		}
		a.post("ada", "pull", pullBody(t, d, 1, nil)) // confirms the generation
	}
	a.exec("SELECT synchro.synchro_retire_client('ada', 'ada-gone')")
	ref := members{"version": d.Manifest().Ref().Version, "hash": d.Manifest().Ref().Hash}
	other := members{"version": 99, "hash": strings.Repeat("0", 64)}
	mutation := members{"mutation_id": uuid.NewString(), "table": "x", "pk": members{"f": "k"}, "authored_schema": ref, "op": "delete", "base_version": "v",
		"client_version": "2024-02-29T12:34:56.123456Z"}
	used := uuid.NewString()
	envelope := members{"client_id": "ada-live", "client_generation": 1, "schema": ref}
	whole := func(more members) members {
		q := maps.Clone(envelope)
		maps.Copy(q, more)
		return q
	}
	push := whole(members{"batch_id": used, "mutations": []any{mutation}})
	if r := a.postMembers("ada", "push", push); r.status != http.StatusOK {
		t.Fatalf("%d %s", r.status, r.code())
	}
	second := maps.Clone(mutation)
	second["mutation_id"] = uuid.NewString()
	push["batch_id"], push["mutations"] = uuid.NewString(), []any{second}
	a.exec("INSERT INTO synchro.quarantine (stream_generation, commit_lsn, class) VALUES (1, '0/1', 'decode_failed')")

	credential := fault{what: "no credential", user: "-", status: 401, code: "auth_required"}
	binding := fault{what: "another user's client", user: "bob", status: 401, code: "auth_required"}
	shape := fault{what: "shape", inflict: set("user_id", "ada"), status: 400, code: "invalid_request"}
	retired := fault{what: "retired", client: "ada-gone", status: 409, code: "client_retired"}
	generation := fault{what: "generation", inflict: set("client_generation", 7), status: 409, code: "client_generation_expired", more: "current_client_generation"}
	schema := fault{what: "schema", inflict: set("schema", other), status: 422, code: "schema_mismatch", more: "current_schema received_schema"}
	blocked := fault{what: "nothing but a block", status: 503, code: "temporary_unavailable", more: "reason"}
	for route, c := range map[string]struct {
		sound  members
		faults []fault
	}{
		"connect": {whole(members{"platform": "test", "app_version": "1.0.0", "protocol_version": 3, "scope_set_version": 0, "known_scopes": members{}}), []fault{
			credential, binding,
			{what: "protocol", inflict: set("protocol_version", 4), status: 426, code: "upgrade_required", more: "received_protocol_version required_protocol_version"},
			{what: "application", inflict: set("app_version", "1.0.0-rc.1"), status: 426, code: "upgrade_required", more: "minimum_client_version received_client_version"},
			shape,
			{what: "schema reference", inflict: set("schema", members{"version": 1}), status: 400, code: "invalid_schema_reference", more: "received_schema"},
			retired,
			{what: "cursor", inflict: set("known_scopes", members{"user:ada": members{"cursor": "ic1.AAAA"}}), status: 400, code: "invalid_request"},
			{what: "nothing", status: 200},
		}},
		"push": {push, []fault{
			credential, binding, shape, retired,
			{what: "batch", inflict: set("batch_id", used), status: 409, code: "idempotency_conflict"},
			generation, schema, blocked,
		}},
		"pull": {whole(members{"scope_set_version": 1, "scopes": members{}, "limit": 10}), []fault{
			credential, binding, shape, retired, generation, schema,
			{what: "cursor", inflict: set("scopes", members{"user:ada": members{"cursor": "ic1.AAAA"}}), status: 400, code: "invalid_request"},
			{what: "scope", inflict: set("scopes", members{"user:bob": members{"cursor": nil}}), status: 400, code: "invalid_request"},
			blocked,
		}},
		"rebuild": {whole(members{"scope": "user:ada", "rebuild_id": uuid.NewString(), "cursor": nil, "limit": 10}), []fault{
			credential, binding, shape, retired, generation, schema,
			{what: "cursor", inflict: set("cursor", "rc1.AAAA"), status: 400, code: "invalid_request"},
			{what: "scope", inflict: set("scope", "user:bob"), status: 400, code: "invalid_request"},
			blocked,
		}},
	} {
		for i := range c.faults {
			t.Run(route+"/"+c.faults[i].what, func(t *testing.T) {
				q, user := maps.Clone(c.sound), "ada"
				for _, f := range slices.Backward(c.faults[i:]) { // the first one counts where two change the same
					if f.inflict != nil {
						f.inflict(q)
					}
					if f.user != "" {
						user = f.user
					}
					if f.client != "" {
						q["client_id"] = f.client
					}
				}
				a.wantError(t, a.postMembers(user, route, q), c.faults[i])
			})
		}
	}
}

// postMembers posts a request for a user; "-" has no credential.
func (a *app) postMembers(user, route string, q members) reply {
	a.t.Helper()
	body, err := json.Marshal(q)
	if err != nil {
		a.t.Fatal(err)
	}
	if user != "-" {
		return a.post(user, route, body)
	}
	response, err := plain.Post(a.serve.URL+"/sync/"+route, "application/json", strings.NewReader(string(body)))
	if err != nil {
		a.t.Fatal(err)
	}
	r, err := readReply(response)
	if err != nil {
		a.t.Fatal(err)
	}
	return r
}

// wantError checks status, code, members and headers of a refusal.
func (a *app) wantError(t *testing.T, r reply, f fault) {
	t.Helper()
	if r.status != f.status {
		t.Fatalf("%d %s, want %d %s", r.status, r.code(), f.status, f.code)
	}
	if f.status == http.StatusOK {
		return
	}
	var answer map[string]map[string]json.RawMessage
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil || len(answer) != 1 {
		t.Fatalf("%v: %s", err, r.body)
	}
	e := answer["error"]
	retryable := "false"
	if f.status == http.StatusServiceUnavailable {
		retryable = "true"
	}
	if string(e["code"]) != `"`+f.code+`"` || string(e["retryable"]) != retryable || len(e["message"]) < 3 || len(e["message"]) > 200 {
		t.Errorf("%s", r.body)
	}
	for _, usual := range []string{"code", "message", "retryable"} {
		delete(e, usual)
	}
	if got := strings.Join(slices.Sorted(maps.Keys(e)), " "); got != f.more {
		t.Errorf("members %q, want %q", got, f.more)
	}
	if again := r.header.Get("Retry-After"); (again != "") != (retryable == "true") {
		t.Errorf("Retry-After %q", again)
	}
	if r.header.Get("Content-Type") != "application/json" || (f.status == 401) != (r.header.Get("WWW-Authenticate") != "") {
		t.Errorf("%v", r.header)
	}
}
