package shim

import (
	"context"
	"math/rand/v2"
	"time"
)

// reconnectSpread is the time over which everybody asks again after announcements may have been missed.
const reconnectSpread = 5 * time.Second

// hold keeps a request whose answer says nothing new until there is news, and then asks the database again; at the latest after wait,
// or when the credential expires or the server stops, it gives the last answer. Nothing but memory is held meanwhile. mark was
// taken before the answer was asked for.
func (s *Server) hold(ctx context.Context, ep *endpoint, who identity, body []byte, a answer, mark uint64, wait time.Duration) (answer, error) {
	until, cancel := context.WithDeadline(ctx, earlier(time.Now().Add(wait), who.expires))
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	s.metrics.waiting.Inc()
	defer s.metrics.waiting.Dec()
	for a.waitOn != nil && s.awaitNews(until, mark, a.waitOn) {
		// Few at a time: a thousand that wait for one scope must not keep everybody else from the database.
		select {
		case s.turns <- struct{}{}:
		case <-until.Done():
			return a, ctx.Err()
		}
		mark = s.news.mark()
		next, err := s.ask(ctx, ep, who, body)
		<-s.turns
		if err != nil {
			return next, err
		}
		a = next
	}
	return a, ctx.Err()
}

// awaitNews reports whether the database should be asked again; false when the time is over.
func (s *Server) awaitNews(until context.Context, mark uint64, on []int64) bool {
	w := s.news.wait(mark, on)
	defer s.news.leave(w)
	// Not all at the same time, though they came at the same time.
	look := time.NewTimer(s.cfg.RecheckInterval + rand.N(s.cfg.RecheckInterval/2+1))
	defer look.Stop()
	select {
	case <-w.woken:
		s.metrics.wakeups.WithLabelValues("news").Inc()
	case <-look.C:
		s.metrics.wakeups.WithLabelValues("recheck").Inc()
	case <-until.Done():
		return false
	}
	return true
}

// follow listens for the worker's announcements until the server is closed.
func (s *Server) follow(ctx context.Context) {
	s.db.listen(ctx, func() {
		for _, w := range s.news.everybody() {
			time.AfterFunc(rand.N(reconnectSpread), w.wake)
		}
	}, func(payload string) {
		s.news.announce(parseAnnouncement(payload))
	}, func(err error) {
		s.log.Warn("the connection for announcements was lost", "sqlstate", sqlState(err), "network", networkFault(err))
	})
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
