package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"synchro/canonical"
	"synchro/protocol"
)

// fake is a server with one table, honest unless a test bends it. Its digests
// come from the canonical package, which has vectors of its own.
type fake struct {
	t        testing.TB
	mu       sync.Mutex
	manifest *canonical.Manifest
	table    *canonical.Table
	scopes   map[string]map[string]string // scope -> key -> value
	changes  []fakeChange
	version  int
	pageSize int
	encoding string
	requests []string // routes in order

	bendRecord   func(n int, record map[string]any)             // before a record leaves
	bendPage     func(route string, body map[string]any)        // before an answer leaves
	bendResponse func(w http.ResponseWriter, n int) (done bool) // n counts requests from 1
}

type fakeChange struct {
	scope, key string
	deleted    bool
}

func newFake(t testing.TB) *fake {
	m := &canonical.Manifest{SchemaVersion: 1, TransitionClass: canonical.Initial, CompatibilityFloor: 1,
		Tables: []canonical.TableDef{{TableID: "tbl", RelationID: "rel", Name: "note", Composition: canonical.SingleScope,
			PrimaryKeyFieldID: "id", Fields: []canonical.FieldDef{
				{FieldID: "id", Name: "id", Type: "string"},
				{FieldID: "value", Name: "value", Type: "string", Nullable: true, Writable: true},
			}}}}
	if err := m.Seal(); err != nil {
		t.Fatal(err)
	}
	tables, err := m.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	return &fake{t: t, manifest: m, table: tables["tbl"], scopes: map[string]map[string]string{}, pageSize: 3}
}

func (f *fake) session() *Session {
	server := httptest.NewServer(f)
	f.t.Cleanup(server.Close)
	return NewSession(&Client{URL: server.URL, Token: func(context.Context) (string, error) { return "secret", nil }},
		"client", "linux", "1.0.0")
}

func (f *fake) set(scope, key, value string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.scopes[scope] == nil {
		f.scopes[scope] = map[string]string{}
	}
	f.scopes[scope][key] = value
	f.changes = append(f.changes, fakeChange{scope, key, false})
}

func (f *fake) remove(scope, key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.scopes[scope], key)
	f.changes = append(f.changes, fakeChange{scope, key, true})
}

func (f *fake) row(key, value string) (columns map[string]any, digest [canonical.HashSize]byte) {
	columns = map[string]any{"id": key, "value": value}
	raw, _ := json.Marshal(columns)
	if err := f.table.RowDigest(&digest, nil, raw, "v-"+key); err != nil {
		f.t.Error(err)
	}
	return columns, digest
}

func sum(digest string) map[string]any {
	return map[string]any{"algorithm": "sha256", "version": 1, "encoding": "hex", "digest": digest}
}

func (f *fake) entries(scope string) (keys []string, digest string) {
	var entries []canonical.Entry
	for key, value := range f.scopes[scope] {
		quoted, _ := json.Marshal(key)
		identity, err := f.table.AppendIdentity(nil, quoted)
		if err != nil {
			f.t.Error(err)
		}
		_, d := f.row(key, value)
		entries = append(entries, canonical.Entry{Identity: identity, Digest: d})
		keys = append(keys, key)
	}
	hash, _ := canonical.ParseHash(f.manifest.SchemaHash)
	total, err := canonical.ScopeDigest(hash, scope, entries)
	if err != nil {
		f.t.Error(err)
	}
	// Identities hold the length of the key before the key.
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return keys, canonical.HexDigest(total)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	route := strings.TrimPrefix(r.URL.Path, "/sync/")
	f.requests = append(f.requests, route)
	if r.Header.Get("Authorization") != "Bearer secret" {
		f.t.Error("request without its credential")
	}
	if f.bendResponse != nil && f.bendResponse(w, len(f.requests)) {
		return
	}
	body, err := protocol.ReadBody(r.Body, protocol.MaxBody, r.ContentLength)
	if err != nil {
		f.t.Error(err)
		return
	}
	var answer map[string]any
	switch route {
	case "connect":
		answer, err = f.connect(body)
	case "rebuild":
		answer, err = f.rebuild(body)
	case "pull":
		answer, err = f.pull(body)
	case "push":
		answer, err = f.push(body)
	}
	if err != nil {
		f.t.Errorf("%s: the client sent a request that the intake refuses: %v", route, err)
		return
	}
	if f.bendPage != nil {
		f.bendPage(route, answer)
	}
	f.write(w, answer)
}

func (f *fake) write(w http.ResponseWriter, answer map[string]any) {
	data, _ := json.Marshal(answer)
	switch f.encoding {
	case "zstd":
		w.Header().Set("Content-Encoding", "zstd")
		e, _ := zstd.NewWriter(w)
		defer e.Close()
		e.Write(data)
	case "gzip":
		w.Header().Set("Content-Encoding", "gzip")
		e := gzip.NewWriter(w)
		defer e.Close()
		e.Write(data)
	default:
		w.Write(data)
	}
}

func (f *fake) connect(body []byte) (map[string]any, error) {
	q, err := protocol.DecodeConnect(body)
	if err != nil {
		return nil, err
	}
	answer := map[string]any{"server_time": "2024-02-29T12:34:56.123456Z", "protocol_version": 3, "client_generation": 1,
		"scope_set_version": 1, "scope_cursor_updates": map[string]any{}}
	action := "none"
	if q.Schema != f.manifest.Ref() {
		action = "replace"
		definition, err := f.manifest.Body()
		if err != nil {
			return nil, err
		}
		answer["schema_definition"] = json.RawMessage(definition)
	}
	answer["schema"] = map[string]any{"version": f.manifest.SchemaVersion, "hash": f.manifest.SchemaHash, "action": action}
	answer["scopes"] = f.delta(q.KnownScopes)
	return answer, nil
}

func (f *fake) delta(known map[string]protocol.ScopeCursor) map[string]any {
	add, remove := []any{}, []string{}
	for id := range f.scopes {
		if _, ok := known[id]; !ok {
			add = append(add, map[string]any{"id": id, "cursor": nil})
		}
	}
	for id := range known {
		if _, ok := f.scopes[id]; !ok {
			remove = append(remove, id)
		}
	}
	return map[string]any{"add": add, "remove": remove}
}

func (f *fake) rebuild(body []byte) (map[string]any, error) {
	q, err := protocol.DecodeRebuild(body)
	if err != nil {
		return nil, err
	}
	keys, digest := f.entries(q.Scope)
	from := 0
	if q.Cursor != nil {
		fmt.Sscanf(*q.Cursor, "page-%d", &from)
	}
	to := min(from+f.pageSize, len(keys))
	records := []any{}
	for n, key := range keys[from:to] {
		columns, d := f.row(key, f.scopes[q.Scope][key])
		record := map[string]any{"table": "tbl", "pk": map[string]any{"id": key}, "row": columns,
			"row_checksum": sum(canonical.HexDigest(d)), "server_version": "v-" + key}
		if f.bendRecord != nil {
			f.bendRecord(from+n, record)
		}
		records = append(records, record)
	}
	if to < len(keys) {
		return map[string]any{"records": records, "cursor": fmt.Sprintf("page-%d", to), "has_more": true}, nil
	}
	return map[string]any{"records": records, "cursor": nil, "has_more": false,
		"final_scope_cursor": fmt.Sprintf("at-%d", len(f.changes)), "checksum": sum(digest)}, nil
}

func (f *fake) pull(body []byte) (map[string]any, error) {
	q, err := protocol.DecodePull(body)
	if err != nil {
		return nil, err
	}
	changes, rebuild, cursors := []any{}, []string{}, map[string]string{}
	more := false
	for id, c := range q.Scopes {
		if f.scopes[id] == nil {
			continue
		}
		if c.Cursor == nil {
			rebuild = append(rebuild, id)
			continue
		}
		from := 0
		fmt.Sscanf(*c.Cursor, "at-%d", &from)
		to := from
		for ; to < len(f.changes) && len(changes) < f.pageSize; to++ {
			if f.changes[to].scope == id {
				changes = append(changes, f.change(f.changes[to]))
			}
		}
		more = more || to < len(f.changes)
		cursors[id] = fmt.Sprintf("at-%d", to)
	}
	delta := f.delta(q.Scopes)
	for _, added := range delta["add"].([]any) {
		rebuild = append(rebuild, added.(map[string]any)["id"].(string))
	}
	answer := map[string]any{"changes": changes, "scope_set_version": 1, "scope_cursors": cursors, "scope_updates": delta,
		"rebuild": rebuild, "has_more": more}
	if !more {
		sums := map[string]any{}
		for id := range f.scopes {
			_, digest := f.entries(id)
			sums[id] = sum(digest)
		}
		answer["checksums"] = sums
	}
	return answer, nil
}

func (f *fake) change(c fakeChange) map[string]any {
	out := map[string]any{"scope": c.scope, "table": "tbl", "pk": map[string]any{"id": c.key}, "server_version": "v-" + c.key}
	value, live := f.scopes[c.scope][c.key]
	if !live {
		out["op"] = "delete"
		return out
	}
	columns, d := f.row(c.key, value)
	out["op"], out["row"], out["row_checksum"] = "upsert", columns, sum(canonical.HexDigest(d))
	return out
}

func (f *fake) push(body []byte) (map[string]any, error) {
	q, err := protocol.DecodePush(body)
	if err != nil {
		return nil, err
	}
	accepted := []any{}
	for _, m := range q.Mutations {
		accepted = append(accepted, map[string]any{"mutation_id": m.ID, "table": m.TableID, "status": "applied",
			"pk": map[string]any{m.Key.FieldID: json.RawMessage(m.Key.JSON)}, "outcome_schema": f.manifest.Ref(), "server_version": "v2"})
	}
	return map[string]any{"batch_id": q.ID, "server_time": "2024-02-29T12:34:56.123456Z", "accepted": accepted, "rejected": []any{}}, nil
}
