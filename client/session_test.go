package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"synchro/canonical"
	"synchro/protocol"
)

func filled(t *testing.T, rows int) *fake {
	f := newFake(t)
	f.scopes["shared:empty"] = map[string]string{}
	for i := range rows {
		f.set("user:u", fmt.Sprintf("k%d", i), "x")
	}
	return f
}

func TestSyncRebuildsEveryScope(t *testing.T) {
	for _, encoding := range []string{"", "zstd", "gzip"} {
		t.Run("encoding "+encoding, func(t *testing.T) {
			f := filled(t, 25)
			f.encoding = encoding
			s := f.session()
			if err := s.Sync(context.Background()); err != nil {
				t.Fatal(err)
			}
			if got := s.Scopes(); !slices.Equal(got, []string{"shared:empty", "user:u"}) {
				t.Errorf("scopes %v", got)
			}
			if stats, _ := s.Stats("user:u"); s.Rows("user:u") != 25 || stats.Rows != 25 || stats.Pages != 9 || stats.Bytes == 0 {
				t.Errorf("%d rows held, %+v", s.Rows("user:u"), stats)
			}
		})
	}
}

func TestPullFollowsChanges(t *testing.T) {
	f := filled(t, 5)
	s := f.session()
	if err := s.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	f.set("user:u", "k1", "changed")
	f.set("user:u", "new", "y")
	f.remove("user:u", "k2")
	f.remove("user:u", "never held")
	p, err := s.Pull(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if p.Upserts != 2 || p.Deletes != 2 || p.Pages != 2 || s.Rows("user:u") != 5 {
		t.Errorf("%+v, %d rows", p, s.Rows("user:u"))
	}
	if p, err = s.Pull(context.Background(), 0); err != nil || !p.Empty() {
		t.Errorf("a second pull brings %+v, %v", p, err)
	}
}

func TestScopesComeAndGo(t *testing.T) {
	f := filled(t, 2)
	s := f.session()
	if err := s.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	f.set("section:new", "n", "z")
	f.mu.Lock()
	delete(f.scopes, "shared:empty")
	f.mu.Unlock()
	p, err := s.Pull(context.Background(), 0)
	if err != nil || !slices.Equal(p.Added, []string{"section:new"}) || !slices.Equal(p.Removed, []string{"shared:empty"}) {
		t.Fatalf("%+v, %v", p, err)
	}
	if got := s.Pending(); !slices.Equal(got, []string{"section:new"}) {
		t.Fatalf("pending %v", got)
	}
	if err := s.Sync(context.Background()); err != nil || s.Rows("section:new") != 1 {
		t.Errorf("%d rows, %v", s.Rows("section:new"), err)
	}
}

// Every way in which a snapshot can be wrong must be found.
func TestFalseSnapshotIsFound(t *testing.T) {
	for what, bend := range map[string]func(n int, record map[string]any){
		"value":         func(n int, r map[string]any) { r["row"].(map[string]any)["value"] = "forged" },
		"null":          func(n int, r map[string]any) { r["row"].(map[string]any)["value"] = nil },
		"field missing": func(n int, r map[string]any) { delete(r["row"].(map[string]any), "value") },
		"field surplus": func(n int, r map[string]any) { r["row"].(map[string]any)["more"] = 1 },
		"version":       func(n int, r map[string]any) { r["server_version"] = "other" },
		"key":           func(n int, r map[string]any) { r["pk"] = map[string]any{"id": "other"} },
		"key field":     func(n int, r map[string]any) { r["pk"] = map[string]any{"value": r["pk"].(map[string]any)["id"]} },
		"table":         func(n int, r map[string]any) { r["table"] = "other" },
		"checksum":      func(n int, r map[string]any) { r["row_checksum"] = sum(strings.Repeat("0", 64)) },
	} {
		t.Run(what, func(t *testing.T) {
			f := filled(t, 10)
			f.bendRecord = func(n int, r map[string]any) {
				if n == 4 {
					bend(n, r)
				}
			}
			if err := f.session().Sync(context.Background()); !errors.Is(err, ErrIntegrity) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestFalsePageIsFound(t *testing.T) {
	records := func(body map[string]any) []any { return body["records"].([]any) }
	for what, bend := range map[string]func(body map[string]any){
		"row missing":  func(b map[string]any) { b["records"] = records(b)[1:] },
		"row repeated": func(b map[string]any) { b["records"] = append(records(b), records(b)[len(records(b))-1]) },
		"order":        func(b map[string]any) { slices.Reverse(records(b)) },
		"scope digest": func(b map[string]any) {
			if b["checksum"] != nil {
				b["checksum"] = sum(strings.Repeat("0", 64))
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			f := filled(t, 9)
			f.bendPage = func(route string, body map[string]any) {
				if route == "rebuild" && len(records(body)) > 0 {
					bend(body)
				}
			}
			if err := f.session().Sync(context.Background()); !errors.Is(err, ErrIntegrity) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestFalsePullIsFound(t *testing.T) {
	changes := func(body map[string]any) []any { return body["changes"].([]any) }
	for what, bend := range map[string]func(body map[string]any){
		"value":          func(b map[string]any) { changes(b)[0].(map[string]any)["row"].(map[string]any)["value"] = "forged" },
		"change missing": func(b map[string]any) { b["changes"] = changes(b)[1:] },
		"other digest":   func(b map[string]any) { b["checksums"].(map[string]any)["user:u"] = sum(strings.Repeat("0", 64)) },
		"digest missing": func(b map[string]any) { delete(b["checksums"].(map[string]any), "shared:empty") },
		"delete of live": func(b map[string]any) {
			c := changes(b)[0].(map[string]any)
			c["op"] = "delete"
			delete(c, "row")
			delete(c, "row_checksum")
		},
	} {
		t.Run(what, func(t *testing.T) {
			f := filled(t, 4)
			s := f.session()
			if err := s.Sync(context.Background()); err != nil {
				t.Fatal(err)
			}
			f.set("user:u", "k1", "changed")
			f.bendPage = func(route string, body map[string]any) { bend(body) }
			if _, err := s.Pull(context.Background(), 0); !errors.Is(err, ErrIntegrity) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestForgedManifestIsRefused(t *testing.T) {
	f := filled(t, 1)
	f.bendPage = func(route string, body map[string]any) {
		definition := body["schema_definition"].(json.RawMessage)
		body["schema_definition"] = json.RawMessage(bytes.Replace(definition, []byte(`"note"`), []byte(`"other"`), 1))
	}
	if err := f.session().Connect(context.Background(), false); !errors.Is(err, canonical.ErrManifest) {
		t.Errorf("got %v", err)
	}
}

func TestUnsupportedSchemaIsReported(t *testing.T) {
	f := filled(t, 1)
	f.bendPage = func(route string, body map[string]any) {
		delete(body, "schema_definition")
		body["schema"].(map[string]any)["action"] = "unsupported"
		body["schema"].(map[string]any)["reason"] = "unknown_schema_lineage"
	}
	if err := f.session().Connect(context.Background(), false); !errors.Is(err, ErrUnsupportedSchema) {
		t.Errorf("got %v", err)
	}
}

// quick repeats without noticeable pauses.
var quick = Retry{Attempts: 4, Base: time.Microsecond, Max: time.Millisecond}

func TestFailuresOnTheWayAreRepeated(t *testing.T) {
	for what, fail := range map[string]func(w http.ResponseWriter){
		"connection cut": func(w http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"answer cut": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			w.Write([]byte("{"))
		},
		"broken zstd": func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "zstd")
			w.Write([]byte("nonsense"))
		},
		"busy": func(w http.ResponseWriter) {
			w.WriteHeader(503)
			w.Write(protocol.NewError(protocol.ErrCapturePending, "x").Body())
		},
		"proxy": func(w http.ResponseWriter) { w.WriteHeader(502); w.Write([]byte("<html>")) },
	} {
		t.Run(what, func(t *testing.T) {
			f := filled(t, 10)
			f.bendResponse = func(w http.ResponseWriter, n int) bool {
				if n%2 == 1 {
					fail(w)
				}
				return n%2 == 1
			}
			s := f.session()
			s.Client.Retry = quick
			if err := s.Sync(context.Background()); err != nil || s.Rows("user:u") != 10 {
				t.Errorf("%d rows, %v", s.Rows("user:u"), err)
			}
		})
	}
}

func TestRefusalIsNotRepeated(t *testing.T) {
	f := filled(t, 1)
	f.bendResponse = func(w http.ResponseWriter, n int) bool {
		w.WriteHeader(401)
		w.Write(protocol.NewError(protocol.ErrAuthRequired, "x").Body())
		return true
	}
	s := f.session()
	s.Client.Retry = quick
	err := s.Connect(context.Background(), false)
	var e *protocol.Error
	if !errors.As(err, &e) || e.Code.Name != protocol.ErrAuthRequired || len(f.requests) != 1 {
		t.Errorf("%d requests, %v", len(f.requests), err)
	}
}

func TestVoidedRebuildStartsAgain(t *testing.T) {
	f := filled(t, 10)
	f.bendResponse = func(w http.ResponseWriter, n int) bool {
		if n != 5 {
			return false
		}
		w.WriteHeader(409)
		w.Write(protocol.NewError(protocol.ErrRebuildRestartRequired, "x").Body())
		return true
	}
	s := f.session()
	if err := s.Sync(context.Background()); err != nil || s.Rows("user:u") != 10 {
		t.Errorf("%d rows, %v", s.Rows("user:u"), err)
	}
}

func TestExpiredGenerationReconnects(t *testing.T) {
	f := filled(t, 3)
	s := f.session()
	if err := s.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	before := len(f.requests)
	f.bendResponse = func(w http.ResponseWriter, n int) bool {
		if n != before+1 {
			return false
		}
		w.WriteHeader(409)
		w.Write(protocol.NewError(protocol.ErrClientGenerationExpired, "x").Body())
		return true
	}
	if err := s.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := f.requests[before:]; !slices.Equal(got, []string{"pull", "connect", "pull"}) {
		t.Errorf("requests %v", got)
	}
}

func TestCancelledRebuildEnds(t *testing.T) {
	f := filled(t, 30)
	ctx, cancel := context.WithCancel(context.Background())
	s := f.session()
	s.OnProgress = func(string, Stats) { cancel() }
	if err := s.Sync(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestPushChecksItsOutcomes(t *testing.T) {
	mutations := []canonical.Mutation{
		{TableID: "tbl", Key: canonical.Value{FieldID: "id", JSON: []byte(`"a"`)}, Op: canonical.Insert, Columns: []canonical.Value{}},
		{TableID: "tbl", Key: canonical.Value{FieldID: "id", JSON: []byte(`"b"`)}, Op: canonical.Delete, BaseVersion: "v1"},
	}
	f := filled(t, 1)
	s := f.session()
	if err := s.Connect(context.Background(), false); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Push(context.Background(), mutations, false); err != nil || len(p.Accepted) != 2 {
		t.Fatalf("%+v, %v", p, err)
	}
	for what, bend := range map[string]func(accepted []any) []any{
		"order":   func(a []any) []any { return []any{a[1], a[0]} },
		"missing": func(a []any) []any { return a[:1] },
		"twice":   func(a []any) []any { return []any{a[0], a[0]} },
		"row":     func(a []any) []any { a[0].(map[string]any)["pk"] = map[string]any{"id": "b"}; return a },
		"false row": func(a []any) []any {
			columns, _ := f.row("a", "forged")
			a[0].(map[string]any)["server_row"], a[0].(map[string]any)["row_checksum"] = columns, sum(strings.Repeat("0", 64))
			return a
		},
	} {
		t.Run(what, func(t *testing.T) {
			f.bendPage = func(route string, body map[string]any) { body["accepted"] = bend(body["accepted"].([]any)) }
			_, err := s.Push(context.Background(), mutations, false)
			if !errors.Is(err, protocol.ErrResponse) && !errors.Is(err, ErrIntegrity) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	err := &protocol.Error{Code: protocol.ErrorCode{Name: "x", Retryable: true}, RetryAfter: 3 * time.Second}
	if got := quick.pause(1, err); got != 3*time.Second {
		t.Errorf("pause %v", got)
	}
	if got := (Retry{Base: time.Second, Max: 2 * time.Second}).pause(100, ErrTransport); got > 2*time.Second || got < time.Second {
		t.Errorf("pause %v", got)
	}
}
