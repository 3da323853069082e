package systest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"

	"synchro/client"
	"synchro/internal/pgtest"
	"synchro/protocol"
)

// metric is a value that the shim's operator listener shows, 0 when it is not there.
func (a *app) metric(name string) float64 {
	a.t.Helper()
	response, err := http.Get(a.serve.OperatorURL + "/metrics")
	if err != nil {
		a.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` ([0-9.e+]+)$`).FindSubmatch(text)
	if found == nil {
		return 0
	}
	value, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		a.t.Fatal(err)
	}
	return value
}

// held waits until the shim holds that many requests.
func (a *app) held(count int) {
	a.t.Helper()
	err := pgtest.WaitFor(context.Background(), settle, "held requests", func() (bool, error) {
		return a.metric("synchro_waiting_requests") == float64(count), nil
	})
	if err != nil {
		a.t.Fatalf("%v: %v are held, not %d", err, a.metric("synchro_waiting_requests"), count)
	}
}

// waiting is a request that prefers to wait.
func (a *app) waiting(user, route string, body []byte) <-chan reply {
	done := make(chan reply, 1)
	go func() {
		r, err := sendHeader(context.Background(), a.serve.URL, user, route, body, http.Header{"Prefer": {"wait=60"}})
		if err != nil {
			r.body = err.Error()
		}
		done <- r
	}()
	return done
}

// answer is what a waiting request gets, well before its wait is over.
func (a *app) answer(done <-chan reply) reply {
	a.t.Helper()
	select {
	case r := <-done:
		return r
	case <-time.After(30 * time.Second):
		a.t.Fatal("the held request is not answered")
		return reply{}
	}
}

// endPull is a pull of a device whose cursor is at the end of its own scope.
func (a *app) endPull(d *client.Session) []byte {
	a.t.Helper()
	user := d.ClientID[:3]
	a.materialized()
	p := a.post(user, "pull", pullBody(a.t, d, 1000, a.rebuildCursor(d))).page(a.t)
	if len(p.Changes) > 0 || p.HasMore {
		a.t.Fatal("the device is not at the end")
	}
	return pullBody(a.t, d, 1000, map[string]protocol.ScopeCursor{"user:" + user: scopeCursor(p.ScopeCursors["user:"+user])})
}

func TestWaitingPullIsAnsweredByNewsOfItsScopes(t *testing.T) {
	a := startApp(t, pgtest.Config{})
	a.insertNotes("ada", 1, 1)
	a.insertNotes("bob", 2, 1)
	ada, bob, cyd := a.synced("ada", "ada-1"), a.synced("bob", "bob-1"), a.synced("cyd", "cyd-1")
	news, quiet, first := a.waiting("ada", "pull", a.endPull(ada)), a.waiting("bob", "pull", a.endPull(bob)), a.waiting("cyd", "pull", a.endPull(cyd))
	a.held(3)

	a.insertNotes("ada", 3, 2)
	r := a.answer(news)
	if p := r.page(t); len(p.Changes) != 2 || r.header.Get("Preference-Applied") != "wait=60" {
		t.Errorf("%d changes, %q", len(p.Changes), r.header.Get("Preference-Applied"))
	}
	a.held(2)
	if asked := a.metric(`synchro_wakeups_total{reason="news"}`); asked != 1 {
		t.Errorf("%v requests asked the database for one piece of news", asked)
	}

	// The scope of cyd has no number yet: the first effect of a scope is announced as such.
	a.insertNotes("cyd", 5, 1)
	if p := a.answer(first).page(t); len(p.Changes) != 1 {
		t.Errorf("%d changes", len(p.Changes))
	}
	a.insertNotes("ada", 6, 1)
	a.held(1)
	select {
	case <-quiet:
		t.Error("answered without news")
	default:
	}

	// A stop answers at once.
	began := time.Now()
	if err := a.serve.Stop(); err != nil {
		t.Fatal(err)
	}
	if p := a.answer(quiet).page(t); len(p.Changes) != 0 || time.Since(began) > 20*time.Second {
		t.Errorf("%d changes, after %s", len(p.Changes), time.Since(began))
	}
}

func TestWaitingPullWaitsForItsOwnPush(t *testing.T) {
	a := startApp(t, pgtest.Config{})
	a.insertNotes("ada", 1, 1)
	ada, bob := a.synced("ada", "ada-1"), a.synced("bob", "bob-1")
	body, other := a.endPull(ada), a.endPull(bob)
	thaw := a.freeze()
	change := noteChange(ada, "insert", noteID(1), "", noteColumns{"owner": `"ada"`, "body": `"mine"`})
	if r := a.post("ada", "push", batch(t, ada, change)); r.status != 200 {
		t.Fatalf("push: %d %s", r.status, r.body)
	}
	if r := a.post("ada", "pull", body); r.code() != "capture_pending" {
		t.Fatalf("pull: %d %s", r.status, r.body)
	}
	pull := a.waiting("ada", "pull", body)
	rebuild := a.waiting("ada", "rebuild", rebuildBody(t, ada, "user:ada", "11111111-1111-4111-8111-111111111111", nil, 10))
	quiet := a.waiting("bob", "pull", other)
	a.held(3)
	thaw()
	if p := a.answer(pull).page(t); len(p.Changes) != 1 {
		t.Errorf("%d changes", len(p.Changes))
	}
	if p := a.answer(rebuild).page(t); len(p.Records) != 2 {
		t.Errorf("%d records", len(p.Records))
	}
	a.held(1)
	select {
	case <-quiet:
		t.Error("answered without news")
	default:
	}
}

func TestWaitingPullLearnsOfANewSchema(t *testing.T) {
	a := startApp(t, pgtest.Config{})
	done := a.waiting("ada", "pull", a.endPull(a.synced("ada", "ada-1")))
	a.held(1)
	a.exec(`BEGIN; CREATE TABLE app.tag (id int PRIMARY KEY, owner text); GRANT SELECT ON app.tag TO synchro_owner, synchro_worker;
		SELECT synchro.synchro_prepare_projection_view('app.tag', 'tag', '{id,owner}');
		CREATE FUNCTION app.tag_scopes(p_row_key int) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
		BEGIN ATOMIC SELECT 'user:' || n.owner FROM synchro_projection.tag n WHERE n.id = p_row_key; END;
		REVOKE EXECUTE ON FUNCTION app.tag_scopes(int) FROM PUBLIC;
		GRANT EXECUTE ON FUNCTION app.tag_scopes(int) TO synchro_worker;
		SELECT synchro.synchro_register_table('app.tag', 'app.tag_scopes', p_push_policy => 'read_only'); COMMIT`)
	if r := a.answer(done); r.status != 422 || r.code() != "schema_mismatch" {
		t.Errorf("answer %d %s", r.status, r.body)
	}
}

func TestWaitingPullLearnsOfABlock(t *testing.T) {
	a := startApp(t, pgtest.Config{})
	done := a.waiting("ada", "pull", a.endPull(a.synced("ada", "ada-1")))
	a.held(1)
	a.exec("SET synchro.ddl_guard = off; ALTER TABLE app.note DISABLE TRIGGER USER; INSERT INTO app.note (id, owner, body) VALUES (gen_random_uuid(), 'ada', 'without a fence')")
	if r := a.answer(done); r.status != 503 || r.code() != "temporary_unavailable capture_blocked" {
		t.Errorf("answer %d %s", r.status, r.body)
	}
}

// While the connection for announcements is away they are lost; afterwards everybody asks again.
func TestWaitingPullSurvivesALostListener(t *testing.T) {
	a := startApp(t, pgtest.Config{})
	done := a.waiting("ada", "pull", a.endPull(a.synced("ada", "ada-1")))
	a.held(1)
	a.exec("ALTER ROLE synchro_shim CONNECTION LIMIT 0") // committed before the connection goes
	a.exec("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'synchro listen'")
	a.insertNotes("ada", 1, 1)
	a.materialized()
	select {
	case r := <-done:
		t.Fatalf("answered without having heard anything: %s", r.body)
	case <-time.After(100 * time.Millisecond):
	}
	a.exec("ALTER ROLE synchro_shim CONNECTION LIMIT -1")
	if p := a.answer(done).page(t); len(p.Changes) != 1 {
		t.Errorf("%d changes", len(p.Changes))
	}
}

// Ten thousand that wait hold memory of the shim, and nothing of the database.
func TestTenThousandWait(t *testing.T) {
	const users, each = 100, 100
	a := startApp(t, pgtest.Config{})
	raiseFileLimit(t, users*each+1000)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: users * each}
	defer transport.CloseIdleConnections()
	for u := range users {
		user := fmt.Sprintf("u%02d", u)
		d := a.device(user, user+"-1")
		if err := d.Connect(ctx, false); err != nil {
			t.Fatal(err)
		}
		body := a.endPull(d)
		for range each {
			go func() { // like a client: what is answered is asked again
				for ctx.Err() == nil {
					r, err := sendBy(ctx, &http.Client{Transport: transport}, a.serve.URL, user, "pull", body, http.Header{"Prefer": {"wait=60"}})
					if err != nil || r.status != 200 {
						time.Sleep(time.Second)
					}
				}
			}()
		}
	}
	a.insertNotes("ada", 1, 1)
	ada := a.synced("ada", "ada-1")
	body := a.endPull(ada)
	err := pgtest.WaitFor(ctx, 5*time.Minute, "ten thousand held requests", func() (bool, error) {
		return a.metric("synchro_waiting_requests") >= users*each, nil
	})
	if err != nil {
		t.Fatalf("%v: %v", err, a.metric("synchro_waiting_requests"))
	}
	before := a.metric(`synchro_wakeups_total{reason="news"}`)
	const rounds = 20
	for i := range rounds {
		done := a.waiting("ada", "pull", body)
		time.Sleep(100 * time.Millisecond) // it is held by then, or is answered at once
		a.insertNotes("ada", 2+i, 1)
		a.materialized()
		visible := time.Now()
		p := a.answer(done).page(t)
		if len(p.Changes) != 1 {
			t.Fatalf("%d changes", len(p.Changes))
		}
		if took := time.Since(visible); took > 10*time.Second {
			t.Errorf("answered %s after it was seen materialized", took)
		}
		body = pullBody(t, ada, 1000, map[string]protocol.ScopeCursor{"user:ada": scopeCursor(p.ScopeCursors["user:ada"])})
	}
	t.Logf("the shim uses %s", a.value("SELECT pg_size_pretty($1::bigint)", int64(a.metric("process_resident_memory_bytes"))))
	if woken := a.metric(`synchro_wakeups_total{reason="news"}`) - before; woken > 2*rounds {
		t.Errorf("%v were woken by the news of one", woken)
	}
	if n, err := strconv.Atoi(a.value("SELECT count(*) FROM pg_stat_activity WHERE usename = 'synchro_shim'")); err != nil || n > 17 {
		t.Errorf("the shim has %d connections", n)
	}
}
