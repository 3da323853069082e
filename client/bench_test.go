package client

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"synchro/canonical"
	"synchro/protocol"
)

// BenchmarkVerifyPage is all a client does with a page of 1000 rows of about
// 200 octets, but for the network.
func BenchmarkVerifyPage(b *testing.B) {
	f := newFake(b)
	records := []any{}
	for i := range 1000 {
		key := fmt.Sprintf("key-%08d", i)
		columns, d := f.row(key, strings.Repeat("lorem ipsum ", 14))
		records = append(records, map[string]any{"table": "tbl", "pk": map[string]any{"id": key}, "row": columns,
			"row_checksum": sum(canonical.HexDigest(d)), "server_version": "v-" + key})
	}
	body, err := json.Marshal(map[string]any{"records": records, "cursor": "next", "has_more": true})
	if err != nil {
		b.Fatal(err)
	}
	definition, err := f.manifest.Body()
	if err != nil {
		b.Fatal(err)
	}
	v, err := newVerifier(definition)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		s := &Session{verifier: v, scopes: map[string]*scope{}}
		page, err := protocol.DecodeRebuildResponse(body)
		if err != nil {
			b.Fatal(err)
		}
		sc := newScope("s", nil)
		var last []byte
		for i := range page.Records {
			if last, err = s.takeRecord(sc, &page.Records[i], last); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "rows/s")
}
