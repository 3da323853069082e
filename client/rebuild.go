package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"synchro/protocol"
)

// Rebuild fetches the snapshot of one scope and verifies it: every row digest,
// the order, and the scope digest. The next page travels while one is checked.
func (s *Session) Rebuild(ctx context.Context, id string) error {
	old := s.scopes[id]
	if old == nil {
		return fmt.Errorf("%w: scope is not assigned", protocol.ErrResponse)
	}
	const attempts = 5 // a registration or reset during a rebuild voids its session
	for attempt := 1; ; attempt++ {
		fresh := newScope(id, nil)
		err := s.rebuild(ctx, fresh)
		var e *protocol.Error
		if errors.As(err, &e) && e.Code.Name == protocol.ErrRebuildRestartRequired && attempt < attempts {
			continue
		}
		if err == nil {
			s.scopes[id] = fresh
		}
		return err
	}
}

func (s *Session) rebuild(ctx context.Context, sc *scope) error {
	start := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	pages := make(chan *protocol.RebuildResponse, 1)
	failed := make(chan error, 1)
	go func() {
		defer close(pages)
		failed <- s.fetchPages(ctx, sc.id, pages)
	}()
	err := s.takePages(sc, pages, start)
	cancel()
	for range pages { // lets the fetcher end
	}
	if fetchErr := <-failed; err == nil || errors.Is(err, errIncomplete) {
		if fetchErr != nil {
			err = fetchErr
		}
	}
	return err
}

var errIncomplete = fmt.Errorf("%w: the snapshot ends before its last page", protocol.ErrResponse)

// fetchPages follows the continuation to the last page.
func (s *Session) fetchPages(ctx context.Context, id string, pages chan<- *protocol.RebuildResponse) error {
	q := &protocol.RebuildRequest{ClientID: s.ClientID, ClientGeneration: s.generation, Schema: s.schema, Scope: id,
		RebuildID: uuid.NewString(), Limit: s.PageLimit}
	for {
		page, err := s.Client.Rebuild(ctx, q)
		if err != nil {
			return err
		}
		select {
		case pages <- page:
		case <-ctx.Done():
			return ctx.Err()
		}
		if !page.HasMore {
			return nil
		}
		q.Cursor = page.Cursor
	}
}

func (s *Session) takePages(sc *scope, pages <-chan *protocol.RebuildResponse, start time.Time) error {
	var last []byte
	for page := range pages {
		sc.stats.Pages++
		for i := range page.Records {
			var err error
			if last, err = s.takeRecord(sc, &page.Records[i], last); err != nil {
				return err
			}
		}
		sc.stats.Elapsed = time.Since(start)
		if s.OnProgress != nil {
			s.OnProgress(sc.id, sc.stats)
		}
		if page.HasMore {
			continue
		}
		digest, err := sc.digest(s.verifier.hash)
		if err != nil {
			return err
		}
		if digest != page.Checksum {
			return mismatch("scope digest differs from the snapshot's")
		}
		sc.cursor, sc.complete, sc.verified = &page.FinalCursor, true, digest
		sc.stats.Elapsed = time.Since(start)
		return nil
	}
	return errIncomplete
}

// takeRecord checks one row and that it follows the identity last, which it replaces.
func (s *Session) takeRecord(sc *scope, record *protocol.Row, last []byte) ([]byte, error) {
	row, err := s.verifier.row(record)
	if err != nil {
		return last, err
	}
	if row.tombstone {
		return last, mismatch("a snapshot holds a deleted row")
	}
	identity := append(append(s.scratch[:0], row.prefix...), row.key...)
	if last != nil && bytes.Compare(last, identity) >= 0 {
		return last, mismatch("snapshot rows are out of order or repeated")
	}
	s.scratch = last // the two buffers take turns
	sc.table(row.table, row.prefix).appendRow(row.key, row.row)
	sc.stats.Rows++
	sc.stats.Bytes += int64(len(record.Columns))
	return identity, nil
}
