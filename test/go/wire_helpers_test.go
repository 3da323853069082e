package systest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"synchro/canonical"
	"synchro/client"
	"synchro/protocol"
)

// reply is an answer as it came over the wire.
type reply struct {
	status int
	header http.Header
	body   string
}

// code is the error code of a refusal, with its reason where there is one.
func (r reply) code() string {
	var e struct {
		Error struct{ Code, Reason string }
	}
	_ = json.Unmarshal([]byte(r.body), &e)
	if e.Error.Reason != "" {
		return e.Error.Code + " " + e.Error.Reason
	}
	return e.Error.Code
}

// page is an answered page of pull or rebuild, as far as the tests look at it.
type page struct {
	Changes      []map[string]json.RawMessage `json:"changes"`
	Records      []map[string]json.RawMessage `json:"records"`
	ScopeCursors map[string]string            `json:"scope_cursors"`
	Cursor       *string                      `json:"cursor"`
	FinalCursor  *string                      `json:"final_scope_cursor"`
	Checksum     json.RawMessage              `json:"checksum"`
	HasMore      bool                         `json:"has_more"`
}

func (r reply) page(t testing.TB) page {
	t.Helper()
	var p page
	if err := json.Unmarshal([]byte(r.body), &p); err != nil || r.status != http.StatusOK {
		t.Fatalf("no page: %d %s %v", r.status, r.code(), err)
	}
	return p
}

// plain sends requests as they are: no retries, no compression.
var plain = &http.Client{Timeout: settle, Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 32}}

// send posts exact bytes for a user; an error means that there was no answer.
func send(ctx context.Context, base, user, route string, body []byte) (reply, error) {
	return sendHeader(ctx, base, user, route, body, nil)
}

// sendHeader is send with further header fields.
func sendHeader(ctx context.Context, base, user, route string, body []byte, more http.Header) (reply, error) {
	return sendBy(ctx, plain, base, user, route, body, more)
}

func sendBy(ctx context.Context, by *http.Client, base, user, route string, body []byte, more http.Header) (reply, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/sync/"+route, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	token, err := bearer(user)(ctx)
	if err != nil {
		return reply{}, err
	}
	maps.Copy(q.Header, more)
	q.Header.Set("Authorization", "Bearer "+token)
	q.Header.Set("Content-Type", "application/json")
	response, err := by.Do(q)
	if err != nil {
		return reply{}, err
	}
	return readReply(response)
}

func readReply(response *http.Response) (reply, error) {
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, string(answer)}, err
}

// post is send to the shim of the application, which must answer.
func (a *app) post(user, route string, body []byte) reply {
	a.t.Helper()
	r, err := send(context.Background(), a.serve.URL, user, route, body)
	if err != nil {
		a.t.Fatal(err)
	}
	return r
}

// value returns the text of a query's one value.
func (a *app) value(sql string, args ...any) string {
	a.t.Helper()
	var v *string
	if err := a.db.QueryRow(context.Background(), "SELECT ("+sql+")::text", args...).Scan(&v); err != nil {
		a.t.Fatalf("%v\n%s", err, sql)
	}
	if v == nil {
		return "NULL"
	}
	return *v
}

func (a *app) want(sql, want string) {
	a.t.Helper()
	if got := a.value(sql); got != want {
		a.t.Errorf("%s: %s, want %s", sql, got, want)
	}
}

// noteChange is a mutation of app.note by human names, as mutation makes it, under an id of its own.
func noteChange(d *client.Session, op, id, base string, columns noteColumns) canonical.Mutation {
	m := mutation(d, op, id, base, columns)
	m.ID = uuid.NewString()
	return m
}

// batch encodes a batch of a device's first generation, to be sent as often as a test likes.
func batch(t testing.TB, d *client.Session, mutations ...canonical.Mutation) []byte {
	t.Helper()
	q := protocol.PushRequest{Batch: canonical.Batch{ClientID: d.ClientID, Generation: 1, ID: uuid.NewString(), Schema: d.Manifest().Ref()}}
	for _, m := range mutations {
		m.Authored = d.Manifest().Ref()
		m.ClientVersion = time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
		q.Mutations = append(q.Mutations, m)
	}
	body, err := q.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// pullBody encodes a pull of a device's first generation.
func pullBody(t testing.TB, d *client.Session, limit int64, cursors map[string]protocol.ScopeCursor) []byte {
	t.Helper()
	generation := int64(1)
	q := protocol.PullRequest{ClientID: d.ClientID, ClientGeneration: &generation, Schema: d.Manifest().Ref(), ScopeSetVersion: 1,
		Scopes: cursors, Limit: limit}
	body, err := q.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// rebuildBody encodes a request for a page of a rebuild of a device's first generation.
func rebuildBody(t testing.TB, d *client.Session, scope, id string, cursor *string, limit int64) []byte {
	t.Helper()
	generation := int64(1)
	q := protocol.RebuildRequest{ClientID: d.ClientID, ClientGeneration: &generation, Schema: d.Manifest().Ref(), Scope: scope,
		RebuildID: id, Cursor: cursor, Limit: limit}
	body, err := q.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// rebuildCursor is a cursor of the device's user's scope, from a rebuild of its own.
func (a *app) rebuildCursor(d *client.Session) map[string]protocol.ScopeCursor {
	a.t.Helper()
	user := d.ClientID[:3]
	id, scope := uuid.NewString(), "user:"+user
	var cursor *string
	for {
		p := a.post(user, "rebuild", rebuildBody(a.t, d, scope, id, cursor, 1000)).page(a.t)
		if !p.HasMore {
			return map[string]protocol.ScopeCursor{scope: {Cursor: p.FinalCursor}}
		}
		cursor = p.Cursor
	}
}

func scopeCursor(cursor string) protocol.ScopeCursor { return protocol.ScopeCursor{Cursor: &cursor} }

// counted makes a table that counts what is written to app.note, by whomever.
const counted = `
CREATE TABLE app.written (n bigint GENERATED ALWAYS AS IDENTITY, op text NOT NULL, id uuid NOT NULL);
GRANT INSERT ON app.written TO PUBLIC;
CREATE FUNCTION app.count_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO app.written (op, id) VALUES (TG_OP, coalesce(NEW.id, OLD.id));
  RETURN NULL;
END $$;
CREATE TRIGGER counted AFTER INSERT OR UPDATE OR DELETE ON app.note FOR EACH ROW EXECUTE FUNCTION app.count_write();`

// freeze stops the core without ending it; the function returned lets it go on.
func (a *app) freeze() (thaw func()) {
	a.t.Helper()
	pid := awaitWorking(a.t, a.Cluster).CorePID
	if err := a.Signal(pid, syscall.SIGSTOP); err != nil {
		a.t.Fatal(err)
	}
	frozen := true
	thaw = func() {
		if frozen {
			frozen = false
			_ = a.Signal(pid, syscall.SIGCONT)
		}
	}
	a.t.Cleanup(thaw)
	return thaw
}

func noteID(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i) }

// raiseFileLimit lets this process have that many open files.
func raiseFileLimit(t testing.TB, files uint64) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Cur >= files {
		return
	}
	limit.Cur, limit.Max = files, max(files, limit.Max)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatalf("at most %d open files are allowed: %v", limit.Cur, err)
	}
}
