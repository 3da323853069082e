package systest

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"synchro/canonical"
	"synchro/internal/ijson"
	"synchro/internal/pgtest"
	"synchro/protocol"
)

// decoders reads one input with the C implementation of the server and with the Go one.
type decoders struct {
	conn   *pgx.Conn
	tables map[string]*canonical.Table
	body   string // the manifest of the tables
	table  string
	key    string
}

// decoder compares both on two texts and a number; what they are depends on the decoder.
type decoder func(d *decoders, t *testing.T, first, second string, n int)

var decoderKinds = []decoder{
	(*decoders).typed, (*decoders).json, (*decoders).manifest, (*decoders).batch, (*decoders).mutation, (*decoders).row, (*decoders).keys,
	(*decoders).connect, (*decoders).push, (*decoders).pull, (*decoders).rebuild, (*decoders).execute,
}

const (
	kindTyped = iota
	kindJSON
	kindManifest
	kindBatch
	kindMutation
	kindRow
	kindKeys
	kindConnect
	kindPush
	kindPull
	kindRebuild
	kindExecute
)

// server runs a call of a decoder. false: it refused. Any other error is one that no input may cause.
func (d *decoders) server(t *testing.T, out any, sql string, args ...any) bool {
	t.Helper()
	err := d.conn.QueryRow(context.Background(), sql, args...).Scan(out)
	var e *pgconn.PgError
	if err == nil {
		return true
	}
	if !errors.As(err, &e) || !refusals[e.Code] && e.Code != "SY002" && e.Code != "SY009" {
		t.Fatalf("%v\n%s %q", err, sql, args)
	}
	return false
}

// same demands one verdict and one result.
func same(t *testing.T, server bool, have []byte, err error, want []byte) {
	t.Helper()
	if server != (err == nil) {
		t.Fatalf("the server accepts: %t, Go says %v", server, err)
	}
	if server && !bytes.Equal(have, want) {
		t.Fatalf("the server has %x, Go %x", have, want)
	}
}

// value is a JSON text as it lies in a document: without blanks around it.
func value(text string) []byte { return []byte(strings.Trim(text, " \t\r\n")) }

func (d *decoders) typed(t *testing.T, first, second string, n int) {
	typ := canonical.Type(uint(n)%11 + 1)
	spec := canonical.FieldSpec{Type: typ, Nullable: n&16 != 0}
	field := map[string]any{"type": typ.String(), "nullable": spec.Nullable}
	if typ == canonical.Decimal {
		if _, err := fmt.Sscanf(first, "%d,%d", &spec.Precision, &spec.Scale); err != nil || spec.Scale < 0 || spec.Precision < max(1, spec.Scale) || spec.Precision > 1000 {
			spec.Precision, spec.Scale = 0, 0
		} else {
			field["precision"], field["scale"] = spec.Precision, spec.Scale
		}
	}
	text, _ := json.Marshal(field)
	var have []byte
	server := d.server(t, &have, "SELECT synchro._typed_value($1::text::json, $2::text::json)", string(text), second)
	want, err := canonical.AppendTyped(nil, spec, value(second))
	same(t, server, have, err, want)
}

func (d *decoders) json(t *testing.T, _, second string, _ int) {
	var have string
	server := d.server(t, &have, "SELECT synchro._jcs($1::text::json) FROM (SELECT synchro._json_strict($1)) strict", second)
	want, err := canonical.Canonicalize([]byte(second))
	same(t, server, []byte(have), err, want)
}

func (d *decoders) manifest(t *testing.T, _, second string, _ int) {
	var hash string
	if strings.HasPrefix(second, "{") && !strings.Contains(second, "schema_hash") && d.server(t, &hash, "SELECT synchro._manifest_hash($1::text::json)", second) {
		if _, err := canonical.ParseManifest([]byte(`{"schema_hash":"` + hash + `",` + second[1:])); err != nil {
			t.Fatalf("the server accepts, Go says %v", err)
		}
	}
}

func (d *decoders) batch(t *testing.T, first, second string, _ int) {
	var have []byte
	server := d.server(t, &have, "SELECT synchro._batch_fingerprint($1, $2::text::json, true)", first, second)
	b, err := canonical.ParseListedBatch([]byte(second))
	var want [canonical.HashSize]byte
	if err == nil {
		want, err = b.Fingerprint(first)
	}
	same(t, server, have, err, want[:])
}

func (d *decoders) mutation(t *testing.T, first, second string, _ int) {
	var have []byte
	server := d.server(t, &have, "SELECT synchro._mutation_fingerprint($1, 'client', $2::text::json, true)", first, second)
	m, err := canonical.ParseListedMutation([]byte(second))
	var want [canonical.HashSize]byte
	if err == nil {
		want, err = m.Fingerprint(first, "client")
	}
	same(t, server, have, err, want[:])
}

func (d *decoders) row(t *testing.T, first, second string, _ int) {
	var have []byte
	server := d.server(t, &have, "SELECT synchro._verify_row_digest($1::text::json, $2, $3::text::json, $4::text::json, 'v')", d.body, d.table, first, second)
	var want [canonical.HashSize]byte
	err := d.tables[d.table].RowDigest(&want, value(first), value(second), "v")
	same(t, server, have, err, want[:])
}

// keys: what is a key comes back from its octets.
func (d *decoders) keys(t *testing.T, first, _ string, n int) {
	typ := []string{"string", "int", "int64"}[uint(n)%3]
	var back string
	if d.server(t, &back, "SELECT synchro._key_text($1, synchro._key_bytes($1, $2))", typ, first) && back != first {
		t.Fatalf("%s %q comes back as %q", typ, first, back)
	}
}

// request: what the server takes for a request the shim does too, but for what is nested deeper than travels.
func (d *decoders) request(t *testing.T, kind, body string, err error) (accepted bool) {
	t.Helper()
	if d.server(t, &accepted, "SELECT synchro._request($1, $2) IS NOT NULL", kind, body) && err != nil && !errors.Is(err, ijson.ErrDepth) && kind != "push" {
		t.Fatalf("the server accepts, Go says %v", err)
	}
	// What is asked of the database when the shape is wrong is never taken for a request.
	if gates := protocol.Gates([]byte(body)); gates != nil && d.server(t, &accepted, "SELECT synchro._request($1, $2) IS NOT NULL", kind, string(gates)) {
		t.Fatalf("accepted: %s", gates)
	}
	return accepted
}

func (d *decoders) connect(t *testing.T, _, second string, _ int) {
	_, err := protocol.DecodeConnect([]byte(second))
	d.request(t, "connect", second, err)
}

func (d *decoders) pull(t *testing.T, _, second string, _ int) {
	_, err := protocol.DecodePull([]byte(second))
	d.request(t, "pull", second, err)
}

func (d *decoders) rebuild(t *testing.T, _, second string, _ int) {
	_, err := protocol.DecodeRebuild([]byte(second))
	d.request(t, "rebuild", second, err)
}

func (d *decoders) push(t *testing.T, _, second string, _ int) {
	q, err := protocol.DecodePush([]byte(second))
	if !d.request(t, "push", second, err) || errors.Is(err, ijson.ErrDepth) || err == nil && q.Generation == 0 {
		return
	}
	var have []byte
	server := d.server(t, &have, "SELECT synchro._batch_fingerprint('u', $1::text::json)", second)
	var want [canonical.HashSize]byte
	if err == nil {
		want, err = q.Fingerprint("u")
	}
	same(t, server, have, err, want[:])
}

// execute: what the server's push takes the shim does too, and no push makes it fail.
func (d *decoders) execute(t *testing.T, _, second string, _ int) {
	var status int
	if !d.server(t, &status, "SELECT status FROM synchro.synchro_push('u', $1)", second) {
		t.Fatal("a push raises an error instead of answering it")
	}
	q, err := protocol.DecodePush([]byte(second))
	if err == nil && q.Generation == 0 || errors.Is(err, ijson.ErrDepth) {
		return
	}
	if status != 400 && status != 401 && err != nil && strings.Contains(second, "client_generation") {
		t.Fatalf("answer %d, Go says %v", status, err)
	}
}

func newDecoders(f *testing.F) *decoders {
	f.Helper()
	d := &decoders{conn: pgtest.StartWithExtension(f, pgtest.Config{NoWorker: true, Settings: []string{"log_min_messages = fatal"}}).Connect(f, "", "")}
	var file struct{ Vectors []vector }
	readTestdata(f, "canonical.json", &file)
	for _, v := range file.Vectors {
		var in vectorInput
		if err := json.Unmarshal(v.Input, &in); err != nil {
			f.Fatal(err)
		}
		switch v.Kind {
		case "typed_value":
			var spec struct {
				Type             string
				Precision, Scale int
			}
			if err := json.Unmarshal(in.FieldSpec, &spec); err != nil {
				f.Fatal(err)
			}
			typ, _ := canonical.ParseType(spec.Type)
			f.Add(kindTyped, fmt.Sprintf("%d,%d", spec.Precision, spec.Scale), in.Raw, int(typ)-1+11*16)
			f.Add(kindJSON, "", in.Raw, 0)
		case "row_digest":
			if v.Valid && d.tables == nil {
				m, err := canonical.ParseManifest([]byte(in.Manifest))
				if err != nil {
					f.Fatal(err)
				}
				if d.tables, err = m.Prepare(); err != nil {
					f.Fatal(err)
				}
				d.body, d.table = in.Manifest, in.TableID
			}
			f.Add(kindRow, in.Key, in.Row, 0)
		case "schema_manifest":
			hash := strings.Index(in.Manifest, `"schema_hash":"`)
			if hash < 0 {
				continue
			}
			end := hash + len(`"schema_hash":"`) + 2*canonical.HashSize + len(`",`)
			f.Add(kindManifest, "", in.Manifest[:hash]+in.Manifest[min(end, len(in.Manifest)):], 0)
		case "batch_fingerprint":
			f.Add(kindBatch, in.User, in.Batch, 0)
		case "mutation_fingerprint":
			f.Add(kindMutation, in.User, in.Mutation, 0)
		}
	}
	ref := `"schema":{"version":1,"hash":"` + hex.EncodeToString(make([]byte, canonical.HashSize)) + `"}`
	head := `{"client_id":"c","client_generation":1,` + ref + `,`
	const id = "00000000-0000-4000-8000-000000000010"
	f.Add(kindConnect, "", head+`"platform":"p","app_version":"1.0.0","protocol_version":3,"scope_set_version":0,"known_scopes":{"s":{"cursor":null}},"schema_reset":false}`, 0)
	f.Add(kindConnect, "", `{"client_id":"c","platform":"p","app_version":"1.0.0-rc.1+b","protocol_version":3,"schema":{"version":0,"hash":""},"scope_set_version":0,"known_scopes":{},"seed_receipts":{"s":"sc1.x"}}`, 0)
	f.Add(kindPull, "", head+`"scope_set_version":1,"scopes":{"s":{"cursor":"x"},"t":{"cursor":""}},"limit":1000}`, 0)
	f.Add(kindRebuild, "", head+`"scope":"s","rebuild_id":"`+id+`","cursor":"x","limit":1}`, 0)
	f.Add(kindRebuild, "", head+`"scope":"s","rebuild_id":"`+id+`","cursor":"","limit":1}`, 0)
	const client = "INSERT INTO synchro.client (client_id, user_id, confirmed) VALUES ('c', 'u', true)"
	if _, err := d.conn.Exec(context.Background(), client); err != nil {
		f.Fatal(err)
	}
	var version int64
	var hash string
	if err := d.conn.QueryRow(context.Background(), "SELECT m.schema_version, m.schema_hash FROM synchro.progress p JOIN synchro.manifest m USING (schema_version)").Scan(&version, &hash); err != nil {
		f.Fatal(err)
	}
	current := fmt.Sprintf(`schema":{"version":%d,"hash":"%s"}`, version, hash)
	for i, op := range []string{`"insert","columns":{"g":[1e2,{"a":"\u00e9"}],"h":null}`, `"update","base_version":"v","columns":{"g":-0}`, `"delete","base_version":"v"`} {
		f.Add(kindExecute, "", fmt.Sprintf(`{"client_id":"c","client_generation":1,"%s,"batch_id":"%s%d","mutations":[{"mutation_id":"%[2]s%[3]d","table":"t","pk":{"f":1.0},"authored_%[1]s,"op":%s,
			"client_version":"2024-02-29T12:34:56.123456Z"}]}`, current, id[:35], i+1, op), 0)
	}
	f.Add(kindPush, "", head+`"batch_id":"`+id+`","atomic":true,"mutations":[{"mutation_id":"`+id+`","table":"t","pk":{"f":1.0},"authored_`+ref+
		`,"op":"update","base_version":"v","client_version":"2024-02-29T12:34:56.123456Z","columns":{"g":[1e2,-0,{"a":null}]}}]}`, 0)
	for pad := 65536 - 260; pad < 65536-180; pad += 10 { // around the limit on a mutation
		for _, more := range []string{"", "\u00e9", "\\u0001"} {
			f.Add(kindPush, "", head+`"batch_id":"`+id+`","mutations":[{"mutation_id":"`+id+`","table":"t","pk":{"f":"k"},"authored_`+ref+
				`,"op":"insert","client_version":"2024-02-29T12:34:56.123456Z","columns":{"g":"`+strings.Repeat("x", pad)+more+`"}}]}`, 0)
		}
	}
	for _, key := range []string{"", "a", "-2147483648", "9223372036854775807", "é", "007", "+1", strings.Repeat("x", 300)} {
		for n := range 3 {
			f.Add(kindKeys, key, "", n)
		}
	}
	if d.tables == nil {
		f.Fatal("no vector has a row")
	}
	return d
}

// FuzzDecoders: C and Go accept the same inputs and make the same octets of them, and nothing makes the server fail.
func FuzzDecoders(f *testing.F) {
	d := newDecoders(f)
	f.Fuzz(func(t *testing.T, kind int, first, second string, n int) {
		if !utf8.ValidString(first) || !utf8.ValidString(second) || strings.ContainsRune(first+second, 0) {
			return // no text of the server
		}
		decoderKinds[uint(kind)%uint(len(decoderKinds))](d, t, first, second, n)
	})
}
