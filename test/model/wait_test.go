package model

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"

	"pgregory.net/rapid"

	"synchro/internal/pgtest"
	"synchro/protocol"
)

// waiting is a pull that prefers to wait, and is held.
type waiting struct {
	d        *device
	q        *protocol.PullRequest
	began    time.Time
	cancel   context.CancelFunc
	done     chan struct{}
	answer   *reply // nil when the connection broke
	expected bool   // something happened that must end the wait
}

// patient sends waiting pulls, over connections of its own.
var patient = &http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}

// longWait is the wait of a pull that something else is to end, in seconds.
const longWait = 60

func (w *world) startWaiting(d *device, seconds int) *waiting {
	q, body := d.pullRequest(1000)
	ctx, cancel := context.WithCancel(context.Background())
	h := &waiting{d: d, q: q, began: time.Now(), cancel: cancel, done: make(chan struct{})}
	credential, err := token(d.user)(ctx)
	w.must(err)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.serve.URL+"/sync/pull", bytes.NewReader(body))
	w.must(err)
	r.Header.Set("Authorization", "Bearer "+credential)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Prefer", fmt.Sprintf("wait=%d", seconds))
	go func() {
		defer close(h.done)
		response, err := patient.Do(r)
		if err != nil {
			return
		}
		defer response.Body.Close()
		if answer, err := io.ReadAll(response.Body); err == nil {
			h.answer = &reply{response.StatusCode, response.Header, answer}
		}
	}()
	return h
}

func (h *waiting) answered() bool {
	select {
	case <-h.done:
		return true
	default:
		return false
	}
}

var waitingRequests = regexp.MustCompile(`(?m)^synchro_waiting_requests ([0-9]+)$`)

// held waits until the shim holds that many requests; some may have been answered instead.
func (w *world) held(count int, all []*waiting) {
	w.t.Helper()
	w.must(pgtest.WaitFor(context.Background(), settle, "held pulls", func() (bool, error) {
		if slices.ContainsFunc(all, (*waiting).answered) {
			return true, nil
		}
		response, err := http.Get(w.serve.OperatorURL + "/metrics")
		if err != nil {
			return false, nil
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		found := waitingRequests.FindSubmatch(text)
		if err != nil || found == nil {
			return false, nil
		}
		n, err := strconv.Atoi(string(found[1]))
		return n == count, err
	}))
}

// wait lets devices that are up to date wait for news, makes some, and sees who is told.
func (w *world) wait(t *rapid.T, first *device) {
	w.materialized()
	devices := []*device{first}
	for _, d := range w.introduced() {
		if d != first && chance(t, "waits too", 2) {
			devices = append(devices, d)
		}
	}
	for _, d := range devices {
		if !w.sync(d, 1000) {
			return
		}
	}
	kinds := []string{"write", "write", "write", "leave", "assign", "own", "alter", "alter", "expire", "rotate", "over"}
	if !w.calm {
		kinds = append(kinds, "shim", "core", "worker", "fast", "immediate", "listener")
	}
	kind := one(t, "news", kinds...)
	w.note("  news: %s", kind)
	w.count("waited for " + kind)
	if kind == "own" {
		w.waitForOwn(t, first)
		return
	}
	seconds := longWait
	if kind == "over" {
		seconds, devices = 1, devices[:1]
	}
	var all []*waiting
	for _, d := range devices {
		all = append(all, w.startWaiting(d, seconds))
	}
	defer func() {
		for _, h := range all {
			h.cancel()
		}
	}()
	w.held(len(all), all)
	for _, h := range all {
		if h.answered() && kind != "over" {
			w.fail("%s has nothing to hear and is not held: %v", h.d, h.answer)
		}
	}
	disturbed := w.happen(t, kind, all)
	for _, h := range all {
		w.ended(h, kind == "over", disturbed)
	}
	w.held(0, nil) // whoever went away is not held any more
	for _, h := range all {
		w.renew(h.d)
	}
}

// happen makes news and tells whom they concern. disturbed: answers may come early, empty or not at all.
func (w *world) happen(t *rapid.T, kind string, all []*waiting) (disturbed bool) {
	d := one(t, "concerned", all...).d
	before := w.seen()
	switch kind {
	case "over":
		return false
	case "alter":
		w.settleSteps(t, w.register(t, 1))
	case "leave":
		w.leave(t, d)
	case "assign":
		w.reassign(t, d)
		w.write(t, d)
	case "expire":
		w.must(w.exec("SELECT synchro.synchro_expire_client($1, $2)", d.user, d.id))
		d.expired = true
		w.write(t, d)
	case "rotate":
		var body []byte
		w.must(w.db.QueryRow(w.t.Context(), "SELECT synchro.synchro_rotate_keys()").Scan(&body))
		w.write(t, d)
	case "shim":
		w.must(w.restartShim())
		disturbed = true
	case "core":
		core, _, err := w.core()
		w.must(err)
		w.must(w.Kill(core))
		w.leave(t, d)
	case "worker", "fast", "immediate":
		w.kill(kind)
		disturbed = true
		before = w.seen()
		w.leave(t, d)
	case "listener":
		w.must(w.exec("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'synchro listen'"))
		w.leave(t, d)
	default:
		w.write(t, d)
	}
	w.materialized()
	for _, h := range all {
		h.expected = w.newsFor(h, before)
	}
	return disturbed
}

// sight is what there is to be told of at some time.
type sight struct {
	rows    frame
	members map[string]int
	schema  *catalog
}

func (w *world) seen() sight {
	return sight{w.now().shape.frame(w.rows, true), maps.Clone(w.members), w.now()}
}

// newsFor tells whether something has happened since that a waiting pull must tell.
func (w *world) newsFor(h *waiting, since sight) bool {
	is := w.seen()
	news := is.schema != since.schema
	for id := range h.q.Scopes {
		news = news || is.rows[id] != since.rows[id] || is.members[id] != since.members[id]
	}
	return news
}

// ended judges how the wait of a pull came to its end.
func (w *world) ended(h *waiting, over, disturbed bool) {
	d := h.d
	if h.expected || over {
		select {
		case <-h.done:
		case <-time.After(min(w.patience(), longWait*time.Second*3/4)):
			w.fail("%s waits and is not told", d)
		}
	}
	if !h.answered() {
		h.cancel()
		<-h.done
		if h.answer == nil {
			w.count("wait cancelled")
			return
		}
	}
	if h.answer == nil {
		if !disturbed {
			w.fail("the connection of %s, which waits, broke", d)
		}
		return
	}
	if h.answer.status == http.StatusServiceUnavailable && (disturbed || h.answer.code() == "capture_pending") {
		return
	}
	if applied := h.answer.header.Get("Preference-Applied"); applied == "" && !disturbed {
		w.fail("%s: the answer to a held pull does not tell of it: %d %s", d, h.answer.status, h.answer.body)
	}
	changes := w.counts["page"]
	w.pulled(d, h.q, []reply{*h.answer}, h.answer, delivered)
	if w.counts["page"] == changes { // refused, as it must be
		w.count("wait refused")
		return
	}
	p, err := protocol.DecodePullResponse(h.answer.body)
	w.must(err)
	empty := len(p.Changes)+len(p.Rebuild)+len(p.ScopeUpdates.Add)+len(p.ScopeUpdates.Remove) == 0
	switch {
	case over && !empty, over && time.Since(h.began) < time.Second:
		w.fail("%s: a wait of a second ended before it was over: %s", d, h.answer.body)
	case !over && empty && !disturbed:
		w.fail("%s: a wait ended without news: %s", d, h.answer.body)
	case empty:
		w.count("wait ended empty")
	default:
		w.count("wait ended with news")
	}
}

// waitForOwn waits for what the device itself has just pushed, which capture has not seen.
func (w *world) waitForOwn(t *rapid.T, d *device) {
	core, _, err := w.core()
	w.must(err)
	w.must(w.Signal(core, syscall.SIGSTOP))
	defer func() { _ = w.Signal(core, syscall.SIGCONT) }()
	accepted, before := d.accepted, w.seen()
	w.push(w.seal(d, []*mutation{w.likely(t, d)}, false), delivered, 0)
	if d.accepted == accepted {
		return
	}
	h := w.startWaiting(d, longWait)
	defer h.cancel()
	w.held(1, []*waiting{h})
	if h.answered() {
		w.fail("%s does not wait for its own push: %v", d, h.answer)
	}
	if !w.calm && chance(t, "killed", 3) {
		w.must(w.Kill(core))
	} else {
		w.must(w.Signal(core, syscall.SIGCONT))
	}
	w.materialized()
	h.expected = w.newsFor(h, before)
	w.ended(h, false, false)
	w.held(0, nil)
}
