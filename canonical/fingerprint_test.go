package canonical

import (
	"strings"
	"testing"
)

// wireSpelling rewrites the list form of a vector as a request.
func wireSpelling(listed string) string {
	return strings.NewReplacer(
		`"request_schema":`, `"schema":`, `"table_id":`, `"table":`, `"operation":`, `"op":`,
		`{"field_id":"fld_id","value":"mut-insert"}`, `{"fld_id":"mut-insert"}`,
		`{"field_id":"fld_id","value":"mut-delete"}`, `{"fld_id":"mut-delete"}`,
		`[{"field_id":"fld_text","value":"z"},{"field_id":"fld_bool","value":true}]`, ` {"fld_text":"z", "fld_bool":true}`,
	).Replace(listed)
}

func TestBothSpellingsHaveOneFingerprint(t *testing.T) {
	compared := 0
	for _, v := range vectors(t) {
		if v.Kind != "batch_fingerprint" || !v.Valid {
			continue
		}
		t.Run(v.ID, func(t *testing.T) {
			in := decode[struct {
				User  string `json:"authenticated_user_id"`
				Batch string `json:"batch_json"`
			}](v.Input)
			b, err := ParseBatch([]byte(wireSpelling(in.Batch)))
			if err != nil {
				t.Fatal(err)
			}
			sum, err := b.Fingerprint(in.User)
			if err != nil || HexDigest(sum) != *v.Expected.SHA256 {
				t.Errorf("got %x, %v", sum, err)
			}
		})
		compared++
	}
	if compared == 0 {
		t.Fatal("nothing compared")
	}
}

func soundBatch(t *testing.T) (*Batch, string) {
	for _, v := range vectors(t) {
		if v.ID == "VEC-BATCH-ORDERED-001" {
			in := decode[struct {
				User  string `json:"authenticated_user_id"`
				Batch string `json:"batch_json"`
			}](v.Input)
			b, err := ParseListedBatch([]byte(in.Batch))
			if err != nil {
				t.Fatal(err)
			}
			return b, in.User
		}
	}
	t.Fatal("no sound batch among the vectors")
	return nil, ""
}

func TestFingerprintBindsEverything(t *testing.T) {
	base, user := soundBatch(t)
	want, err := base.Fingerprint(user)
	if err != nil {
		t.Fatal(err)
	}
	for what, bend := range map[string]func(b *Batch){
		"client":         func(b *Batch) { b.ClientID += "x" },
		"generation":     func(b *Batch) { b.Generation++ },
		"batch id":       func(b *Batch) { b.ID = "00000000-0000-4000-8000-000000000011" },
		"schema version": func(b *Batch) { b.Schema.Version++ },
		"atomic":         func(b *Batch) { b.Atomic = true },
		"order":          func(b *Batch) { b.Mutations[0], b.Mutations[1] = b.Mutations[1], b.Mutations[0] },
		"value":          func(b *Batch) { b.Mutations[0].Columns[0].JSON = []byte(`false`) },
		"null":           func(b *Batch) { b.Mutations[0].Columns[0].JSON = []byte(`null`) },
		"absence":        func(b *Batch) { b.Mutations[0].Columns = b.Mutations[0].Columns[1:] },
		"client version": func(b *Batch) { b.Mutations[0].ClientVersion = "2024-02-29T12:34:56.123457Z" },
		"base version":   func(b *Batch) { b.Mutations[1].BaseVersion += "x" },
	} {
		t.Run(what, func(t *testing.T) {
			b, user := soundBatch(t)
			bend(b)
			if err := b.Validate(); err != nil {
				t.Fatal(err)
			}
			if got, err := b.Fingerprint(user); err != nil || got == want {
				t.Errorf("got %x, %v", got, err)
			}
		})
	}
	if got, err := base.Fingerprint(user + "x"); err != nil || got == want {
		t.Errorf("another user: %x, %v", got, err)
	}
}

func TestMutationMovesToASuccessorBatch(t *testing.T) {
	b, user := soundBatch(t)
	want, err := b.Mutations[0].Fingerprint(user, b.ClientID)
	if err != nil {
		t.Fatal(err)
	}
	b.Generation, b.Schema.Version, b.ID = 99, 99, "00000000-0000-4000-8000-000000000099"
	if got, err := b.Mutations[0].Fingerprint(user, b.ClientID); err != nil || got != want {
		t.Errorf("got %x, %v", got, err)
	}
}

func TestFingerprintNeedsAUser(t *testing.T) {
	b, _ := soundBatch(t)
	for _, user := range []string{"", strings.Repeat("u", 256), "u\x00", "\xff"} {
		if _, err := b.Fingerprint(user); err == nil {
			t.Errorf("user of %d octets is accepted", len(user))
		}
	}
	if _, err := b.Fingerprint(strings.Repeat("u", 255)); err != nil {
		t.Error(err)
	}
}

func TestNormalizedSizeIsThatOfTheArray(t *testing.T) {
	b, user := soundBatch(t)
	data, err := b.Mutations[0].fingerprintInput(user, b.ClientID)
	if err != nil {
		t.Fatal(err)
	}
	around := len(domainMutation) + len(`["mutation-scope-v1","","",]`) + len(user) + len(b.ClientID)
	if n, err := b.Mutations[0].NormalizedSize(); err != nil || n != len(data)-around {
		t.Errorf("got %d, %v; want %d", n, err, len(data)-around)
	}
}
