package protocol

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"synchro/canonical"
	"synchro/internal/ijson"
)

const (
	seedChecksum = checksumHead + testHash + checksumTail
	seedChange   = `{"scope":"s","op":"upsert","table":"t","pk":{"f":1},"server_version":"v","row":{"f":1,"g":null},"row_checksum":` + seedChecksum + `}`
	seedDelta    = `{"add":[{"id":"s","cursor":null}],"remove":["t"]}`
	seedSchema   = `{"version":1,"hash":"` + testHash + `"`
)

// FuzzResponses: a client that reads whatever a server or a proxy says never panics, and believes nothing that is not exact.
func FuzzResponses(f *testing.F) {
	f.Add(0, `{"server_time":"t","protocol_version":3,"client_generation":1,"scope_set_version":1,"schema":`+seedSchema+`,"action":"rebuild_local"},"scopes":`+seedDelta+
		`,"scope_cursor_updates":{"s":null,"t":"x"},"schema_definition":{},"affected_scopes":["s"]}`)
	f.Add(1, `{"batch_id":"b","server_time":"t","accepted":[{"mutation_id":"m","table":"t","pk":{"f":1},"status":"applied","outcome_schema":`+seedSchema+
		`},"server_version":"v","server_row":{"f":1},"row_checksum":`+seedChecksum+`}],"rejected":[]}`)
	f.Add(2, `{"changes":[`+seedChange+`],"scope_set_version":1,"scope_cursors":{"s":"x"},"scope_updates":`+seedDelta+`,"rebuild":["s"],"has_more":false,"checksums":{"s":`+seedChecksum+`}}`)
	f.Add(3, `{"records":[{"table":"t","pk":{"f":1},"row":{"f":1},"row_checksum":`+seedChecksum+`,"server_version":"v"}],"cursor":null,"has_more":false,"final_scope_cursor":"x","checksum":`+seedChecksum+`}`)
	f.Add(4, `{"error":{"code":"capture_pending","message":"m","retryable":true,"reason":"capture_blocked"}}`)
	f.Add(4, `<html>`)
	for kind := range 4 {
		f.Add(kind, "{}")
		f.Add(kind, strings.Repeat("[", 2000))
	}
	f.Fuzz(func(t *testing.T, kind int, body string) {
		var err error
		switch uint(kind) % 5 {
		case 0:
			_, err = DecodeConnectResponse([]byte(body))
		case 1:
			_, err = DecodePushResponse([]byte(body))
		case 2:
			var p *PullResponse
			if p, err = DecodePullResponse([]byte(body)); err == nil {
				for _, digest := range p.Checksums {
					if _, ok := canonical.ParseHash(digest); !ok {
						t.Fatalf("digest %q", digest)
					}
				}
				for _, c := range p.Changes {
					wantRow(t, c.Row)
				}
			}
		case 3:
			var p *RebuildResponse
			if p, err = DecodeRebuildResponse([]byte(body)); err == nil {
				for _, row := range p.Records {
					wantRow(t, row)
				}
			}
		case 4:
			for _, status := range []int{200, 400, 401, 409, 422, 426, 429, 500, 503, 599} {
				e := DecodeError(status, http.Header{"Retry-After": {body}}, []byte(body))
				if !e.Code.OnWire() || e.RetryAfter < 0 || !json.Valid(e.Body()) {
					t.Fatalf("%+v", e)
				}
			}
			return
		}
		if err != nil && !errors.Is(err, ErrResponse) {
			t.Fatal(err)
		}
		if err == nil && ijson.Validate([]byte(body), ijson.DefaultDepth) != nil {
			t.Fatalf("believed %q", body)
		}
	})
}

// wantRow: what a row is made of are values, and its checksum is one.
func wantRow(t *testing.T, row Row) {
	t.Helper()
	if !json.Valid(row.Key) || row.Columns != nil && !json.Valid(row.Columns) {
		t.Fatalf("%q %q", row.Key, row.Columns)
	}
	if _, ok := canonical.ParseHash(row.Checksum); ok != (row.Columns != nil) {
		t.Fatalf("checksum %q", row.Checksum)
	}
}
