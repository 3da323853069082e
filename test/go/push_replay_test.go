package systest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"synchro/canonical"
	"synchro/client"
	"synchro/internal/pgtest"
)

// lossy passes requests on and drops the first answers, after the server has acted: it keeps what it dropped.
type lossy struct {
	*httptest.Server
	mu      sync.Mutex
	drop    int
	dropped []string
}

func newLossy(t testing.TB, target string, drop int) *lossy {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	l := &lossy{drop: drop}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.Clone(r.Context())
		q.URL.Scheme, q.URL.Host, q.RequestURI = to.Scheme, to.Host, ""
		response, err := plain.Do(q)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.drop > 0 {
			l.drop--
			l.dropped = append(l.dropped, string(body))
			panic(http.ErrAbortHandler) // closes the connection without an answer
		}
		for name, values := range response.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(response.StatusCode)
		_, _ = w.Write(body)
	}))
	t.Cleanup(l.Close)
	return l
}

// What a client does when it never learns what became of its batch: it sends the same bytes again.
func TestLostPushAnswerIsReplayed(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{})
	a.exec(counted)
	ada := a.synced("ada", "ada-1")

	t.Run("the same bytes get the same bytes", func(t *testing.T) {
		proxy := newLossy(t, a.serve.URL, 1)
		body := batch(t, ada, noteChange(ada, "insert", noteID(1), "", noteColumns{"owner": `"ada"`, "body": `"one"`}),
			noteChange(ada, "insert", noteID(2), "", noteColumns{"owner": `"ada"`, "body": `"two"`, "n": "-1"}))
		if r, err := send(context.Background(), proxy.URL, "ada", "push", body); err == nil {
			t.Fatalf("the answer was not lost: %d", r.status)
		}
		a.want("SELECT count(*) FROM app.written", "1")
		for range 3 {
			again := a.post("ada", "push", body)
			if again.status != http.StatusOK || again.body != proxy.dropped[0] {
				t.Fatalf("replay differs: %d %s", again.status, again.code())
			}
		}
		a.want("SELECT count(*) FROM app.written", "1")
		a.want("SELECT count(*) FROM synchro.push_batch", "1")
		a.want("SELECT accepted_write_epoch FROM synchro.client WHERE client_id = 'ada-1'", "1")
		other := strings.Replace(string(body), `"one"`, `"ONE"`, 1)
		if r := a.post("ada", "push", []byte(other)); r.status != http.StatusConflict || r.code() != "idempotency_conflict" {
			t.Errorf("another content under the same id: %d %s", r.status, r.code())
		}
		if r := a.post("bob", "push", body); r.status != http.StatusUnauthorized {
			t.Errorf("the batch of another user: %d %s", r.status, r.code())
		}
	})

	t.Run("the client repeats by itself", func(t *testing.T) {
		proxy := newLossy(t, a.serve.URL, 2)
		before := a.value("SELECT count(*) FROM app.written")
		direct := ada.Client
		defer func() { ada.Client = direct }()
		ada.Client = &client.Client{URL: proxy.URL, Token: bearer("ada"), Retry: direct.Retry}
		answer, err := ada.Push(context.Background(), []canonical.Mutation{
			mutation(ada, "insert", noteID(3), "", noteColumns{"owner": `"ada"`, "body": `"three"`})}, false)
		if err != nil || len(answer.Accepted) != 1 {
			t.Fatalf("push: %+v %v", answer, err)
		}
		if len(proxy.dropped) != 2 {
			t.Errorf("%d answers were lost", len(proxy.dropped))
		}
		a.want("SELECT count(*) - "+before+" FROM app.written", "1")
	})

	t.Run("many times at once", func(t *testing.T) {
		before := a.value("SELECT count(*) FROM app.written")
		epoch := a.value("SELECT accepted_write_epoch FROM synchro.client WHERE client_id = 'ada-1'")
		body := batch(t, ada, noteChange(ada, "insert", noteID(4), "", noteColumns{"owner": `"ada"`, "body": `"four"`}))
		answers := make([]reply, 12)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() { answers[i] = a.post("ada", "push", body) })
		}
		wg.Wait()
		for _, r := range answers {
			if r.status != http.StatusOK || r.body != answers[0].body {
				t.Errorf("an answer differs: %d %s", r.status, r.code())
			}
		}
		a.want("SELECT count(*) - "+before+" FROM app.written", "1")
		a.want("SELECT accepted_write_epoch - "+epoch+" FROM synchro.client WHERE client_id = 'ada-1'", "1")
	})

	t.Run("given up while it waits for a lock", func(t *testing.T) {
		before := a.value("SELECT count(*) FROM app.written")
		tx, err := a.Connect(t, "", "").Begin(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(context.Background(), "INSERT INTO app.note VALUES ($1, 'ada', 'in the way')", noteID(5)); err != nil {
			t.Fatal(err)
		}
		body := batch(t, ada, noteChange(ada, "insert", noteID(5), "", noteColumns{"owner": `"ada"`, "body": `"five"`}))
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		if r, err := send(ctx, a.serve.URL, "ada", "push", body); err == nil {
			t.Fatalf("the push did not wait: %d %s", r.status, r.code())
		}
		if err := tx.Rollback(context.Background()); err != nil {
			t.Fatal(err)
		}
		first := a.post("ada", "push", body)
		if again := a.post("ada", "push", body); first.status != http.StatusOK || again.body != first.body {
			t.Errorf("%d %s", first.status, first.code())
		}
		a.want("SELECT count(*) - "+before+" FROM app.written", "1")
	})

	t.Run("everybody sees each row once", func(t *testing.T) {
		a.materialized()
		a.wantRows(ada, "user:ada", 4)
		a.wantRows(a.synced("ada", "ada-2"), "user:ada", 4)
	})
}

// Requests of one client in parallel, some of them equal: every batch is executed once and nobody waits for ever.
func TestParallelPushesOfOneClient(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{})
	a.exec(counted)
	ada := a.synced("ada", "ada-1")
	bodies := make([][]byte, 20)
	for i := range bodies {
		bodies[i] = batch(t, ada, noteChange(ada, "insert", noteID(i), "", noteColumns{"owner": `"ada"`, "body": `"p"`}))
	}
	var wg sync.WaitGroup
	var refused atomic.Int32
	for range 3 {
		for _, body := range bodies {
			wg.Go(func() {
				for {
					r := a.post("ada", "push", body)
					if r.status == http.StatusServiceUnavailable && r.header.Get("Retry-After") != "" {
						continue
					}
					if r.status != http.StatusOK {
						refused.Add(1)
					}
					return
				}
			})
		}
	}
	wg.Wait()
	if refused.Load() > 0 {
		t.Errorf("%d requests were refused", refused.Load())
	}
	a.want("SELECT count(*) FROM app.written", "20")
	a.want("SELECT accepted_write_epoch FROM synchro.client WHERE client_id = 'ada-1'", "20")
	a.wantRows(ada, "user:ada", 20)
}
