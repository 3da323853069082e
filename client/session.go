package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"synchro/canonical"
	"synchro/protocol"
)

// ErrUnsupportedSchema says that the server cannot lead this client's schema
// to the current one without an explicit reset.
var ErrUnsupportedSchema = errors.New("schema is not supported any more")

// Session is one client: its generation, schema and scopes. It is not safe for
// concurrent use.
type Session struct {
	Client     *Client
	ClientID   string
	Platform   string
	AppVersion string
	PageLimit  int64 // rows of a page, 1 to 1000

	// OnProgress, if set, is told after every page of a rebuild.
	OnProgress func(scope string, stats Stats)

	generation *int64
	schema     protocol.SchemaRef
	setVersion int64
	verifier   *verifier
	scopes     map[string]*scope
	scratch    []byte
}

// NewSession makes a fresh client that the server has never met.
func NewSession(c *Client, clientID, platform, appVersion string) *Session {
	return &Session{Client: c, ClientID: clientID, Platform: platform, AppVersion: appVersion,
		PageLimit: protocol.MaxLimit, scopes: map[string]*scope{}}
}

// Manifest is the schema in force, nil before the first connect.
func (s *Session) Manifest() *canonical.Manifest {
	if s.verifier == nil {
		return nil
	}
	return s.verifier.manifest
}

// Scopes lists the assigned scopes in byte order.
func (s *Session) Scopes() []string {
	ids := make([]string, 0, len(s.scopes))
	for id := range s.scopes {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Stats tells what was received of a scope.
func (s *Session) Stats(id string) (stats Stats, known bool) {
	if sc := s.scopes[id]; sc != nil {
		return sc.stats, true
	}
	return Stats{}, false
}

// Rows is the number of live rows held of a scope.
func (s *Session) Rows(id string) int {
	if sc := s.scopes[id]; sc != nil {
		return sc.cardinality()
	}
	return 0
}

// Pending lists the scopes that need a rebuild, in byte order.
func (s *Session) Pending() []string {
	return slices.DeleteFunc(s.Scopes(), func(id string) bool { return s.scopes[id].complete })
}

// Connect introduces the client, installs the manifest it is told to, and
// adopts the assigned scopes. With reset a client in an unsupported schema
// starts over.
func (s *Session) Connect(ctx context.Context, reset bool) error {
	p, err := s.Client.Connect(ctx, &protocol.ConnectRequest{
		ClientID: s.ClientID, ClientGeneration: s.generation, Platform: s.Platform, AppVersion: s.AppVersion,
		ProtocolVersion: protocol.Version, SchemaReset: reset, Schema: s.schema, ScopeSetVersion: s.setVersion,
		KnownScopes: s.cursors(),
	})
	if err != nil {
		return err
	}
	s.generation = &p.ClientGeneration
	switch p.Schema.Action {
	case protocol.ActionNone:
		if s.verifier == nil || p.Schema.SchemaRef != s.schema {
			return fmt.Errorf("%w: no schema action, but the schema differs", protocol.ErrResponse)
		}
	case protocol.ActionReplace, protocol.ActionRebuildLocal:
		if err := s.install(p); err != nil {
			return err
		}
	case protocol.ActionUnsupported:
		return fmt.Errorf("%w: %s", ErrUnsupportedSchema, p.Schema.Reason)
	default:
		return fmt.Errorf("%w: unknown schema action", protocol.ErrResponse)
	}
	s.assign(p.Scopes, p.ScopeSetVersion)
	for id, cursor := range p.ScopeCursorUpdates {
		if sc := s.scopes[id]; sc != nil {
			sc.cursor = cursor
			sc.complete = sc.complete && cursor != nil
		}
	}
	return nil
}

// install replaces the manifest. Digests bind the schema and row contents are
// not kept, so a new schema means that every scope is rebuilt.
func (s *Session) install(p *protocol.ConnectResponse) error {
	v, err := newVerifier(p.SchemaDefinition)
	if err != nil {
		return err
	}
	if v.manifest.Ref() != p.Schema.SchemaRef {
		return fmt.Errorf("%w: the manifest is not the one named", protocol.ErrResponse)
	}
	changed := s.schema != p.Schema.SchemaRef
	s.verifier, s.schema = v, p.Schema.SchemaRef
	for id, sc := range s.scopes {
		if changed || slices.Contains(p.AffectedScopes, id) {
			sc.complete = false
		}
	}
	return nil
}

// assign applies a difference of the scope set.
func (s *Session) assign(delta protocol.ScopeDelta, version int64) {
	for _, id := range delta.Remove {
		delete(s.scopes, id)
	}
	for _, added := range delta.Add {
		s.scopes[added.ID] = newScope(added.ID, added.Cursor)
	}
	s.setVersion = version
}

// cursors presents the scopes. A cursor whose content is not held is not presented.
func (s *Session) cursors() map[string]protocol.ScopeCursor {
	out := make(map[string]protocol.ScopeCursor, len(s.scopes))
	for id, sc := range s.scopes {
		if sc.complete {
			out[id] = protocol.ScopeCursor{Cursor: sc.cursor}
		} else {
			out[id] = protocol.ScopeCursor{}
		}
	}
	return out
}

// NeedsConnect reports whether an answer asks the client to connect again: the tables have changed, or its generation has expired.
func NeedsConnect(err error) bool {
	var e *protocol.Error
	return errors.As(err, &e) && (e.Code.Name == protocol.ErrClientGenerationExpired || e.Code.Name == protocol.ErrSchemaMismatch)
}

// Sync brings every assigned scope up to date and verifies it: connect if
// needed, rebuild what needs it, then pull to the end.
func (s *Session) Sync(ctx context.Context) error {
	const rounds = 10 // assignment may change again and again while rebuilding
	for range rounds {
		err := s.round(ctx)
		if NeedsConnect(err) {
			if err := s.Connect(ctx, false); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if len(s.Pending()) == 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: scopes still ask for a rebuild after %d rounds", protocol.ErrResponse, rounds)
}

func (s *Session) round(ctx context.Context) error {
	if s.generation == nil {
		if err := s.Connect(ctx, false); err != nil {
			return err
		}
	}
	for _, id := range s.Pending() {
		if err := s.Rebuild(ctx, id); err != nil {
			return err
		}
	}
	_, err := s.Pull(ctx, 0)
	return err
}

// elapsed adds the time since start to the scope's account.
func (sc *scope) elapsed(start time.Time) { sc.stats.Elapsed += time.Since(start) }
