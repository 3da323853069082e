package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"synchro/protocol"
)

// Retry repeats requests that failed on the way or with a retryable error.
type Retry struct {
	Attempts int           // in all; less than 2 means never again
	Base     time.Duration // first pause, doubled each time
	Max      time.Duration // longest pause; a longer Retry-After of the server wins
	// OnWait, if set, is told about each pause.
	OnWait func(err error, pause time.Duration)
}

// DefaultRetry rides out a restart of the server.
var DefaultRetry = Retry{Attempts: 8, Base: 100 * time.Millisecond, Max: 5 * time.Second}

func (r Retry) do(ctx context.Context, try func() error) error {
	for attempt := 1; ; attempt++ {
		err := try()
		if err == nil || attempt >= r.Attempts || !repeatable(err) || ctx.Err() != nil {
			return err
		}
		pause := r.pause(attempt, err)
		if r.OnWait != nil {
			r.OnWait(err, pause)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, ctx.Err())
		case <-timer.C:
		}
	}
}

func repeatable(err error) bool {
	return errors.Is(err, ErrTransport) || protocol.Retryable(err)
}

// pause grows exponentially, with jitter so that clients of a restarted server spread out.
func (r Retry) pause(attempt int, err error) time.Duration {
	pause := min(r.Base<<min(attempt-1, 20), r.Max)
	if pause > 0 {
		pause = pause/2 + rand.N(pause/2+1)
	}
	var e *protocol.Error
	if errors.As(err, &e) && e.RetryAfter > pause {
		pause = e.RetryAfter
	}
	return pause
}
