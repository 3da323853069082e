package systest

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"synchro/internal/pgtest"
)

// vector is one case of canonical/testdata/canonical.json.
type vector struct {
	ID       string          `json:"vector_id"`
	Kind     string          `json:"kind"`
	Valid    bool            `json:"valid"`
	Input    json.RawMessage `json:"input"`
	Expected struct {
		Bytes string `json:"canonical_bytes_hex"`
		Hash  string `json:"expected_sha256"`
	} `json:"expected"`
}

// vectorInput has the members of every kind's input.
type vectorInput struct {
	FieldSpec     json.RawMessage `json:"field_spec"`
	Raw           string          `json:"raw_json"`
	Manifest      string          `json:"manifest_json"`
	TableID       string          `json:"table_id"`
	Key           string          `json:"pk_json"`
	Row           string          `json:"row_json"`
	ServerVersion string          `json:"server_version"`
	SchemaHash    string          `json:"schema_hash"`
	ScopeID       string          `json:"scope_id"`
	Entries       []struct {
		Identity string `json:"row_identity_hex"`
		Digest   string `json:"row_digest_hex"`
	} `json:"entries"`
	User     string `json:"authenticated_user_id"`
	ClientID string `json:"client_id"`
	Batch    string `json:"batch_json"`
	Mutation string `json:"mutation_json"`
}

// vectorCall is the SQL call for a kind of vectors. It returns octets; hash says that they are the hash, not the canonical octets.
type vectorCall struct {
	sql  string
	args func(in vectorInput) []any
	hash bool
}

var vectorCalls = map[string]vectorCall{
	"typed_value": {"SELECT synchro._typed_value($1::text::json, $2::text::json)",
		func(in vectorInput) []any { return []any{string(in.FieldSpec), in.Raw} }, false},
	"row_identity": {"SELECT synchro._verify_identity($1::text::json, $2, $3::text::json)",
		func(in vectorInput) []any { return []any{in.Manifest, in.TableID, in.Key} }, false},
	"row_digest": {"SELECT synchro._verify_row_digest($1::text::json, $2, $3::text::json, $4::text::json, $5)",
		func(in vectorInput) []any { return []any{in.Manifest, in.TableID, in.Key, in.Row, in.ServerVersion} }, true},
	"scope_digest": {"SELECT decode(synchro._verify_scope_digest($1, $2, $3, $4), 'hex')",
		func(in vectorInput) []any {
			identities, digests := [][]byte{}, [][]byte{}
			for _, e := range in.Entries {
				identity, _ := hex.DecodeString(e.Identity)
				digest, _ := hex.DecodeString(e.Digest)
				identities, digests = append(identities, identity), append(digests, digest)
			}
			return []any{in.SchemaHash, in.ScopeID, identities, digests}
		}, true},
	"schema_manifest": {"SELECT decode(synchro._manifest_hash($1::text::json), 'hex')",
		func(in vectorInput) []any { return []any{in.Manifest} }, true},
	"batch_fingerprint": {"SELECT synchro._batch_fingerprint($1, $2::text::json, true)",
		func(in vectorInput) []any { return []any{in.User, in.Batch} }, true},
	"mutation_fingerprint": {"SELECT synchro._mutation_fingerprint($1, $2, $3::text::json, true)",
		func(in vectorInput) []any { return []any{in.User, in.ClientID, in.Mutation} }, true},
}

// refusals are the SQLSTATEs by which the functions refuse input.
var refusals = map[string]bool{"22023": true, "22P02": true, "SY001": true}

func readTestdata(t testing.TB, name string, into any) {
	t.Helper()
	repo, err := pgtest.RepoDir()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(repo, "canonical/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// TestVectorsInTheServer runs every vector through the C implementation.
func TestVectorsInTheServer(t *testing.T) {
	t.Parallel()
	conn := pgtest.StartWithExtension(t, pgtest.Config{NoWorker: true}).Connect(t, "", "")
	var file struct{ Vectors []vector }
	readTestdata(t, "canonical.json", &file)
	if len(file.Vectors) == 0 {
		t.Fatal("no vectors")
	}
	for _, v := range file.Vectors {
		t.Run(v.ID, func(t *testing.T) { runVector(t, conn, v) })
	}

	t.Run("float forms", func(t *testing.T) {
		var file struct {
			Cases []struct{ Source, Canonical string }
		}
		readTestdata(t, "float-wire.json", &file)
		for _, c := range file.Cases {
			for _, sql := range []string{"SELECT synchro._jcs($1::text::json)", "SELECT synchro._jcs(to_json($1::text::float8))"} {
				var got string
				if err := conn.QueryRow(context.Background(), sql, c.Source).Scan(&got); err != nil || got != c.Canonical {
					t.Errorf("%s of %s: have %q, %v; want %q", sql, c.Source, got, err, c.Canonical)
				}
			}
		}
		if len(file.Cases) == 0 {
			t.Fatal("no cases")
		}
	})
}

func runVector(t *testing.T, conn *pgx.Conn, v vector) {
	call, known := vectorCalls[v.Kind]
	if !known {
		t.Fatalf("no call for kind %q", v.Kind)
	}
	var in vectorInput
	if err := json.Unmarshal(v.Input, &in); err != nil {
		t.Fatal(err)
	}
	var got []byte
	err := conn.QueryRow(context.Background(), call.sql, call.args(in)...).Scan(&got)
	if !v.Valid {
		var pgErr *pgconn.PgError
		if !errors.As(err, &pgErr) || !refusals[pgErr.Code] {
			t.Fatalf("want a refusal, have %x, %v", got, err)
		}
		return
	}
	want := v.Expected.Bytes
	if call.hash {
		want = v.Expected.Hash
	}
	if have := hex.EncodeToString(got); err != nil || have != want {
		t.Fatalf("%v\n have %s\n want %s", err, have, want)
	}
}
