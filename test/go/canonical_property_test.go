package systest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"synchro/canonical"
	"synchro/internal/pgtest"
)

const (
	propRelation = 9000001
	propVersion  = 9000001
	propTable    = "70000000-0000-4000-8000-000000000001"
	propRows     = 300
)

// canonicalForms are the bytes of one row.
type canonicalForms struct{ row, digest, identity []byte }

// TestCanonicalRowsOfRandomValues makes rows of random values of every type and checks that their forms depend on no setting, that the
// Go implementation computes the same digest from the delivered row, and that the wire values write the same row again.
func TestCanonicalRowsOfRandomValues(t *testing.T) {
	t.Parallel()
	conn := pgtest.StartWithExtension(t, pgtest.Config{NoWorker: true}).Connect(t, "", "")
	table := prepareProperty(t, conn)
	want := readForms(t, conn, "prop")
	if len(want) != propRows {
		t.Fatalf("%d rows", len(want))
	}

	t.Run("Go agrees", func(t *testing.T) {
		digester := table.NewDigester()
		for key, forms := range want {
			digest, err := digester.Row(forms.row, "version 1")
			if err != nil || !bytes.Equal(digest[:], forms.digest) || !bytes.Equal(digester.Identity(), forms.identity) {
				t.Fatalf("row %s: %v\n%s", key, err, forms.row)
			}
		}
	})

	for _, settings := range []string{
		"SET datestyle = 'SQL, DMY'; SET timezone = 'Asia/Kathmandu'; SET intervalstyle = 'sql_standard'; SET extra_float_digits = -15; SET bytea_output = 'escape'",
		"SET datestyle = 'German'; SET timezone = 'America/St_Johns'; SET intervalstyle = 'iso_8601'; SET extra_float_digits = 3; SET array_nulls = off",
		"SET datestyle = 'Postgres, MDY'; SET timezone = 'Pacific/Chatham'; SET intervalstyle = 'postgres_verbose'; SET extra_float_digits = 0",
	} {
		t.Run(settings, func(t *testing.T) {
			execSQL(t, conn, settings)
			defer execSQL(t, conn, "RESET ALL")
			checkForms(t, want, readForms(t, conn, "prop"))
		})
	}

	t.Run("wire values write the same row", func(t *testing.T) {
		execSQL(t, conn, "CREATE TABLE prop_copy (LIKE prop)")
		execSQL(t, conn, "SET datestyle = 'SQL, DMY'; SET timezone = 'Asia/Kathmandu'; SET intervalstyle = 'postgres_verbose'")
		defer execSQL(t, conn, "RESET ALL")
		var columns, values []string
		for _, c := range propColumns() {
			columns = append(columns, c.name)
			values = append(values, fmt.Sprintf("synchro._wire_value('%s', j->'%s', '%s'::regtype)::%s", c.portable, propFieldID(c.name), c.sqlType, c.sqlType))
		}
		execSQL(t, conn, fmt.Sprintf("INSERT INTO prop_copy (%s) SELECT %s FROM (SELECT synchro._row_json(%d, %d, prop)::json AS j FROM prop) x",
			strings.Join(columns, ", "), strings.Join(values, ", "), propRelation, propVersion))
		checkForms(t, want, readForms(t, conn, "prop_copy"))
	})
}

func checkForms(t *testing.T, want, have map[string]canonicalForms) {
	t.Helper()
	if len(have) != len(want) {
		t.Fatalf("%d rows instead of %d", len(have), len(want))
	}
	for key, forms := range have {
		if !bytes.Equal(forms.row, want[key].row) || !bytes.Equal(forms.digest, want[key].digest) {
			t.Fatalf("row %s:\n have %s\n want %s", key, forms.row, want[key].row)
		}
	}
}

func readForms(t *testing.T, conn *pgx.Conn, table string) map[string]canonicalForms {
	t.Helper()
	rows, err := conn.Query(context.Background(), fmt.Sprintf(`SELECT p.id, synchro._row_json($1, $2, p), synchro._row_digest($1, $2, p, 'version 1'),
		synchro._row_identity($1, $2, p.id) FROM %s p`, table), propRelation, propVersion)
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]canonicalForms{}
	var key, row string
	var digest, identity []byte
	if _, err := pgx.ForEachRow(rows, []any{&key, &row, &digest, &identity}, func() error {
		forms[key] = canonicalForms{[]byte(row), bytes.Clone(digest), bytes.Clone(identity)}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return forms
}

func execSQL(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}

func propColumns() []valueColumn {
	return append([]valueColumn{{"id", "text", "string", false, nil}}, valueColumns...)
}

// propFieldID scatters field ids over the column order.
func propFieldID(column string) string {
	sum := uint64(14695981039346656037)
	for _, c := range []byte(column) {
		sum = (sum ^ uint64(c)) * 1099511628211
	}
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(sum>>32), sum&0xFFFFFFFFFFFF)
}

// prepareProperty makes table prop, its description in the server and the same manifest in Go.
func prepareProperty(t *testing.T, conn *pgx.Conn) *canonical.Table {
	t.Helper()
	var definitions []string
	var fields []canonical.FieldDef
	for _, c := range propColumns() {
		definitions = append(definitions, c.name+" "+c.sqlType)
		fields = append(fields, canonical.FieldDef{FieldID: propFieldID(c.name), Name: c.name, Type: c.portable,
			Nullable: c.name != "id", Writable: c.name != "id"})
	}
	execSQL(t, conn, `CREATE TYPE prop_color AS ENUM ('red', 'Grün', 'NULL', 'a,"b\c')`)
	execSQL(t, conn, "CREATE TABLE prop ("+strings.Join(definitions, ", ")+", PRIMARY KEY (id))")
	insertRandomRows(t, conn)

	manifest := canonical.Manifest{SchemaVersion: propVersion, TransitionClass: canonical.Initial, CompatibilityFloor: propVersion,
		Tables: []canonical.TableDef{{TableID: propTable, RelationID: propTable, Name: "prop", Composition: canonical.SingleScope,
			PrimaryKeyFieldID: propFieldID("id"), Fields: fields, Indexes: []canonical.IndexDef{}}}}
	if err := manifest.Seal(); err != nil {
		t.Fatal(err)
	}
	checkManifestHash(t, conn, &manifest)
	execSQL(t, conn, fmt.Sprintf("INSERT INTO synchro.manifest VALUES (%d, '%s', NULL, 'initial', %[1]d, '{}')", propVersion, manifest.SchemaHash))
	execSQL(t, conn, fmt.Sprintf(`INSERT INTO synchro.relation (rel_no, table_id, physical_schema, physical_relation, relation_oid) OVERRIDING SYSTEM VALUE
		VALUES (%d, '%s', 'public', 'prop', 'prop'::regclass)`, propRelation, propTable))
	for i, c := range propColumns() {
		execSQL(t, conn, fmt.Sprintf("INSERT INTO synchro.manifest_field VALUES (%d, %d, '%s', '%s', %d, synchro._portable_type('%s'::regtype, %t), %[7]t, true, true, %t)",
			propVersion, propRelation, propFieldID(c.name), c.name, i+1, c.sqlType, c.asText, c.name == "id"))
	}
	tables, err := manifest.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	return tables[propTable]
}

// checkManifestHash compares the two implementations on a body in another order.
func checkManifestHash(t *testing.T, conn *pgx.Conn, m *canonical.Manifest) {
	t.Helper()
	shuffled := *m
	shuffled.Tables = []canonical.TableDef{m.Tables[0]}
	shuffled.Tables[0].Fields = append([]canonical.FieldDef(nil), m.Tables[0].Fields...)
	sort.Slice(shuffled.Tables[0].Fields, func(i, j int) bool {
		return shuffled.Tables[0].Fields[i].Name > shuffled.Tables[0].Fields[j].Name
	})
	body, err := json.Marshal(&shuffled)
	if err != nil {
		t.Fatal(err)
	}
	var hash string
	if err := conn.QueryRow(context.Background(), "SELECT synchro._manifest_hash($1::text::json)", string(body)).Scan(&hash); err != nil || hash != m.SchemaHash {
		t.Fatalf("manifest hash: have %s, %v; want %s", hash, err, m.SchemaHash)
	}
}

func insertRandomRows(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	const seed = 20240229
	r := rand.New(rand.NewPCG(seed, seed))
	var names, casts []string
	for i, c := range propColumns() {
		names = append(names, c.name)
		casts = append(casts, fmt.Sprintf("$%d::text::%s", i+1, c.sqlType))
	}
	insert := fmt.Sprintf("INSERT INTO prop (%s) VALUES (%s)", strings.Join(names, ", "), strings.Join(casts, ", "))
	for i := range propRows {
		args := []any{fmt.Sprintf("%d-%s", i, randomText(r))}
		for _, c := range valueColumns {
			if r.IntN(8) == 0 {
				args = append(args, nil)
				continue
			}
			args = append(args, c.random(r))
		}
		if _, err := conn.Exec(context.Background(), insert, args...); err != nil {
			t.Fatalf("row %d: %v", i, err)
		}
	}
}
