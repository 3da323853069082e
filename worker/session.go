package worker

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
)

const queueShare = 6 // the queue's part of the memory limit is one in six

// session is one life of the stream: from connecting until something fails.
type session struct {
	cfg      Config
	report   func(State)
	single   pglogrepl.LSN // transactions that commit up to here are materialized alone
	streamed time.Duration

	returning map[int32]bool // relations of which deleted keys come back

	side   *pgconn.PgConn // heartbeats, flush positions, blocks
	apply  *pgconn.PgConn
	voice  *pgconn.PgConn // notifications
	stream *pgconn.PgConn // the walsender

	state      *progress
	heart      *heart
	ledger     *ledger
	news       *herald
	keys       *keyring
	pushes     chan struct{} // a push was materialized
	departures chan struct{} // a relation has left the registry
	replyNow   chan struct{} // the server asks for a status

	triggersDue bool          // the keeper's: some could not be dropped yet
	patience    time.Duration // how long the server may be left without a status
}

// fail is a place where a test may make the core fail.
func (s *session) fail(at string) error { return s.cfg.failAt(at) }

// run connects, finds or makes the slot, and streams. It returns nil after a block was lifted.
func (s *session) run(ctx context.Context) (err error) {
	s.report(Connecting)
	s.heart = &heart{limits: s.cfg.Limits}
	s.ledger, s.news = &ledger{}, newHerald()
	s.keys = &keyring{ctx: ctx, connect: func() (*pgconn.PgConn, error) { return s.connect(ctx, "synchro keys", nil) }}
	defer s.keys.close()
	s.pushes, s.departures, s.replyNow = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
	defer func() {
		for _, c := range []*pgconn.PgConn{s.stream, s.apply, s.voice, s.side} {
			closeConn(c)
		}
	}()
	if s.side, err = s.connectKeeper(ctx); err != nil {
		return err
	}
	if s.state, err = loadProgress(ctx, s.side); err != nil {
		return err
	}
	if err := s.state.checkIdentity(ctx, s.side); err != nil {
		return err
	}
	open, err := blocked(ctx, s.side)
	if err != nil {
		return err
	}
	if open {
		return s.awaitRelease(ctx)
	}
	err = s.serve(ctx)
	var bad *poison
	var again *replay
	if ctx.Err() != nil || errors.As(err, &again) || !errors.As(err, &bad) {
		return err
	}
	// Nothing of the batch is committed, and what was before it is. A new connection: the end of the session broke off whatever
	// the old ones were doing.
	for _, conn := range []**pgconn.PgConn{&s.stream, &s.apply, &s.side} {
		closeConn(*conn)
		*conn = nil
	}
	if s.side, err = s.connectKeeper(ctx); err != nil {
		return err
	}
	if err := block(ctx, s.side, s.state, bad); err != nil {
		return err
	}
	s.single = max(s.single, bad.commitLSN)
	return s.awaitRelease(ctx)
}

func (s *session) connect(ctx context.Context, name string, more map[string]string) (*pgconn.PgConn, error) {
	settings := map[string]string{"application_name": name}
	for k, v := range more {
		settings[k] = v
	}
	conn, err := connect(ctx, s.cfg, settings)
	if err != nil || majorVersion(conn) < 17 || more["replication"] != "" {
		return conn, err
	}
	if _, err := query(ctx, conn, "SELECT set_config('transaction_timeout', '0', false)"); err != nil {
		closeConn(conn)
		return nil, err
	}
	return conn, nil
}

func (s *session) connectKeeper(ctx context.Context) (*pgconn.PgConn, error) {
	return s.connect(ctx, "synchro keeper", map[string]string{"lock_timeout": "300ms", "synchronous_commit": "local"})
}

// serve opens the stream and runs the goroutines until one fails.
func (s *session) serve(ctx context.Context) (err error) {
	// Plans are made once, perhaps while the tables are still empty, and kept: they must reach rows by index.
	apply := map[string]string{
		"synchronous_commit": "off", "plan_cache_mode": "force_generic_plan",
		"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
	}
	if s.apply, err = s.connect(ctx, "synchro apply", apply); err != nil {
		return err
	}
	if s.voice, err = s.connect(ctx, "synchro notify", map[string]string{"lock_timeout": "1s", "synchronous_commit": "off"}); err != nil {
		return err
	}
	if s.stream, err = s.connect(ctx, "synchro stream", map[string]string{"replication": "database"}); err != nil {
		return err
	}
	if s.state.slot == "" {
		if err := s.bootstrap(ctx); err != nil {
			return err
		}
	}
	reg, err := loadRegistry(ctx, s.side, s.state.generation)
	if err != nil {
		return err
	}
	if err := s.keys.refresh(ctx, s.side); err != nil {
		return err
	}
	if err := s.checkDrift(ctx, s.side); err != nil {
		return err
	}
	fill, err := loadBackfill(ctx, s.side, reg)
	if err != nil {
		return err
	}
	if err := s.startStream(ctx); err != nil {
		return err
	}
	if err := s.checkAsync(ctx, s.side); err != nil {
		return err
	}
	tick(s.departures)
	s.report(Streaming)
	started := time.Now()
	err = s.flow(ctx, reg, fill)
	s.streamed = time.Since(started)
	return err
}

// flow runs receiver, planner and applier, and the helpers beside them.
func (s *session) flow(ctx context.Context, reg *registry, fill *backfill) error {
	var seed [16]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return err
	}
	limits := s.cfg.Limits()
	works := make(chan *work)
	q := newQueue(max(limits.MemoryBytes/queueShare, 1<<20))
	r := &receiver{
		conn: s.stream, queue: q, auth: authenticator{ring: s.keys}, skip: s.state.endLSN, streams: map[uint32]*txn{}, dir: s.cfg.TempDir,
		limit: int(min(limits.BatchMaxBytes, limits.MemoryBytes/queueShare)),
		idle:  func(lsn pglogrepl.LSN) { s.ledger.keepalive(lsn, q.pushed()) },
		reply: func() { tick(s.replyNow) },
	}
	m := newCompactor(s)
	r.compact = m.ask
	a := &applier{
		materializer: newMaterializer(newPipeline(s.apply), s.returning), cfg: s.cfg, works: works, ledger: s.ledger, state: s.state, single: s.single,
		news: s.news, heart: s.heart,
		pushed: func() { tick(s.pushes) }, left: func() { tick(s.departures) },
	}
	a.fill = fill
	a.setRegistry(reg)
	s.news.everything(s.state.commitLSN) // an earlier life may have ended before it announced its last batch
	p := &planner{
		x:     newIndexer(a.reg, s.keys, [2]uint64{binary.LittleEndian.Uint64(seed[:]), binary.LittleEndian.Uint64(seed[8:])}, s.single),
		queue: q, works: works, limits: s.cfg.Limits, single: s.single, skip: s.state.endLSN,
	}
	k := &keeper{s: s, conn: s.side}
	c, ctx := newCrew(ctx)
	c.start(func() error { return streamError(ctx, s.state, r.run(ctx)) })
	c.start(func() error { return p.run(ctx) })
	c.start(func() error { return a.run(ctx) })
	c.start(func() error { return k.run(ctx) })
	c.start(func() error { return m.run(ctx) })
	c.start(func() error { return s.news.run(ctx, s.voice) })
	c.start(func() error { return s.answer(ctx) })
	return c.wait()
}

// streamError makes an error of the walsender that will come again, a change that the server cannot decode, a block.
func streamError(ctx context.Context, state *progress, err error) error {
	if ctx.Err() != nil || errors.Is(err, errKeysUnread) || (transient(err) && !errors.Is(err, errMalformed)) {
		return err
	}
	return &poison{class: classDecode, commitLSN: state.endLSN, ordinal: -1, err: err}
}

// startStream checks the slot against what is materialized and starts streaming behind it.
func (s *session) startStream(ctx context.Context) error {
	if err := s.checkSlot(ctx); err != nil {
		return err
	}
	r, err := one(ctx, s.side, "SELECT setting FROM pg_settings WHERE name = 'wal_sender_timeout'")
	if err != nil {
		return err
	}
	s.patience = time.Second
	if timeout := time.Duration(r.int64(0)) * time.Millisecond; timeout > 0 {
		s.patience = min(s.patience, max(timeout/5, 10*time.Millisecond))
	}
	opts := pglogrepl.StartReplicationOptions{PluginArgs: []string{
		"proto_version '2'", "streaming 'on'", "messages 'true'", "publication_names " + quoteLiteral(quoteIdent(s.cfg.Publication)),
	}}
	// A slot behind progress skips what is done; one that has gone on its own was refused above.
	if err := pglogrepl.StartReplication(ctx, s.stream, quoteIdent(s.state.slot), s.state.endLSN, opts); err != nil {
		if sqlState(err) == "55006" {
			return fmt.Errorf("%w: %w", errSlotActive, err)
		}
		return fmt.Errorf("starting the stream: %w", err)
	}
	return nil
}

// checkSlot blocks when the stream cannot go on without a gap.
func (s *session) checkSlot(ctx context.Context) error {
	slot, err := loadSlot(ctx, s.side, s.state.slot)
	if err != nil {
		return err
	}
	if slot.exists && !slot.ours {
		return errSlotForeign
	}
	if !slot.usable(s.state) {
		return &poison{class: classSlotLost, commitLSN: s.state.endLSN, ordinal: -1}
	}
	return nil
}

// answer tells the server what may be forgotten: when asked, when it has changed, and now and then.
func (s *session) answer(ctx context.Context) error {
	var told pglogrepl.LSN
	last := time.Time{}
	timer := time.NewTicker(min(100*time.Millisecond, s.patience/4))
	defer timer.Stop()
	for {
		asked := false
		select {
		case <-s.replyNow:
			asked = true
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		acked, _ := s.ledger.position()
		since := time.Since(last)
		if !asked && (acked == told || since < s.patience/2) && since < s.patience {
			continue
		}
		told, last = acked, time.Now()
		if _, err := s.stream.Conn().Write(standbyStatus(acked, last)); err != nil {
			return fmt.Errorf("acknowledging: %w", err)
		}
	}
}

// standbyStatus is the message that acknowledges a position. It is written beside the receiver's reads, hence by hand.
func standbyStatus(lsn pglogrepl.LSN, now time.Time) []byte {
	b := binary.BigEndian.AppendUint32([]byte{'d'}, 4+34)
	b = append(b, pglogrepl.StandbyStatusUpdateByteID)
	for range 3 { // written, flushed, applied
		b = binary.BigEndian.AppendUint64(b, uint64(lsn))
	}
	b = binary.BigEndian.AppendUint64(b, uint64(now.UnixMicro()-946684800000000))
	return append(b, 0)
}
