package client

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"synchro/canonical"
	"synchro/protocol"
)

// Push sends one batch of mutations under fresh ids and checks the answer: each
// mutation has exactly one outcome, in request order, and carried rows hash right.
// Missing mutation ids, authored schemas and client versions are filled in.
func (s *Session) Push(ctx context.Context, mutations []canonical.Mutation, atomic bool) (*protocol.PushResponse, error) {
	if s.verifier == nil || s.generation == nil {
		return nil, fmt.Errorf("%w: push before connect", protocol.ErrResponse)
	}
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	q := &protocol.PushRequest{Batch: canonical.Batch{ClientID: s.ClientID, Generation: *s.generation,
		ID: uuid.NewString(), Schema: s.schema, Atomic: atomic}}
	for _, m := range mutations {
		if m.ID == "" {
			m.ID = uuid.NewString()
		}
		if m.Authored == (canonical.SchemaRef{}) {
			m.Authored = s.schema
		}
		if m.ClientVersion == "" {
			m.ClientVersion = now
		}
		q.Mutations = append(q.Mutations, m)
	}
	if err := q.Validate(); err != nil {
		return nil, err
	}
	p, err := s.Client.Push(ctx, q)
	if err != nil {
		return nil, err
	}
	return p, s.checkOutcomes(q, p)
}

func (s *Session) checkOutcomes(q *protocol.PushRequest, p *protocol.PushResponse) error {
	if p.BatchID != q.ID || len(p.Accepted)+len(p.Rejected) != len(q.Mutations) {
		return fmt.Errorf("%w: outcomes do not partition the batch", protocol.ErrResponse)
	}
	place := make(map[string]int, len(q.Mutations))
	for i, m := range q.Mutations {
		place[m.ID] = i
	}
	for _, list := range [][]protocol.Outcome{p.Accepted, p.Rejected} {
		last := -1
		for i := range list {
			at, known := place[list[i].MutationID]
			if !known || at <= last {
				return fmt.Errorf("%w: outcomes do not partition the batch in order", protocol.ErrResponse)
			}
			if !sameRow(&q.Mutations[at], &list[i].Row) {
				return fmt.Errorf("%w: an outcome names another row", protocol.ErrResponse)
			}
			delete(place, list[i].MutationID)
			last = at
			if list[i].Row.Columns == nil || list[i].OutcomeSchema != s.schema {
				continue
			}
			if _, err := s.verifier.row(&list[i].Row); err != nil {
				return err
			}
		}
	}
	return nil
}

// sameRow compares what identifies the rows, whatever the spelling of the key.
func sameRow(m *canonical.Mutation, row *protocol.Row) bool {
	sent, err := canonical.Canonicalize(m.Key.JSON)
	if err != nil {
		return false
	}
	echoed, err := canonical.Canonicalize(row.Key)
	return err == nil && m.TableID == row.Table && m.Key.FieldID == row.KeyField && bytes.Equal(sent, echoed)
}
