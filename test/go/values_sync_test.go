package systest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"synchro/canonical"
	"synchro/client"
	"synchro/internal/pgtest"
)

// strangeApp has names and types of every kind, twice under the same table name.
const strangeApp = `
CREATE SCHEMA "Sché ma";
CREATE SCHEMA other;
CREATE TYPE "Sché ma"."Color" AS ENUM ('RED', 'Grün', 'o''hare');
CREATE DOMAIN "Sché ma"."Posi tive" AS int CHECK (VALUE > 0);
CREATE TABLE "Sché ma"."Or""der" (
  "I d" uuid PRIMARY KEY, owner text NOT NULL, "select" text, "1st" "Sché ma"."Posi tive", "Farbe ö" "Sché ma"."Color", colors "Sché ma"."Color"[],
  f1 float8, f2 float8, f3 float8, f4 float8, f5 float4, f6 float4, n1 numeric, n2 numeric(10,2), i8 int8, yes bool,
  ts timestamptz, tn timestamp, d date, t time, iv interval, tz timetz, r tstzrange, by bytea, j json, jb jsonb, ia int[], ta text[], fa float8[],
  big text, twice int8 GENERATED ALWAYS AS (i8 / 2) STORED);
ALTER TABLE "Sché ma"."Or""der" ALTER big SET STORAGE EXTERNAL;
CREATE TABLE other."Or""der" ("I d" int PRIMARY KEY, owner text NOT NULL);
DO $$
DECLARE
  v_table text;
BEGIN
  FOREACH v_table IN ARRAY ARRAY['"Sché ma"."Or""der"', 'other."Or""der"'] LOOP
    EXECUTE format('GRANT USAGE ON SCHEMA %s TO synchro_owner, synchro_worker, synchro_writer', split_part(v_table, '.', 1));
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON %1$s TO synchro_writer USING (true)', v_table);
    EXECUTE format('GRANT SELECT ON %s TO synchro_owner, synchro_worker; GRANT ALL ON %1$s TO synchro_writer', v_table);
  END LOOP;
END $$;
SELECT synchro.synchro_prepare_projection_view('"Sché ma"."Or""der"', 'Vi"ew é', '{I d,owner}');
SELECT synchro.synchro_prepare_projection_view('other."Or""der"', 'order', '{I d,owner}');
CREATE FUNCTION "Sché ma"."sco pes"(p_row_key uuid) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'user:' || v.owner FROM synchro_projection."Vi""ew é" v WHERE v."I d" = p_row_key; END;
CREATE FUNCTION other.scopes(p_row_key int) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'user:' || v.owner FROM synchro_projection."order" v WHERE v."I d" = p_row_key; END;
REVOKE EXECUTE ON FUNCTION "Sché ma"."sco pes"(uuid), other.scopes(int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION "Sché ma"."sco pes"(uuid), other.scopes(int) TO synchro_worker;`

// strangeRow inserts a row; $1 is its key.
const strangeRow = `INSERT INTO "Sché ma"."Or""der" VALUES ($1, 'ada', 'where', 7, 'Grün', '{RED,o''hare}',
  '0.1', '1e22', '5e-324', '-0', '16777217', '0.1', '123456789012345678901234567890.1230', '1.50', '9007199254740993', true,
  '2024-02-29 12:34:56.789+05:45', '1999-12-31 23:59:59.999999', '2024-02-29', '23:59:59.5', '1 year 2 mons -3 days 04:05:06.7', '12:00:00+05:45',
  '[2024-01-01 00:00:00+00,2024-06-01 00:00:00+02)', '\x00ff10fe', '{"b": 1.0, "a": [true, null, "é"]}', '{"b": 1.50, "a": "\u20ac"}',
  '{1,NULL,-3}', '{"a b",NULL,"NULL",""}', '{0.1,1e-7}', repeat('long ', 4000))`

// strangeWire is that row on the wire, without its key and the long value, whatever a session's settings are.
var strangeWire = map[string]string{
	"owner": `"ada"`, "select": `"where"`, "1st": `7`, "Farbe ö": `"Grün"`, "colors": `"[\"RED\",\"o'hare\"]"`,
	"f1": `0.1`, "f2": `1e+22`, "f3": `5e-324`, "f4": `0`, "f5": `16777216`, "f6": `0.10000000149011612`,
	"n1": `"123456789012345678901234567890.123"`, "n2": `"1.5"`, "i8": `"9007199254740993"`, "yes": `true`,
	"ts": `"2024-02-29T06:49:56.789000Z"`, "tn": `"1999-12-31T23:59:59.999999Z"`, "d": `"2024-02-29"`, "t": `"23:59:59.500000"`,
	"iv": `"1 year 2 mons -3 days +04:05:06.7"`, "tz": `"12:00:00+05:45"`, "r": `"[\"2024-01-01 00:00:00+00\",\"2024-05-31 22:00:00+00\")"`,
	"by": `"AP8Q_g"`, "j": `"{\"a\":[true,null,\"é\"],\"b\":1}"`, "jb": `"{\"a\":\"€\",\"b\":1.5}"`,
	"ia": `"[1,null,-3]"`, "ta": `"[\"a b\",null,\"NULL\",\"\"]"`, "fa": `"[0.1,1e-7]"`, "twice": `"4503599627370496"`,
}

// wireRows are the rows of answered changes or records by column name.
func wireRows(t testing.TB, d *client.Session, table string, list []map[string]json.RawMessage) []map[string]string {
	t.Helper()
	names := map[string]string{}
	for _, f := range tableNamed(t, d, table).Fields {
		names[f.FieldID] = f.Name
	}
	var rows []map[string]string
	for _, entry := range list {
		var columns map[string]json.RawMessage
		if string(entry["table"]) != `"`+tableNamed(t, d, table).TableID+`"` || entry["row"] == nil {
			continue
		}
		if err := json.Unmarshal(entry["row"], &columns); err != nil {
			t.Fatal(err)
		}
		row := map[string]string{}
		for id, value := range columns {
			row[names[id]] = string(value)
		}
		rows = append(rows, row)
	}
	return rows
}

func tableNamed(t testing.TB, d *client.Session, name string) *canonical.TableDef {
	t.Helper()
	var names []string
	for i := range d.Manifest().Tables {
		if d.Manifest().Tables[i].Name == name {
			return &d.Manifest().Tables[i]
		}
		names = append(names, d.Manifest().Tables[i].Name)
	}
	t.Fatalf("the manifest has no table %q, it has %q", name, names)
	return nil
}

// A database and roles with settings that change every text form: the same row is the same octets from the baseline, the
// stream, a pull, a rebuild and the outcome of a push, and every digest holds. So it is with unusual names, with quoted and
// unicode types, and with two tables of one name.
func TestSettingsAndNamesDoNotReachTheWire(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{})
	for _, target := range []string{"DATABASE app", "ROLE synchro_shim", "ROLE synchro_worker_login"} {
		if target == "ROLE synchro_worker_login" {
			target = "ROLE " + a.value("SELECT quote_ident(m.member::regrole::text) FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member WHERE m.roleid = 'synchro_worker'::regrole AND r.rolcanlogin")
		}
		for _, setting := range []string{"datestyle = 'SQL, DMY'", "timezone = 'Asia/Kathmandu'", "intervalstyle = 'sql_standard'", "extra_float_digits = 0",
			"bytea_output = 'escape'", "lc_monetary = 'C'", "search_path = app", "standard_conforming_strings = off", "array_nulls = off",
			"default_transaction_isolation = 'repeatable read'", "enable_hashagg = off", "xmlbinary = 'hex'", "quote_all_identifiers = on", "row_security = on",
			"statement_timeout = 200", "idle_in_transaction_session_timeout = 200", "default_transaction_read_only = on", "default_transaction_deferrable = on",
			"constraint_exclusion = on", "client_min_messages = debug1", "application_name = ''", "role = none"} {
			a.exec("ALTER " + target + " SET " + setting)
		}
	}
	a.restart(pgtest.Fast)
	a.restartShim()
	a.db = a.Connect(t, "", "")
	a.exec("SET default_transaction_read_only = off; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET datestyle = 'ISO, YMD'; SET array_nulls = on; SET standard_conforming_strings = on")
	a.exec("BEGIN ISOLATION LEVEL READ COMMITTED;" + strangeApp + "COMMIT")
	baselined, streamed, pushed := uuid.NewString(), uuid.NewString(), uuid.NewString()
	a.exec(strangeRow, baselined)
	a.exec(`INSERT INTO other."Or""der" VALUES (1, 'ada'), (2, 'bob')`)
	a.exec(`BEGIN ISOLATION LEVEL READ COMMITTED; SELECT synchro.synchro_register_table('"Sché ma"."Or""der"', '"Sché ma"."sco pes"', p_pk_column => 'I d');
		SELECT synchro.synchro_register_table('other."Or""der"', 'other.scopes', p_pk_column => 'I d'); COMMIT`)
	a.awaitReady()
	a.materialized()
	ada, bob := a.synced("ada", "ada-1"), a.synced("bob", "bob-1")
	if ada.Rows("user:ada") != 2 || bob.Rows("user:bob") != 1 {
		t.Fatalf("%d and %d rows", ada.Rows("user:ada"), bob.Rows("user:bob"))
	}
	name := `Sché ma.Or"der`

	cursor := a.rebuildCursor(ada)
	a.exec(strangeRow, streamed)
	// An update that leaves the long value where it is.
	a.exec(`UPDATE "Sché ma"."Or""der" SET "1st" = "1st" WHERE "I d" = $1`, streamed)
	columns := noteColumns{"big": quoted(t, a.value("SELECT repeat('long ', 4000)"))}
	for column, value := range strangeWire {
		if column != "twice" {
			columns[column] = value
		}
	}
	answer, err := ada.Push(context.Background(), []canonical.Mutation{tableMutation(tableNamed(t, ada, name), "insert", quoted(t, pushed), "", columns)}, false)
	if err != nil || len(answer.Accepted) != 1 {
		t.Fatalf("push: %+v %v", answer, err)
	}
	a.materialized()

	check := func(where string, rows []map[string]string, count int) {
		t.Helper()
		if len(rows) != count {
			t.Errorf("%s: %d rows, want %d", where, len(rows), count)
		}
		for _, row := range rows {
			for column, want := range strangeWire {
				if row[column] != want {
					t.Errorf("%s: %s is %s, want %s", where, column, row[column], want)
				}
			}
			if row["big"] != columns["big"] {
				t.Errorf("%s: the long value differs: %d octets", where, len(row["big"]))
			}
		}
	}
	check("rebuild", wireRows(t, ada, name, a.post("ada", "rebuild", rebuildBody(t, ada, "user:ada", uuid.NewString(), nil, 1000)).page(t).Records), 3)
	check("pull", wireRows(t, ada, name, a.post("ada", "pull", pullBody(t, ada, 1000, cursor)).page(t).Changes), 2)
	outcome := map[string]json.RawMessage{"table": []byte(quoted(t, answer.Accepted[0].Row.Table)), "row": answer.Accepted[0].Row.Columns}
	check("outcome", wireRows(t, ada, name, []map[string]json.RawMessage{outcome}), 1)
	a.wantRows(ada, "user:ada", 4)
	a.wantRows(a.synced("ada", "ada-2"), "user:ada", 4)

	// Names in the manifest are the human ones; equal ones are told apart by their schema.
	tableNamed(t, ada, `other.Or"der`)
}

func quoted(t testing.TB, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A value that has no portable form is refused where it is written, with the column's name and a way out, and capture goes on.
func TestValuesWithoutPortableFormAreRefusedAtTheWriter(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{Settings: []string{"synchro.max_row_bytes = 1MB"}})
	a.exec(`CREATE TABLE app.v (id int PRIMARY KEY, f float8, n numeric, ts timestamptz, d date, j json, jb jsonb, a int[], s text, free timestamptz);
		GRANT SELECT ON app.v TO synchro_owner, synchro_worker;
		CREATE FUNCTION app.v_scopes(p_row_key int) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC SELECT 'user:ada'; END`)
	a.exec(`REVOKE EXECUTE ON FUNCTION app.v_scopes(int) FROM PUBLIC; GRANT EXECUTE ON FUNCTION app.v_scopes(int) TO synchro_worker`)
	a.exec(`SELECT synchro.synchro_register_table('app.v', 'app.v_scopes', p_push_policy => 'read_only', p_text_columns => '{free}')`)
	a.exec("INSERT INTO app.v (id) VALUES (0)")
	for column, values := range map[string][]string{
		"f": {"'NaN'", "'Infinity'", "'-Infinity'"}, "n": {"'NaN'", "'Infinity'"},
		"ts": {"'infinity'", "'0044-03-15 00:00:00 BC'", "'294276-12-31 00:00:00'"}, "d": {"'-infinity'", "'10000-01-01'"},
		"j":  {`'"\u0000"'`, `'{"a":1,"a":2}'`, `'9007199254740993'`, `'"\ud800"'`, `'1e400'`},
		"jb": {`'9007199254740993'`, `'1e400'`}, "a": {"'[0:1]={1,2}'", "'{{1,2},{3,4}}'"},
		"s": {"E'\\uFDD0'", "E'\\uFFFF'", "repeat('x', 2 << 20)"},
	} {
		for i, value := range values {
			for _, sql := range []string{fmt.Sprintf("INSERT INTO app.v (id, %s) VALUES (1, %s)", column, value), fmt.Sprintf("UPDATE app.v SET %s = %s", column, value)} {
				if _, err := a.db.Exec(context.Background(), sql); err == nil {
					t.Errorf("accepted: %s %d", column, i)
				}
			}
		}
	}
	a.exec("UPDATE app.v SET f = 1e308, n = '1e1000', ts = '9999-12-31 23:59:59.999999+00', d = '0001-01-01', j = 'null', jb = 'null', a = '{}', s = '', free = 'infinity'")
	a.materialized()
	d := a.synced("ada", "ada-1")
	row := wireRows(t, d, "v", a.post("ada", "rebuild", rebuildBody(t, d, "user:ada", uuid.NewString(), nil, 10)).page(t).Records)
	if len(row) != 1 || row[0]["free"] != `"infinity"` || row[0]["j"] != `"null"` || row[0]["s"] != `""` || row[0]["a"] != `"[]"` {
		t.Errorf("%v", row)
	}
}

// Random text, which no index compresses.
const longKey = `(SELECT string_agg(md5(n::text || 'k'), '') FROM generate_series(1, 100) n)`

// A key that the table's own index takes, but those of the extension do not, must not stop capture: it is refused where it is written, and
// where it was there before, the table is refused.
func TestLongKeysAreRefused(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{})
	a.exec(`CREATE TABLE app.v (id text PRIMARY KEY);
		GRANT SELECT ON app.v TO synchro_owner, synchro_worker;
		CREATE FUNCTION app.v_scopes(p_row_key text) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC SELECT 'user:ada'; END`)
	a.exec(`REVOKE EXECUTE ON FUNCTION app.v_scopes(text) FROM PUBLIC; GRANT EXECUTE ON FUNCTION app.v_scopes(text) TO synchro_worker`)
	register := `SELECT synchro.synchro_register_table('app.v', 'app.v_scopes', p_push_policy => 'read_only')`
	insert := func(octets int) error {
		_, err := a.db.Exec(context.Background(), fmt.Sprintf("INSERT INTO app.v SELECT left(k, %d) FROM (SELECT %s) l (k)", octets, longKey))
		return err
	}
	if err := insert(2690); err != nil {
		t.Fatal(err)
	}
	if _, err := a.db.Exec(context.Background(), register); sqlStateOf(err) != "SY115" {
		t.Errorf("registered in spite of a long key: %v", err)
	}
	a.exec("DELETE FROM app.v")
	a.exec(register)
	for _, octets := range []int{2049, 2690} {
		if err := insert(octets); sqlStateOf(err) != "54000" {
			t.Errorf("key of %d octets: %v", octets, err)
		}
	}
	if err := insert(2048); err != nil {
		t.Fatal(err)
	}
	a.materialized()
	d := a.synced("ada", "ada-1")
	rows := wireRows(t, d, "v", a.post("ada", "rebuild", rebuildBody(t, d, "user:ada", uuid.NewString(), nil, 10)).page(t).Records)
	if len(rows) != 1 {
		t.Errorf("%d rows", len(rows))
	}
	a.exec("DELETE FROM app.v")
	a.materialized()
}

// The scope of a user with the longest id is a scope as any other: it must neither stop capture nor be irrevocable.
func TestLongestUserHasAScope(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{})
	a.exec(`CREATE TABLE app.v (id int PRIMARY KEY, owner text);
		GRANT SELECT ON app.v TO synchro_owner, synchro_worker;
		SELECT synchro.synchro_prepare_projection_view('app.v', 'app_v', '{id,owner}')`)
	a.exec(`CREATE FUNCTION app.v_scopes(p_row_key int) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro BEGIN ATOMIC
		SELECT 'user:' || v.owner FROM synchro_projection.app_v v WHERE v.id = p_row_key; END`)
	a.exec(`REVOKE EXECUTE ON FUNCTION app.v_scopes(int) FROM PUBLIC; GRANT EXECUTE ON FUNCTION app.v_scopes(int) TO synchro_worker`)
	a.exec(`SELECT synchro.synchro_register_table('app.v', 'app.v_scopes', p_push_policy => 'read_only')`)
	user := strings.Repeat("é", 127) + "x"
	a.exec(fmt.Sprintf("INSERT INTO app.v VALUES (1, '%s')", user))
	a.materialized()
	d := a.synced(user, "ada-1")
	rows := wireRows(t, d, "v", a.post(user, "rebuild", rebuildBody(t, d, "user:"+user, uuid.NewString(), nil, 10)).page(t).Records)
	if len(rows) != 1 {
		t.Errorf("%d rows", len(rows))
	}
	a.exec(fmt.Sprintf("SELECT synchro.synchro_revoke_user_scope('%s', 'user:%[1]s')", user))
	if _, err := a.db.Exec(context.Background(), "SELECT synchro.synchro_grant_user_scope('ada', repeat('x', 256))"); sqlStateOf(err) != "22023" {
		t.Errorf("a long scope was granted: %v", err)
	}
}
