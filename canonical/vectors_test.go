package canonical

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"testing"
)

type vector struct {
	ID       string          `json:"vector_id"`
	Kind     string          `json:"kind"`
	Valid    bool            `json:"valid"`
	Input    json.RawMessage `json:"input"`
	Expected struct {
		BytesHex    *string `json:"canonical_bytes_hex"`
		BytesSHA256 *string `json:"expected_bytes_sha256"`
		SHA256      *string `json:"expected_sha256"`
	} `json:"expected"`
}

// produced is what a vector yields: the canonical octets, and the hash that
// the public function returns, for kinds that have one.
type produced struct {
	bytes []byte
	hash  []byte
}

func readJSON(t testing.TB, name string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func vectors(t testing.TB) []vector {
	var file struct {
		Vectors []vector `json:"vectors"`
	}
	readJSON(t, "canonical.json", &file)
	if len(file.Vectors) == 0 {
		t.Fatal("no vectors")
	}
	return file.Vectors
}

var runners = map[string]func(input []byte) (produced, error){
	"batch_fingerprint":    runBatch,
	"mutation_fingerprint": runMutation,
	"schema_manifest":      runManifest,
	"row_identity":         runIdentity,
	"row_digest":           runRowDigest,
	"scope_digest":         runScope,
	"typed_value":          runTyped,
}

func TestVectors(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.ID, func(t *testing.T) {
			run, known := runners[v.Kind]
			if !known {
				t.Fatalf("no runner for kind %q", v.Kind)
			}
			got, err := run(v.Input)
			if !v.Valid {
				if err == nil {
					t.Fatal("accepted")
				}
				if !isRefusal(err) {
					t.Fatalf("refused for the wrong reason: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			checkProduced(t, v, got)
		})
	}
}

func checkProduced(t *testing.T, v vector, got produced) {
	t.Helper()
	if have := hex.EncodeToString(got.bytes); have != *v.Expected.BytesHex {
		t.Errorf("canonical octets\n have %s\n want %s", have, *v.Expected.BytesHex)
	}
	sum := sha256.Sum256(got.bytes)
	if have := hex.EncodeToString(sum[:]); have != *v.Expected.BytesSHA256 {
		t.Errorf("sha-256 of the octets: have %s, want %s", have, *v.Expected.BytesSHA256)
	}
	if v.Expected.SHA256 != nil && hex.EncodeToString(got.hash) != *v.Expected.SHA256 {
		t.Errorf("hash: have %x, want %s", got.hash, *v.Expected.SHA256)
	}
}

var errHexInput = errors.New("malformed hex input")

func isRefusal(err error) bool {
	for _, target := range []error{ErrValue, ErrNull, ErrRow, ErrIdentity, ErrScope, ErrManifest, ErrFingerprint, errHexInput} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// decode panics on a vector of an unexpected shape, which is a broken test, not a refusal.
func decode[T any](input []byte) (out T) {
	d := json.NewDecoder(bytes.NewReader(input))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		panic(err)
	}
	return out
}

func runTyped(input []byte) (p produced, err error) {
	in := decode[struct {
		Spec struct {
			Type             string
			Nullable         bool
			Precision, Scale int
		} `json:"field_spec"`
		Raw string `json:"raw_json"`
	}](input)
	typ, ok := ParseType(in.Spec.Type)
	if !ok {
		panic("unknown type in a vector")
	}
	p.bytes, err = AppendTyped(nil, FieldSpec{typ, in.Spec.Nullable, in.Spec.Precision, in.Spec.Scale}, []byte(in.Raw))
	return p, err
}

type rowInput struct {
	Manifest string `json:"manifest_json"`
	TableID  string `json:"table_id"`
	Key      string `json:"pk_json"`
	Row      string `json:"row_json"`
	Version  string `json:"server_version"`
}

func (in rowInput) table() *Table {
	m, err := ParseManifest([]byte(in.Manifest))
	if err != nil {
		panic(err)
	}
	tables, err := m.Prepare()
	if err != nil || tables[in.TableID] == nil {
		panic("vector without its table")
	}
	return tables[in.TableID]
}

func runIdentity(input []byte) (p produced, err error) {
	in := decode[rowInput](input)
	p.bytes, err = in.table().AppendIdentity(nil, []byte(in.Key))
	if err == nil {
		sum := sha256.Sum256(p.bytes)
		p.hash = sum[:]
		err = CheckIdentity(p.bytes)
	}
	return p, err
}

func runRowDigest(input []byte) (p produced, err error) {
	in := decode[rowInput](input)
	table := in.table()
	var sum [HashSize]byte
	if err := table.RowDigest(&sum, []byte(in.Key), []byte(in.Row), in.Version); err != nil {
		return p, err
	}
	d := table.NewDigester()
	again, err := d.Row([]byte(in.Row), in.Version)
	if err != nil || again != sum {
		panic("a reused digester disagrees")
	}
	return produced{bytes: d.buf, hash: sum[:]}, nil
}

func runManifest(input []byte) (p produced, err error) {
	in := decode[struct {
		Manifest string `json:"manifest_json"`
	}](input)
	m, err := ParseManifest([]byte(in.Manifest))
	if err != nil {
		return p, err
	}
	sum, err := m.Hash()
	if err != nil {
		return p, err
	}
	p.hash = sum[:]
	p.bytes, err = m.hashInput()
	return p, err
}

func runBatch(input []byte) (p produced, err error) {
	in := decode[struct {
		User  string `json:"authenticated_user_id"`
		Batch string `json:"batch_json"`
	}](input)
	b, err := ParseListedBatch([]byte(in.Batch))
	if err != nil {
		return p, err
	}
	sum, err := b.Fingerprint(in.User)
	if err != nil {
		return p, err
	}
	p.hash = sum[:]
	p.bytes, err = b.fingerprintInput(in.User)
	return p, err
}

func runMutation(input []byte) (p produced, err error) {
	in := decode[struct {
		User     string `json:"authenticated_user_id"`
		Client   string `json:"client_id"`
		Mutation string `json:"mutation_json"`
	}](input)
	m, err := ParseListedMutation([]byte(in.Mutation))
	if err != nil {
		return p, err
	}
	sum, err := m.Fingerprint(in.User, in.Client)
	if err != nil {
		return p, err
	}
	p.hash = sum[:]
	p.bytes, err = m.fingerprintInput(in.User, in.Client)
	return p, err
}

func runScope(input []byte) (p produced, err error) {
	in := decode[struct {
		SchemaHash string `json:"schema_hash"`
		ScopeID    string `json:"scope_id"`
		Entries    []struct {
			Identity string `json:"row_identity_hex"`
			Digest   string `json:"row_digest_hex"`
		}
	}](input)
	hash, ok := ParseHash(in.SchemaHash)
	if !ok {
		return p, errHexInput
	}
	var entries []Entry
	for _, e := range in.Entries {
		identity, err := hex.DecodeString(e.Identity)
		if err != nil {
			return p, errHexInput
		}
		digest, ok := ParseHash(e.Digest)
		if !ok {
			return p, errHexInput
		}
		entries = append(entries, Entry{identity, digest})
	}
	sum, err := ScopeDigest(hash, in.ScopeID, entries)
	return produced{bytes: scopeInput(hash, in.ScopeID, entries), hash: sum[:]}, err
}

// scopeInput spells out what the streaming hash consumes.
func scopeInput(hash [HashSize]byte, scopeID string, sorted []Entry) []byte {
	out := append([]byte(domainScope), hash[:]...)
	out = appendBlob(out, scopeID)
	out = append(out, 0, 0, 0, 0, 0, 0, byte(len(sorted)>>8), byte(len(sorted)))
	for _, e := range sorted {
		out = append(appendBlob(out, e.Identity), e.Digest[:]...)
	}
	return out
}

func TestFloatVectors(t *testing.T) {
	var file struct {
		Cases []struct{ Source, Canonical string }
	}
	readJSON(t, "float-wire.json", &file)
	for _, c := range file.Cases {
		t.Run(c.Source, func(t *testing.T) {
			got, err := FloatForm(c.Source)
			if err != nil || got != c.Canonical {
				t.Fatalf("have %q, %v; want %q", got, err, c.Canonical)
			}
			if _, err := AppendTyped(nil, FieldSpec{Type: Float}, []byte(c.Canonical)); err != nil {
				t.Errorf("the canonical form is refused on the wire: %v", err)
			}
			if c.Source != c.Canonical {
				if _, err := AppendTyped(nil, FieldSpec{Type: Float}, []byte(c.Source)); err == nil {
					t.Error("the source form is accepted on the wire")
				}
			}
		})
	}
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
}

func TestLineageVectors(t *testing.T) {
	var file struct {
		Cases []struct {
			Case    string
			Version int64  `json:"schema_version"`
			Parent  *int64 `json:"parent_version"`
			Class   string `json:"transition_class"`
			Floor   int64  `json:"compatibility_floor"`
			Valid   bool
		}
	}
	readJSON(t, "manifest-lineage.json", &file)
	for _, c := range file.Cases {
		t.Run(c.Case, func(t *testing.T) {
			if err := CheckLineage(c.Version, c.Parent, c.Class, c.Floor); (err == nil) != c.Valid {
				t.Errorf("valid %t, got %v", c.Valid, err)
			}
		})
	}
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
}
