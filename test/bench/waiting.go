package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"time"

	"synchro/internal/pgtest"
	"synchro/protocol"
)

const (
	waitingUsers = 100
	waitingEach  = 100
	waitRounds   = 100
)

// measureWaiting holds ten thousand pulls and times how soon one of them is answered after a row in its scope is materialized.
func measureWaiting(ctx context.Context, b *bench) error {
	if err := raiseFileLimit(waitingUsers*waitingEach + 1000); err != nil {
		return err
	}
	s, serve, err := servedStage(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	defer serve.Stop()
	if err := s.fill(ctx, "item", 0, 1000, 1); err != nil { // of user u0, who is told
		return err
	}
	if err := s.materialized(ctx); err != nil {
		return err
	}
	idle := rss(serve.PID(), false)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for u := 1; u <= waitingUsers; u++ {
		if err := s.crowd(ctx, serve, fmt.Sprintf("w%d", u)); err != nil {
			return err
		}
	}
	told, err := s.waiter(ctx, serve, "u0", "told")
	if err != nil {
		return err
	}
	err = pgtest.WaitFor(ctx, 5*time.Minute, "held pulls", func() (bool, error) {
		n, err := metric(serve, "synchro_waiting_requests")
		return n >= waitingUsers*waitingEach, err
	})
	if err != nil {
		return err
	}
	var seen, committed series
	for i := range waitRounds {
		arrived := make(chan error, 1)
		var at time.Time
		go func() { err := told.pull(ctx); at = time.Now(); arrived <- err }()
		if err := heldAgain(ctx, serve); err != nil {
			return err
		}
		began := time.Now()
		if err := s.exec(ctx, "UPDATE bench.item SET n = n + 1 WHERE id = $1", i); err != nil {
			return err
		}
		if err := s.materialized(ctx); err != nil {
			return err
		}
		visible := time.Now()
		if err := <-arrived; err != nil {
			return err
		}
		seen, committed = append(seen, max(0, at.Sub(visible).Seconds()*1000)), append(committed, at.Sub(began).Seconds()*1000)
	}
	b.figure("one of 10 000 waiting pulls, answered after materialization, p50", "ms", series{seen.quantile(0.5)}, 0, 0)
	b.figure("one of 10 000 waiting pulls, answered after materialization, p99", "ms", series{seen.quantile(0.99)}, 0, 50)
	b.figure("one of 10 000 waiting pulls, answered after the statement began, p99", "ms", series{committed.quantile(0.99)}, 0, 0)
	b.figure("memory of the shim for one waiting pull", "kB", series{(rss(serve.PID(), false) - idle) * 1024 / (waitingUsers * waitingEach)}, 0, 0)
	return nil
}

// heldAgain waits until the pull of the one who is told is held beside the others.
func heldAgain(ctx context.Context, serve *pgtest.Serve) error {
	return pgtest.WaitFor(ctx, time.Minute, "held pull", func() (bool, error) {
		n, err := metric(serve, "synchro_waiting_requests")
		return n > waitingUsers*waitingEach, err
	})
}

// waiting is a device that pulls, waiting, from where it stands.
type waiting struct {
	url, token string
	http       *http.Client
	request    protocol.PullRequest
}

// waiter makes a device at the end of its user's scope.
func (s *stage) waiter(ctx context.Context, serve *pgtest.Serve, user, id string) (*waiting, error) {
	session := newSession(serve, user, id)
	if err := session.Connect(ctx, false); err != nil {
		return nil, err
	}
	if err := session.Sync(ctx); err != nil {
		return nil, err
	}
	token, err := session.Client.Token(ctx)
	if err != nil {
		return nil, err
	}
	w := &waiting{url: serve.URL, token: token, http: &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: waitingEach}}}
	cursor, err := w.final(ctx, session.Manifest().Ref(), user, id)
	if err != nil {
		return nil, err
	}
	generation := int64(1)
	w.request = protocol.PullRequest{ClientID: id, ClientGeneration: &generation, Schema: session.Manifest().Ref(), ScopeSetVersion: 1,
		Scopes: map[string]protocol.ScopeCursor{"user:" + user: {Cursor: &cursor}}, Limit: protocol.MaxLimit}
	return w, nil
}

// final rebuilds the user's scope for its cursor.
func (w *waiting) final(ctx context.Context, schema protocol.SchemaRef, user, id string) (string, error) {
	generation := int64(1)
	q := protocol.RebuildRequest{ClientID: id, ClientGeneration: &generation, Schema: schema, Scope: "user:" + user,
		RebuildID: "11111111-1111-4111-8111-111111111111", Limit: protocol.MaxLimit}
	for {
		var body bytes.Buffer
		if err := post(ctx, w.http, w.url+"/sync/rebuild", w.token, &q, &body); err != nil {
			return "", err
		}
		var page struct {
			Cursor *string `json:"cursor"`
			Final  string  `json:"final_scope_cursor"`
		}
		if err := json.Unmarshal(body.Bytes(), &page); err != nil || page.Cursor == nil {
			return page.Final, err
		}
		q.Cursor = page.Cursor
	}
}

// pull waits once, and goes on to the cursor that it is given.
func (w *waiting) pull(ctx context.Context) error {
	data, err := json.Marshal(&w.request)
	if err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/sync/pull", bytes.NewReader(data))
	if err != nil {
		return err
	}
	q.Header = http.Header{"Authorization": {"Bearer " + w.token}, "Content-Type": {"application/json"}, "Prefer": {"wait=60"}}
	response, err := w.http.Do(q)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var page struct {
		Cursors map[string]string `json:"scope_cursors"`
	}
	if err := json.NewDecoder(response.Body).Decode(&page); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("pull: %s", response.Status)
	}
	for scope, cursor := range page.Cursors {
		w.request.Scopes[scope] = protocol.ScopeCursor{Cursor: &cursor}
	}
	return nil
}

// crowd makes a user's device pull again and again on many connections at once.
func (s *stage) crowd(ctx context.Context, serve *pgtest.Serve, user string) error {
	w, err := s.waiter(ctx, serve, user, user)
	if err != nil {
		return err
	}
	for range waitingEach {
		go func() {
			one := *w
			one.request.Scopes = map[string]protocol.ScopeCursor{"user:" + user: w.request.Scopes["user:"+user]}
			for ctx.Err() == nil {
				if one.pull(ctx) != nil {
					time.Sleep(time.Second)
				}
			}
		}()
	}
	return nil
}

// metric is a value of the shim's operator listener.
func metric(serve *pgtest.Serve, name string) (value float64, err error) {
	response, err := http.Get(serve.OperatorURL + "/metrics")
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	at := bytes.Index(text, []byte("\n"+name+" "))
	if at < 0 {
		return 0, nil
	}
	_, err = fmt.Sscanf(string(text[at+1:]), name+" %g", &value)
	return value, err
}

func raiseFileLimit(files uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur >= files {
		return err
	}
	limit.Cur, limit.Max = files, max(files, limit.Max)
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}
