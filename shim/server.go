package shim

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"synchro/protocol"
)

// Server serves the public and the operator listener.
type Server struct {
	cfg       Config
	auth      *authenticator
	db        database
	ready     *readiness
	metrics   *metrics
	admission *admission
	waiting   *admission // held requests
	octets    *admission // of large answers
	news      *news
	turns     chan struct{}   // held requests that may ask the database at once
	stopping  context.Context // ends when held requests must be answered
	stop      context.CancelFunc
	log       *slog.Logger
}

// New connects to the database. It fails when the configuration is invalid, and with ErrContract when the database has
// another version of the extension; a database that cannot be reached is no error: the server starts and is not ready.
func New(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	db, err := openDatabase(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if _, err := db.ready(ctx); errors.Is(err, ErrContract) {
		db.close()
		return nil, err
	} else if err != nil {
		cfg.Log.Warn("database not reachable at start", "sqlstate", sqlState(err), "network", networkFault(err))
	}
	s := newServer(cfg, db)
	go s.follow(s.stopping)
	return s, nil
}

func newServer(cfg Config, db database) *Server {
	s := &Server{
		cfg: cfg, auth: newAuthenticator(cfg), db: db, ready: &readiness{db: db}, metrics: newMetrics(),
		admission: newAdmission(cfg.MaxInFlight), waiting: newAdmission(cfg.MaxWaiting), octets: newAdmission(cfg.MaxAnswerOctets), news: newNews(),
		turns: make(chan struct{}, max(1, cfg.PoolSize/2)), log: cfg.Log,
	}
	s.stopping, s.stop = context.WithCancel(context.Background())
	return s
}

// Close releases the database connections.
func (s *Server) Close() {
	s.stop()
	s.db.close()
}

// Public is the handler of the public listener.
func (s *Server) Public() (http.Handler, error) {
	compress, err := gzhttp.NewWrapper(gzhttp.MinSize(1024))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for _, ep := range endpoints {
		mux.Handle("POST "+ep.path, compress(s.serve(ep)))
	}
	mux.HandleFunc("GET /ready", s.serveReady)
	return mux, nil
}

// Operator is the handler of the operator listener.
func (s *Server) Operator() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", s.serveReady)
	mux.Handle("GET /metrics", s.metrics.handler())
	return mux
}

// serve answers one route: credential, admission, intake, the database function.
func (s *Server) serve(ep *endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		status, held := s.exchange(w, r, ep)
		s.metrics.observe(ep.name, status, time.Since(start)-held)
	})
}

// exchange answers a request; held is how long it was kept waiting because its client preferred so.
func (s *Server) exchange(w http.ResponseWriter, r *http.Request, ep *endpoint) (status int, held time.Duration) {
	who, err := s.auth.identify(r)
	if err != nil {
		s.log.Info("credential refused", "route", ep.name, "reason", err.Error())
		return s.refuse(w, refusal(protocol.ErrAuthRequired)), 0
	}
	if !s.admission.enter(who.user) {
		return s.refuse(w, refusal(protocol.ErrRetryLater)), 0
	}
	leave := sync.OnceFunc(func() { s.admission.leave(who.user) })
	defer leave()
	body, err := intake(w, r, ep)
	if err != nil {
		return s.refuse(w, refused(err)), 0
	}
	// All of it is read. The limit would otherwise end the request: the connection is watched for the client's going away.
	http.NewResponseController(w).SetReadDeadline(time.Time{})
	if err := ep.check(body); err != nil {
		return s.refuseShape(w, r, ep, who, body, err), 0
	}
	mark := s.news.mark()
	a, err := s.ask(r.Context(), ep, who, body)
	if wait := preferredWait(r.Header, s.cfg.MaxWait); wait > 0 && ep.waits && err == nil && a.waitOn != nil && s.waiting.enter(who.user) {
		defer s.waiting.leave(who.user)
		leave()
		start := time.Now()
		a, err = s.hold(r.Context(), ep, who, body, a, mark, wait)
		held = time.Since(start)
		w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(wait/time.Second)))
	}
	if err != nil {
		return s.refuse(w, wireError(err)), held
	}
	if n := len(a.body); n > smallAnswer { // until the client has read it, which may be long
		if !s.octets.take(who.user, n) {
			return s.refuse(w, refusal(protocol.ErrRetryLater)), held
		}
		defer s.octets.give(who.user, n)
	}
	return s.write(w, a.status, a.body), held
}

// refuseShape answers a request whose shape is wrong. Whose client it is, and versions, come before the shape, and only the database knows
// them: it is asked with no more than what tells these, which it can only refuse.
func (s *Server) refuseShape(w http.ResponseWriter, r *http.Request, ep *endpoint, who identity, body []byte, shape error) int {
	if gates := protocol.Gates(body); gates != nil {
		a, err := s.ask(r.Context(), ep, who, gates)
		if err == nil && (a.status == http.StatusUnauthorized || a.status == http.StatusUpgradeRequired) {
			return s.write(w, a.status, a.body)
		}
	}
	return s.refuse(w, refused(shape))
}

// smallAnswer is the octets of an answer that the connection's buffers take in at once.
const smallAnswer = 64 << 10

// ask makes the database call; its errors are logged, but for those of a client that went away.
func (s *Server) ask(client context.Context, ep *endpoint, who identity, body []byte) (answer, error) {
	ctx, cancel := context.WithTimeout(client, s.cfg.RequestTimeout)
	defer cancel()
	a, err := s.db.call(ctx, ep, who, body)
	if err != nil && client.Err() == nil {
		s.log.Error("database call failed", "route", ep.name, "sqlstate", sqlState(err), "network", networkFault(err),
			"answer", wireError(err).Code.Name)
	}
	return a, err
}

var errIntake = errors.New("request refused at intake")

// intake reads a body within its limit; the database gets exactly these octets.
func intake(w http.ResponseWriter, r *http.Request, ep *endpoint) ([]byte, error) {
	if !plainJSON(r.Header) {
		return nil, errIntake
	}
	return protocol.ReadBody(http.MaxBytesReader(w, r.Body, ep.maxBody), ep.maxBody, r.ContentLength)
}

// plainJSON says whether a body is declared as JSON in UTF-8, and as nothing else.
func plainJSON(h http.Header) bool {
	types := h.Values("Content-Type")
	if len(types) != 1 {
		return false
	}
	kind, params, err := mime.ParseMediaType(types[0])
	charset := params["charset"]
	if err != nil || kind != "application/json" || (charset != "" && !strings.EqualFold(charset, "utf-8")) {
		return false
	}
	encoding := strings.Join(h.Values("Content-Encoding"), ",")
	return encoding == "" || strings.EqualFold(encoding, "identity")
}

// refused is the answer to an error of intake.
func refused(err error) *protocol.Error {
	if e := (*protocol.Error)(nil); errors.As(err, &e) {
		return e
	}
	return refusal(protocol.ErrInvalidRequest)
}

func (s *Server) refuse(w http.ResponseWriter, e *protocol.Error) int {
	return s.write(w, e.Status(), string(e.Body()))
}

func (s *Server) write(w http.ResponseWriter, status int, body string) int {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		h.Set("Retry-After", retryAfter)
	}
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.cfg.WriteTimeout))
	w.WriteHeader(status)
	io.WriteString(w, body)
	return status
}

// Run serves both listeners until ctx ends, then stops gracefully: no new connection, running requests finish, held ones are answered.
func (s *Server) Run(ctx context.Context, public, operator net.Listener) error {
	handler, err := s.Public()
	if err != nil {
		return err
	}
	servers := []*http.Server{s.httpServer(handler)}
	listeners := []net.Listener{public}
	if operator != nil {
		servers, listeners = append(servers, s.httpServer(s.Operator())), append(listeners, operator)
	}
	failed := make(chan error, len(servers))
	for i, server := range servers {
		go func() { failed <- server.Serve(listeners[i]) }()
	}
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.stop()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.RequestTimeout+s.cfg.WriteTimeout)
	defer cancel()
	for _, server := range servers {
		err = errors.Join(err, server.Shutdown(stop))
	}
	return err
}

func (s *Server) httpServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: s.cfg.ReadTimeout, ReadTimeout: s.cfg.ReadTimeout, WriteTimeout: s.cfg.RequestTimeout + s.cfg.WriteTimeout,
		IdleTimeout: s.cfg.IdleTimeout, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}
