package client

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"synchro/protocol"
)

// Pulled tells what one pull brought.
type Pulled struct {
	Upserts int
	Deletes int
	Pages   int
	Added   []string // scopes
	Removed []string // scopes
	Rebuild []string // scopes that must be rebuilt now
}

// Empty tells whether nothing changed.
func (p *Pulled) Empty() bool {
	return p.Upserts+p.Deletes+len(p.Added)+len(p.Removed)+len(p.Rebuild) == 0
}

// Pull fetches changes to the end and verifies them: every row digest, and at
// the end the digest of every scope. With wait the first request may be held
// by the server until there is something to tell.
func (s *Session) Pull(ctx context.Context, wait time.Duration) (*Pulled, error) {
	if s.verifier == nil {
		return nil, fmt.Errorf("%w: pull before connect", protocol.ErrResponse)
	}
	done := &Pulled{}
	for {
		page, err := s.Client.Pull(ctx, &protocol.PullRequest{ClientID: s.ClientID, ClientGeneration: s.generation,
			Schema: s.schema, ScopeSetVersion: s.setVersion, Scopes: s.cursors(), Limit: s.PageLimit}, wait)
		if err != nil {
			return done, err
		}
		wait = 0
		if err := s.takePage(page, done); err != nil {
			return done, err
		}
		if !page.HasMore {
			return done, s.checkDigests(page.Checksums)
		}
	}
}

func (s *Session) takePage(page *protocol.PullResponse, done *Pulled) error {
	done.Pages++
	for i := range page.Changes {
		if err := s.takeChange(&page.Changes[i], done); err != nil {
			return err
		}
	}
	for id, cursor := range page.ScopeCursors {
		sc := s.scopes[id]
		if sc == nil {
			return fmt.Errorf("%w: cursor of a scope that was not asked for", protocol.ErrResponse)
		}
		sc.cursor = &cursor
	}
	for _, added := range page.ScopeUpdates.Add {
		done.Added = append(done.Added, added.ID)
	}
	done.Removed = append(done.Removed, page.ScopeUpdates.Remove...)
	s.assign(page.ScopeUpdates, page.ScopeSetVersion)
	for _, id := range page.Rebuild {
		if sc := s.scopes[id]; sc != nil {
			sc.complete = false
		}
		done.Rebuild = append(done.Rebuild, id)
	}
	return nil
}

func (s *Session) takeChange(change *protocol.Change, done *Pulled) error {
	sc := s.scopes[change.Scope]
	if sc == nil || !sc.complete {
		return fmt.Errorf("%w: change in a scope that was not asked for", protocol.ErrResponse)
	}
	var row checked
	var err error
	if change.Columns != nil {
		row, err = s.verifier.row(&change.Row)
		sc.stats.Rows++
		sc.stats.Bytes += int64(len(change.Columns))
	} else {
		row, s.scratch, err = s.verifier.key(&change.Row, s.scratch)
	}
	if err != nil {
		return err
	}
	if change.Columns != nil && row.tombstone != (change.Op == protocol.OpDelete) {
		return mismatch("operation and lifecycle of a row disagree")
	}
	sc.verified = ""
	table := sc.table(row.table, row.prefix)
	if change.Op == protocol.OpDelete {
		table.drop(row.key)
		done.Deletes++
		return nil
	}
	table.put(row.key, row.row)
	done.Upserts++
	return nil
}

// checkDigests compares the terminal checksums with what is held. They cover
// exactly the active scopes; those awaiting a rebuild hold nothing to compare.
func (s *Session) checkDigests(checksums map[string]string) error {
	if len(checksums) != len(s.scopes) {
		return mismatch("terminal checksums do not cover exactly the active scopes")
	}
	var stale []*scope
	for id, sc := range s.scopes {
		want, given := checksums[id]
		if !given {
			return mismatch("terminal checksums do not cover exactly the active scopes")
		}
		if sc.complete && sc.verified != want {
			stale = append(stale, sc)
		}
	}
	return each(stale, func(sc *scope) error { return sc.check(s.verifier.hash, checksums[sc.id]) })
}

// each does something with every scope, on all processors, and returns one of the errors.
func each(scopes []*scope, do func(*scope) error) error {
	var next atomic.Int64
	errs := make([]error, min(len(scopes), runtime.GOMAXPROCS(0)))
	work := func(worker int) {
		for errs[worker] == nil {
			i := int(next.Add(1)) - 1
			if i >= len(scopes) {
				return
			}
			errs[worker] = do(scopes[i])
		}
	}
	var others sync.WaitGroup
	for worker := 1; worker < len(errs); worker++ {
		others.Go(func() { work(worker) })
	}
	if len(errs) > 0 {
		work(0)
	}
	others.Wait()
	return cmp.Or(errs...)
}
