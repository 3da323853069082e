package shim

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// readyFor is how long an answer of the database is reused, so that many probes cost one query.
const readyFor = 250 * time.Millisecond

// readiness asks the database at most once per readyFor; concurrent probes share one question.
type readiness struct {
	db    database
	mu    sync.Mutex
	asked time.Time
	ready bool
}

func (r *readiness) get(ctx context.Context) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.asked) < readyFor {
		return r.ready
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	ready, err := r.db.ready(ctx)
	r.ready, r.asked = err == nil && ready, time.Now()
	return r.ready
}

func (s *Server) serveReady(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if s.ready.get(r.Context()) {
		io.WriteString(w, `{"ready":true}`)
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	io.WriteString(w, `{"ready":false}`)
}
