package shim

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	listenPing    = 20 * time.Second // a connection on which nothing came for so long is tried
	listenTimeout = 10 * time.Second
	listenAgain   = 5 * time.Second // longest pause between two attempts to connect
)

// listen keeps one connection on the worker's channel until ctx ends. begin is called whenever announcements may have been missed
// and come again from now on; hear with each payload.
func (p *postgres) listen(ctx context.Context, begin func(), hear func(payload string), lost func(error)) {
	for pause := 100 * time.Millisecond; ctx.Err() == nil; pause = min(2*pause, listenAgain) {
		started := time.Now()
		err := p.listenOnce(ctx, begin, hear)
		if ctx.Err() != nil {
			return
		}
		lost(err)
		if time.Since(started) > listenAgain {
			pause = 100 * time.Millisecond
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
		}
	}
}

func (p *postgres) listenOnce(ctx context.Context, begin func(), hear func(string)) error {
	opening, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(opening, p.listener)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(opening))
	if _, err := conn.Exec(opening, "LISTEN "+newsChannel); err != nil {
		return err
	}
	begin()
	for {
		heard, err := nextNotification(ctx, conn)
		if err != nil {
			return err
		}
		if heard != nil && heard.Channel == newsChannel {
			hear(heard.Payload)
		}
	}
}

// nextNotification waits for the next notification; nil when a try of the silent connection went well.
func nextNotification(ctx context.Context, conn *pgx.Conn) (*pgconn.Notification, error) {
	patience, cancel := context.WithTimeout(ctx, listenPing)
	heard, err := conn.WaitForNotification(patience)
	cancel()
	if err == nil || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return heard, err
	}
	trying, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	return nil, conn.Ping(trying)
}
