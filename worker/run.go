package worker

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pglogrepl"

	"synchro/internal/rescue"
)

// Pauses after a transient failure, and how many in a row are met here before the caller may look for another way in.
const (
	minPause    = 50 * time.Millisecond
	maxPause    = 2 * time.Second
	maxFailures = 5
)

// Run serves the database until ctx ends (it then returns nil) or fails in a way that its caller should know of; trying
// again is right. A transaction that cannot be materialized blocks and is waited for in here; broken connections are
// made anew.
func Run(ctx context.Context, cfg Config, report func(State)) error {
	var single pglogrepl.LSN
	failures := 0
	returning := map[int32]bool{}
	for {
		s := &session{cfg: cfg, report: report, single: single, returning: returning}
		err := s.run(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if s.streamed > time.Second {
			failures = 0
		}
		var again *replay
		var panicked *rescue.PanicError
		var refused *refusal
		switch {
		case err == nil: // a block was lifted
			single, failures = max(single, s.single), 0
		case errors.As(err, &again):
			single = max(single, again.until)
			for _, rel := range again.returning {
				returning[rel] = true
			}
		case errors.As(err, &panicked), errors.As(err, &refused), !transient(err):
			return err
		default:
			if failures++; failures > maxFailures {
				return err
			}
			report(Connecting)
			select {
			case <-time.After(min(minPause<<failures, maxPause)):
			case <-ctx.Done():
				return nil
			}
		}
	}
}
