package systest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"synchro/internal/pgtest"
	"synchro/worker"
)

// depsApp: folders belong to an owner and have members (a join table that is only captured); notes lie in folders, tags hang on notes.
// All three are in the scopes of the folder's owner and members. A seat is in the scope of whoever sits lowest in its room.
const depsApp = `
CREATE SCHEMA lib;
CREATE TABLE lib.folder (id bigint PRIMARY KEY, owner text, title text);
CREATE TABLE lib.member (id bigint PRIMARY KEY, folder bigint NOT NULL REFERENCES lib.folder ON DELETE CASCADE, who text, remark text);
CREATE TABLE lib.note (id bigint PRIMARY KEY, folder bigint, body text, deleted_at timestamptz);
CREATE TABLE lib.tag (id bigint PRIMARY KEY, note bigint, label text);
CREATE TABLE lib.seat (id bigint PRIMARY KEY, room int, owner text);
GRANT USAGE ON SCHEMA lib TO synchro_owner, synchro_worker;
GRANT SELECT ON ALL TABLES IN SCHEMA lib TO synchro_owner, synchro_worker;
SELECT synchro.synchro_prepare_projection_view('lib.folder', 'folder', '{id,owner}');
SELECT synchro.synchro_prepare_projection_view('lib.member', 'member', '{id,folder,who}');
SELECT synchro.synchro_prepare_projection_view('lib.note', 'note', '{id,folder}');
SELECT synchro.synchro_prepare_projection_view('lib.tag', 'tag', '{id,note}');
SELECT synchro.synchro_prepare_projection_view('lib.seat', 'seat', '{id,room,owner}');
CREATE FUNCTION lib.folder_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC
  SELECT 'user:' || f.owner FROM synchro_projection.folder f WHERE f.id = p_row_key AND f.owner IS NOT NULL
  UNION ALL SELECT 'user:' || m.who FROM synchro_projection.folder f JOIN synchro_projection.member m ON m.folder = f.id
   WHERE f.id = p_row_key AND m.who IS NOT NULL;
END;
CREATE FUNCTION lib.note_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC
  SELECT 'user:' || f.owner FROM synchro_projection.note n JOIN synchro_projection.folder f ON f.id = n.folder
   WHERE n.id = p_row_key AND f.owner IS NOT NULL
  UNION ALL SELECT 'user:' || m.who FROM synchro_projection.note n JOIN synchro_projection.member m ON m.folder = n.folder
   WHERE n.id = p_row_key AND m.who IS NOT NULL;
END;
CREATE FUNCTION lib.tag_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC
  SELECT 'user:' || f.owner FROM synchro_projection.tag t JOIN synchro_projection.note n ON n.id = t.note
    JOIN synchro_projection.folder f ON f.id = n.folder WHERE t.id = p_row_key AND f.owner IS NOT NULL
  UNION ALL SELECT 'user:' || m.who FROM synchro_projection.tag t JOIN synchro_projection.note n ON n.id = t.note
    JOIN synchro_projection.member m ON m.folder = n.folder WHERE t.id = p_row_key AND m.who IS NOT NULL;
END;
CREATE FUNCTION lib.seat_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC
  SELECT 'room:' || (SELECT o.owner FROM synchro_projection.seat o WHERE o.room = s.room ORDER BY o.id LIMIT 1)
    FROM synchro_projection.seat s WHERE s.id = p_row_key
     AND (SELECT o.owner FROM synchro_projection.seat o WHERE o.room = s.room ORDER BY o.id LIMIT 1) IS NOT NULL;
END;`

// depsRules are the same rules over the source tables: key and scope of every row.
var depsRules = map[string]string{
	"folder": `SELECT f.id, 'user:' || f.owner AS scope FROM lib.folder f WHERE f.owner IS NOT NULL
	  UNION SELECT m.folder, 'user:' || m.who FROM lib.member m WHERE m.who IS NOT NULL`,
	"note": `SELECT n.id, 'user:' || f.owner AS scope FROM lib.note n JOIN lib.folder f ON f.id = n.folder WHERE f.owner IS NOT NULL
	  UNION SELECT n.id, 'user:' || m.who FROM lib.note n JOIN lib.member m ON m.folder = n.folder WHERE m.who IS NOT NULL`,
	"tag": `SELECT t.id, 'user:' || f.owner AS scope FROM lib.tag t JOIN lib.note n ON n.id = t.note JOIN lib.folder f ON f.id = n.folder WHERE f.owner IS NOT NULL
	  UNION SELECT t.id, 'user:' || m.who FROM lib.tag t JOIN lib.note n ON n.id = t.note JOIN lib.member m ON m.folder = n.folder WHERE m.who IS NOT NULL`,
	"seat": `SELECT s.id, 'room:' || f.owner AS scope FROM lib.seat s
	  JOIN (SELECT DISTINCT ON (room) room, owner FROM lib.seat ORDER BY room, id) f USING (room) WHERE f.owner IS NOT NULL`,
}

// depsImpacts: target, source, the source's columns that matter, and which target rows one image of the source row impacts ($1: the image).
var depsImpacts = [][4]string{
	{"folder", "member", "folder,who", "SELECT ($1->>'folder')"},
	{"note", "folder", "id,owner", "SELECT n.id::text FROM synchro_projection.note n WHERE n.folder = ($1->>'id')::bigint"},
	{"note", "member", "folder,who", "SELECT n.id::text FROM synchro_projection.note n WHERE n.folder = ($1->>'folder')::bigint"},
	{"tag", "note", "id,folder", "SELECT t.id::text FROM synchro_projection.tag t WHERE t.note = ($1->>'id')::bigint"},
	{"tag", "folder", "id,owner", "SELECT t.id::text FROM synchro_projection.tag t JOIN synchro_projection.note n ON n.id = t.note WHERE n.folder = ($1->>'id')::bigint"},
	{"tag", "member", "folder,who", "SELECT t.id::text FROM synchro_projection.tag t JOIN synchro_projection.note n ON n.id = t.note WHERE n.folder = ($1->>'folder')::bigint"},
	{"seat", "seat", "id,room,owner", "SELECT o.id::text FROM synchro_projection.seat o WHERE o.room = ($1->>'room')::int"},
}

var depsTables = []string{"folder", "note", "tag", "seat"}

// depsCore is a worker over depsApp, which is not registered yet.
func depsCore(t testing.TB, cfg pgtest.Config) *core {
	t.Helper()
	c := newCore(t, cfg)
	c.exec(depsApp)
	for _, d := range depsImpacts {
		c.exec(fmt.Sprintf(`CREATE FUNCTION lib.%s_of_%s(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref
		  LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
		BEGIN ATOMIC
		  SELECT '%s'::text, 'int64'::text, k.k FROM (%s UNION %s) k(k) WHERE k.k IS NOT NULL;
		END`, d[0], d[1], c.value("SELECT synchro.synchro_table_id('lib."+d[0]+"')"),
			strings.ReplaceAll(d[3], "$1", "p_old_row"), strings.ReplaceAll(d[3], "$1", "p_new_row")))
	}
	c.exec(`DO $$ DECLARE f regprocedure; BEGIN
	  FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'lib'::regnamespace LOOP
	    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f);
	    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO synchro_worker', f);
	  END LOOP;
	END $$`)
	return c
}

// depsRegistration registers everything in one transaction, children before parents.
func depsRegistration(bound int) string {
	var b strings.Builder
	b.WriteString("BEGIN;\n")
	for _, t := range []string{"tag", "note", "folder", "seat"} {
		more := ""
		if t == "note" {
			more = ", p_deleted_at_col => 'deleted_at'"
		}
		fmt.Fprintf(&b, "SELECT synchro.synchro_register_table('lib.%s', 'lib.%[1]s_scopes', 'multi_scope', p_push_policy => 'read_only', p_max_scope_fanout => 100%s);\n", t, more)
	}
	b.WriteString("SELECT synchro.synchro_register_capture_dependency('lib.member', '{id}', '{folder,who}');\n")
	for _, d := range depsImpacts {
		fmt.Fprintf(&b, "SELECT synchro.synchro_register_membership_dependency('lib.%s', 'lib.%s', 'lib.%[2]s_of_%[1]s', '{%[3]s}', %d);\n", d[1], d[0], d[2], bound)
	}
	b.WriteString("COMMIT;")
	return b.String()
}

// depsStreaming is a worker that streams with depsApp registered.
func depsStreaming(t testing.TB, cfg pgtest.Config) *core {
	t.Helper()
	c := depsCore(t, cfg)
	c.exec(depsRegistration(1000))
	c.start()
	c.streaming()
	return c
}

// asRuled compares what is materialized with the rules over the source tables.
func (c *core) asRuled() {
	c.t.Helper()
	c.materialized()
	for _, table := range depsTables {
		rel := c.value("SELECT rel_no FROM synchro.relation WHERE physical_relation = $1 AND physical_schema = 'lib'", table)
		c.same("members of "+table,
			fmt.Sprintf(`SELECT s.scope_id COLLATE "C", e.key FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no) WHERE e.rel_no = %s AND e.state <> 'x'`, rel),
			fmt.Sprintf(`SELECT r.scope COLLATE "C", synchro._key_bytes('int64', r.id::text) FROM (%s) r`, depsRules[table]))
		c.same("entries of "+table,
			fmt.Sprintf("SELECT e.key, e.state::text, e.server_version, e.row_digest FROM synchro.scope_entry e WHERE e.rel_no = %s AND e.state <> 'x'", rel),
			fmt.Sprintf(`SELECT synchro._key_bytes('int64', p.c1::text), %[3]s, p.server_version,
			    synchro._row_digest(%[1]s, (SELECT schema_version FROM synchro.progress), p, p.server_version)
			  FROM synchro_data.r_%[1]s p JOIN (%[2]s) r ON r.id = p.c1`, rel, depsRules[table],
				map[bool]string{true: "CASE WHEN p.c4 IS NULL THEN 'l' ELSE 's' END", false: "'l'"}[table == "note"]))
		c.same("scopes of rows of "+table, fmt.Sprintf("SELECT synchro._key_bytes('int64', p.c1::text), s FROM synchro_data.r_%s p, unnest(p.scopes) s", rel),
			fmt.Sprintf("SELECT key, scope_no FROM synchro.scope_entry WHERE rel_no = %s AND state <> 'x'", rel))
	}
	member := c.value("SELECT rel_no FROM synchro.relation WHERE physical_relation = 'member'")
	c.same("projection of member", fmt.Sprintf("SELECT c1, c2, c3, row_xmin::text FROM synchro_data.r_%s", member), "SELECT id, folder, who, xmin::text FROM lib.member")
	c.want("SELECT count(*) FROM synchro.scope_entry WHERE rel_no = "+member, "0")
	c.numbered()
}

// numbered checks the positions: the effects of one event in one scope have the ordinals 0, 1, ... in the order of table ids and keys, and
// marks and progress are not behind. Effects that later ones replaced leave gaps, so exact is only what one transaction has made.
func (c *core) numbered() {
	c.t.Helper()
	c.want(`SELECT count(*) FROM (SELECT effect_ordinal, lag(effect_ordinal) OVER w AS before
	  FROM synchro.scope_entry e JOIN synchro.relation l USING (rel_no)
	  WINDOW w AS (PARTITION BY scope_no, commit_lsn, event_ordinal ORDER BY l.table_id, e.key)) n WHERE n.before >= n.effect_ordinal`, "0")
	c.want(`SELECT count(*) FROM (SELECT max(effect_ordinal) - count(*) + 1 AS gap FROM synchro.scope_entry
	  WHERE commit_lsn = (SELECT commit_lsn FROM synchro.progress) GROUP BY scope_no, event_ordinal) g WHERE g.gap <> 0`, "0")
	c.want(`SELECT count(*) FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no) WHERE e.commit_lsn > s.high_lsn`, "0")
	c.want(`SELECT count(*) FROM synchro.scope_entry e, synchro.progress p WHERE e.commit_lsn > p.commit_lsn`, "0")
}

// materializedState is everything that a replay must make again, versions of random origin and numbers of scopes aside.
const materializedState = `SELECT s.scope_id, e.rel_no, e.key, e.state, e.commit_lsn, e.event_ordinal, e.effect_ordinal, e.server_version, e.row_digest, s.high_lsn
	FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no)`

// smallPieces makes every transaction of more than a few rows come in pieces, and its aftermath too.
func (c *core) smallPieces() {
	c.limits = worker.Limits{MaxHeartbeatAge: 30 * time.Second, BatchMaxRows: 5, BatchMaxBytes: 8 << 20, MemoryBytes: 8 << 10}
}
