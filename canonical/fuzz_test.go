package canonical

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"

	"synchro/internal/ijson"
)

// FuzzTyped feeds arbitrary JSON to every type: no panic, and what is accepted
// has one spelling and one encoding.
func FuzzTyped(f *testing.F) {
	for _, v := range vectors(f) {
		if v.Kind == "typed_value" {
			in := decode[struct {
				Spec map[string]any `json:"field_spec"`
				Raw  string         `json:"raw_json"`
			}](v.Input)
			typ, _ := ParseType(in.Spec["type"].(string))
			f.Add(byte(typ), in.Raw, 0, 0)
			f.Add(byte(typ), in.Raw, 6, 2)
		}
	}
	f.Fuzz(func(t *testing.T, typ byte, raw string, precision, scale int) {
		spec := FieldSpec{Type: Type(typ), Nullable: true, Precision: precision, Scale: scale}
		out, err := AppendTyped([]byte("keep"), spec, []byte(raw))
		if !bytes.HasPrefix(out, []byte("keep")) {
			t.Fatal("earlier output was overwritten")
		}
		if err != nil {
			if len(out) != 4 {
				t.Fatal("a refused value left octets behind")
			}
			return
		}
		if !json.Valid([]byte(raw)) {
			t.Fatalf("accepted %q, which is not JSON", raw)
		}
		if out[4] != typ || out[5] > present || out[5] == absent && len(out) != 6 {
			t.Fatalf("malformed head %x", out[4:6])
		}
		if canonical, err := jcs.Transform([]byte(raw)); err != nil {
			t.Fatalf("accepted %q: %v", raw, err)
		} else if again, err := AppendTyped(nil, spec, canonical); err != nil || !bytes.Equal(again, out[4:]) {
			t.Fatalf("%q and its canonical spelling differ: %v", raw, err)
		}
	})
}

func FuzzPortableJSON(f *testing.F) {
	for _, s := range []string{`{"b":[1,2.5,"x"],"a":{}}`, `"\u0001\ud83d\ude00"`, `{"\ufb33":1,"\ud83d\ude00":2}`,
		`1e21`, `-0`, `[[]]`, `{"a":1,"a":2}`, "\"\xff\"", `"\ufdd0"`, `"\u0000"`, `9007199254740993`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := PortableJSON(data)
		if err != nil {
			if CheckJSON(data) == nil {
				t.Fatalf("%q: the check accepts what the conversion refuses: %v", data, err)
			}
			return
		}
		again, err := PortableJSON(out)
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("%q is not a fixed point: %q, %v", out, again, err)
		}
		if (CheckJSON(data) == nil) != bytes.Equal(data, out) {
			t.Fatalf("%q: check and conversion disagree", data)
		}
	})
}

func FuzzFloat(f *testing.F) {
	for _, x := range []float64{0, 1, -1, 0.1, 1e21, 1e20, 1e-6, 1e-7, 5e-324, math.MaxFloat64, 123456789012345680000} {
		f.Add(math.Float64bits(x))
	}
	f.Fuzz(func(t *testing.T, bits uint64) {
		x := math.Float64frombits(bits)
		got, err := AppendFloat(nil, x)
		want, wantErr := jcs.NumberToJSON(x)
		if (err == nil) != (wantErr == nil) || err == nil && string(got) != want {
			t.Fatalf("have %q, %v; want %q, %v", got, err, want, wantErr)
		}
		if err != nil {
			return
		}
		if back, _ := strconv.ParseFloat(string(got), 64); back != x {
			t.Fatalf("%q reads back as %v", got, back)
		}
	})
}

func FuzzManifest(f *testing.F) {
	for _, v := range vectors(f) {
		if v.Kind == "schema_manifest" {
			f.Add(decode[struct {
				Manifest string `json:"manifest_json"`
			}](v.Input).Manifest)
		}
	}
	f.Fuzz(func(t *testing.T, body string) {
		m, err := ParseManifest([]byte(body))
		if err != nil {
			return
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseManifest(again); err != nil {
			t.Fatalf("an accepted manifest is refused when written back: %v", err)
		}
		if _, err := m.Prepare(); err != nil {
			t.Fatalf("an accepted manifest cannot be prepared: %v", err)
		}
	})
}

func FuzzIdentity(f *testing.F) {
	f.Add(appendIdentityPrefix(nil, "t", "f"))
	f.Add(append(appendIdentityPrefix(nil, "t", "f"), 2, 1, 0, 0, 0, 1))
	f.Add(append(appendIdentityPrefix(nil, "t", "f"), 1, 1, 0, 0, 0, 0, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, identity []byte) {
		if CheckIdentity(identity) == nil && CheckIdentity(append(identity[:len(identity):len(identity)], 0)) == nil {
			t.Fatal("an identity with a trailing octet is one too")
		}
	})
}

func FuzzBatch(f *testing.F) {
	for _, v := range vectors(f) {
		if v.Kind == "batch_fingerprint" {
			f.Add(decode[struct {
				User  string `json:"authenticated_user_id"`
				Batch string `json:"batch_json"`
			}](v.Input).Batch)
		}
	}
	f.Fuzz(func(t *testing.T, body string) {
		b, err := ParseListedBatch([]byte(body))
		if err != nil {
			return
		}
		data, err := b.fingerprintInput("u")
		if err != nil {
			t.Fatalf("an accepted batch has no fingerprint: %v", err)
		}
		text := data[len(domainBatch):]
		if canonical, err := jcs.Transform(text); err != nil || !bytes.Equal(canonical, text) {
			t.Fatalf("fingerprint input is not RFC 8785: %v", err)
		}
	})
}

// FuzzRow: what is accepted is JSON without a repeated member, in any order of
// members and blanks.
func FuzzRow(f *testing.F) {
	table, row, version := fullRow(f)
	f.Add(row)
	f.Add(strings.ReplaceAll(row, ",", " ,\n"))
	f.Add(strings.Replace(row, "12.34", `12.3\u0034`, 1))
	f.Fuzz(func(t *testing.T, row string) {
		var sum [HashSize]byte
		if err := table.RowDigest(&sum, nil, []byte(row), version); err != nil {
			return
		}
		if err := ijson.Validate([]byte(row), 2); err != nil {
			t.Fatalf("accepted %q: %v", row, err)
		}
		canonical, err := jcs.Transform([]byte(row))
		if err != nil {
			t.Fatalf("accepted %q: %v", row, err)
		}
		var again [HashSize]byte
		if err := table.RowDigest(&again, nil, canonical, version); err != nil || again != sum {
			t.Fatalf("%q: the canonical spelling gives %x, %v", row, again, err)
		}
	})
}
