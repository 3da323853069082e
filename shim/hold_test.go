package shim

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// sequence answers one call after the other, the last answer for ever.
func sequence(answers ...answer) *fakeDatabase {
	var calls atomic.Int64
	return &fakeDatabase{answer: func() (answer, error) {
		return answers[min(int(calls.Add(1)), len(answers))-1], nil
	}}
}

var (
	silence = answer{status: 200, body: `{"changes":[]}`, waitOn: []int64{7}}
	tidings = answer{status: 200, body: `{"changes":[1]}`}
)

func prefer(value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Prefer", value) }
}

// held posts a pull that waits, and returns once it is held.
func held(t *testing.T, s *Server, h http.Handler, change func(*http.Request)) <-chan *httptest.ResponseRecorder {
	t.Helper()
	before := len(s.news.everybody())
	done := make(chan *httptest.ResponseRecorder, 1)
	go func() { done <- post(t, h, pullBody, change) }()
	for deadline := time.Now().Add(10 * time.Second); len(s.news.everybody()) == before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the request is not held")
		}
	}
	return done
}

func soon(t *testing.T, done <-chan *httptest.ResponseRecorder) *httptest.ResponseRecorder {
	t.Helper()
	select {
	case w := <-done:
		return w
	case <-time.After(10 * time.Second):
		t.Fatal("no answer")
		return nil
	}
}

func TestHeldPullIsAnsweredWhenItsScopeIsAnnounced(t *testing.T) {
	db := sequence(silence, silence, tidings)
	s, h, _ := testServer(t, db)
	done := held(t, s, h, prefer("wait=60"))
	s.news.announce(announcement{8})
	select {
	case <-done:
		t.Fatal("answered though another scope was announced")
	case <-time.After(20 * time.Millisecond):
	}
	s.news.announce(announcement{7}) // there is nothing yet: it goes on waiting
	for db.calls.Load() < 2 || len(s.news.everybody()) == 0 {
		time.Sleep(time.Millisecond)
	}
	s.news.announce(announcement{7})
	w := soon(t, done)
	if w.Code != 200 || w.Body.String() != tidings.body || w.Header().Get("Preference-Applied") != "wait=60" {
		t.Errorf("answer %d %s %v", w.Code, w.Body, w.Header())
	}
	if len(s.waiting.users) != 0 || len(s.admission.users) != 0 || len(s.news.everybody()) != 0 {
		t.Error("something is still held")
	}
}

func TestOnlySilenceIsHeld(t *testing.T) {
	for name, c := range map[string]struct {
		answer answer
		prefer string
	}{
		"news":            {tidings, "wait=60"},
		"no preference":   {silence, "respond-async"},
		"zero":            {silence, "wait=0"},
		"malformed":       {silence, "wait=soon"},
		"without a value": {silence, "wait"},
		"negative":        {silence, "wait=-1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, h, _ := testServer(t, sequence(c.answer))
			w := post(t, h, pullBody, prefer(c.prefer))
			if w.Code != 200 || w.Body.String() != c.answer.body || w.Header().Get("Preference-Applied") != "" {
				t.Errorf("answer %d %s %v", w.Code, w.Body, w.Header())
			}
		})
	}
}

func TestPreference(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"wait=10": 10, "WAIT=10": 10, " wait = 10 ": 10, `wait="10"`: 10, "wait=10; x=y": 10, "respond-async, wait=3": 3, "wait=3, wait=9": 3,
		"wait=61": 60, "wait=0": 0, "wait=1.5": 0, "wait=": 0, "waiting=3": 0, "": 0, "wait=99999999999999999999": 60, "wait=2147483648": 60,
		"wait": 0, "wait, wait=9": 0, "wait=+5": 0, "wait=-5": 0, "wait=5s": 0, "wait=007": 7, "wait=5 5": 0, `wait="5`: 0, `wait=""`: 0,
		// What is quoted is a value, whatever it looks like.
		`foo="a, wait=9, b", wait=3`: 3, `foo="a\", wait=9", wait=3`: 3, `foo="wait=9"`: 0, `foo; bar="x, wait=9"; baz, wait=3`: 3, `wait="1\0"`: 10,
		`foo="\\", wait=3`: 3, `foo=", wait=9`: 0, ",, ,wait=3": 3, `wait=3;wait=9`: 3, "foo;wait=9": 0, "\twait\t=\t3\t;x": 3,
	} {
		if got := preferredWait(http.Header{"Prefer": {value}}, time.Minute); got != want*time.Second {
			t.Errorf("%q: %s", value, got)
		}
	}
	if got := preferredWait(http.Header{"Prefer": {"return=minimal", "wait=5"}}, 4*time.Second); got != 4*time.Second {
		t.Errorf("second line, above the limit: %s", got)
	}
}

func TestHeldPullEndsInTime(t *testing.T) {
	_, h, _ := testServer(t, sequence(silence))
	start := time.Now()
	w := post(t, h, pullBody, prefer("wait=1"))
	if took := time.Since(start); w.Code != 200 || w.Body.String() != silence.body || took < time.Second || w.Header().Get("Preference-Applied") != "wait=1" {
		t.Errorf("answer %d %s after %s, %v", w.Code, w.Body, took, w.Header())
	}
}

// A credential that has expired meanwhile must not bring anything new.
func TestHeldPullEndsWithItsCredential(t *testing.T) {
	db := sequence(silence, tidings)
	s, h, _ := testServer(t, db)
	expires := time.Now().Add(1100 * time.Millisecond)
	signed := token(t, jwt.MapClaims{"sub": "alice", "exp": float64(expires.UnixNano()) / 1e9})
	done := held(t, s, h, func(r *http.Request) {
		prefer("wait=60")(r)
		r.Header.Set("Authorization", "Bearer "+signed)
	})
	if w := soon(t, done); w.Code != 200 || w.Body.String() != silence.body {
		t.Errorf("answer %d %s", w.Code, w.Body)
	}
	if time.Now().After(expires.Add(5 * time.Second)) {
		t.Error("held beyond the credential")
	}
}

func TestLostAnnouncementIsMadeUpFor(t *testing.T) {
	s, h, _ := testServer(t, sequence(silence, tidings))
	s.cfg.RecheckInterval = 50 * time.Millisecond
	if w := post(t, h, pullBody, prefer("wait=60")); w.Body.String() != tidings.body {
		t.Errorf("answer %s", w.Body)
	}
}

func TestHeldPullIsAnsweredWithTheErrorThatItMeets(t *testing.T) {
	blocked := answer{status: 503, body: `{"error":{"code":"temporary_unavailable"}}`}
	s, h, _ := testServer(t, sequence(silence, blocked))
	done := held(t, s, h, prefer("wait=60"))
	s.news.announce(nil)
	if w := soon(t, done); w.Code != 503 || w.Body.String() != blocked.body || w.Header().Get("Retry-After") == "" {
		t.Errorf("answer %d %s", w.Code, w.Body)
	}
}

func TestGracefulStopAnswersHeldRequestsAtOnce(t *testing.T) {
	s, h, _ := testServer(t, sequence(silence, tidings))
	done := held(t, s, h, prefer("wait=60"))
	s.Close()
	if w := soon(t, done); w.Code != 200 || w.Body.String() != silence.body {
		t.Errorf("answer %d %s", w.Code, w.Body)
	}
	if w := post(t, h, pullBody, prefer("wait=60")); w.Code != 200 {
		t.Errorf("held after the stop: %d", w.Code)
	}
}

func TestClientThatGoesAwayFreesItsPlace(t *testing.T) {
	s, h, _ := testServer(t, sequence(silence))
	server := httptest.NewServer(h)
	defer server.Close()
	ctx, leave := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	go func() {
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/sync/pull", strings.NewReader(pullBody))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+validToken(t))
		r.Header.Set("Prefer", "wait=60")
		_, err := http.DefaultClient.Do(r)
		failed <- err
	}()
	wait := func(n int) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); len(s.news.everybody()) != n; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d requests are held, not %d", len(s.news.everybody()), n)
			}
		}
	}
	wait(1)
	leave()
	wait(0)
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Within the leeway a credential is as good as before: were it not held, its client would ask again at once until the leeway is over.
func TestHeldPullOfACredentialInItsLeeway(t *testing.T) {
	s, h, _ := testServer(t, sequence(silence))
	s.cfg.Leeway = 3 * time.Second
	s.auth = newAuthenticator(s.cfg)
	signed := token(t, jwt.MapClaims{"sub": "alice", "exp": time.Now().Unix()})
	start := time.Now()
	w := post(t, h, pullBody, func(r *http.Request) {
		prefer("wait=60")(r)
		r.Header.Set("Authorization", "Bearer "+signed)
	})
	if took := time.Since(start); w.Code != 200 || took < 1500*time.Millisecond || took > 10*time.Second {
		t.Errorf("answer %d after %s", w.Code, took)
	}
}

// The limit on reading a request is none on holding it: it outlasts both limits of the connection.
func TestHeldPullOutlastsReadAndWriteTimeout(t *testing.T) {
	s, _, _ := testServer(t, sequence(silence))
	s.cfg.ReadTimeout, s.cfg.WriteTimeout, s.cfg.RequestTimeout = 300*time.Millisecond, 300*time.Millisecond, 300*time.Millisecond
	h, err := s.Public()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(h)
	server.Config = s.httpServer(h)
	server.Start()
	defer server.Close()
	r, _ := http.NewRequest(http.MethodPost, server.URL+"/sync/pull", strings.NewReader(pullBody))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+validToken(t))
	r.Header.Set("Prefer", "wait=2")
	start := time.Now()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if took := time.Since(start); response.StatusCode != 200 || took < 2*time.Second {
		t.Errorf("answer %d after %s", response.StatusCode, took)
	}
}

// Held requests give back their place among those that are served, and have a bound of their own.
func TestHeldRequestsAreBounded(t *testing.T) {
	s, h, _ := testServer(t, sequence(silence))
	s.waiting = newAdmission(8) // of which one user has two
	first := held(t, s, h, prefer("wait=60"))
	second := held(t, s, h, prefer("wait=60"))
	w := post(t, h, pullBody, prefer("wait=60"))
	if w.Code != 200 || w.Header().Get("Preference-Applied") != "" {
		t.Errorf("answer over the bound: %d %v", w.Code, w.Header())
	}
	s.stop()
	soon(t, first)
	soon(t, second)
}

// Woken together, they ask the database a few at a time.
func TestHerdTakesTurns(t *testing.T) {
	var asking, calls atomic.Int64
	var many atomic.Bool
	db := &fakeDatabase{answer: func() (answer, error) {
		if calls.Add(1) <= 20 {
			return silence, nil
		}
		if asking.Add(1) > 2 {
			many.Store(true)
		}
		time.Sleep(2 * time.Millisecond)
		asking.Add(-1)
		return tidings, nil
	}}
	s, h, _ := testServer(t, db)
	s.admission, s.turns = newAdmission(100), make(chan struct{}, 2)
	var all []<-chan *httptest.ResponseRecorder
	for range 20 {
		all = append(all, held(t, s, h, prefer("wait=60")))
	}
	s.news.announce(announcement{7})
	for _, done := range all {
		if w := soon(t, done); w.Body.String() != tidings.body {
			t.Errorf("answer %s", w.Body)
		}
	}
	if many.Load() {
		t.Error("more than two asked at once")
	}
}
