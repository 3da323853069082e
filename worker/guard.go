package worker

import (
	"context"
	"sync"

	"synchro/internal/rescue"
)

// crew is a group of goroutines: the first that fails, or panics, ends all.
type crew struct {
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	once   sync.Once
	err    error
}

func newCrew(ctx context.Context) (*crew, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	return &crew{cancel: cancel}, ctx
}

// start is the only way a goroutine of the core begins.
func (c *crew) start(fn func() error) {
	c.wg.Add(1)
	rescue.Go(fn, func(err error) {
		if err != nil {
			c.once.Do(func() {
				c.err = err
				c.cancel(err)
			})
		}
		c.wg.Done()
	})
}

// wait returns the first error once all have ended.
func (c *crew) wait() error {
	c.wg.Wait()
	c.cancel(nil)
	return c.err
}
