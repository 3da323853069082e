package worker

import (
	"fmt"
	"strings"
)

// statement is a prepared statement of the apply connection. Every parameter is binary.
type statement struct {
	name string
	sql  string
}

// statements are the statements of one relation in one generation, made from its registration. Those that store rows, and
// read, return for each row: its key as text and as octets, the scopes that hold it so far, whether it is
// soft-deleted, its digest, and (read) its version.
type statements struct {
	rel     *relation
	gen     int64
	schema  int64
	insert  *statement // of rows that were not there
	upsert  *statement
	remove  *statement
	read    *statement
	members *statement                // (ord, scope_id) of keys, by ord
	present *statement                // the same of those keys that have a row, numbered without the others: as read tells of them
	scopes  *statement                // records which scopes hold rows
	updates map[string]*statement     // by the columns that keep their value
	images  map[*statement]*statement // what a statement that stores or removes rows will change that impacts others
}

func newStatements(rel *relation, reg *registry) *statements {
	s := &statements{rel: rel, gen: reg.generation, schema: reg.schemaVersion, updates: map[string]*statement{}, images: map[*statement]*statement{}}
	s.insert = s.named("insert", s.told(s.insertSQL("")))
	s.upsert = s.named("upsert", s.told(s.insertSQL(s.onConflict())))
	s.remove = s.named("remove", s.removeSQL())
	s.read = s.named("read", s.readSQL())
	s.members = s.named("members", fmt.Sprintf("SELECT ord, scope_id FROM synchro._evaluate_membership(%d, %d, $1::text[])", rel.no, s.gen))
	s.present = s.named("present", fmt.Sprintf(`SELECT m.ord, m.scope_id FROM synchro._evaluate_membership(%d, %d, ARRAY(
  SELECT u.key FROM unnest($1::text[]) WITH ORDINALITY AS u(key, ord) JOIN %s p ON p.%s = %s ORDER BY u.ord)) m`,
		rel.no, s.gen, s.table(), s.keyColumn().column(), s.key("u.key")))
	s.scopes = s.named("scopes", fmt.Sprintf("UPDATE %s p SET scopes = u.scopes::int8[] FROM unnest($1::text[], $2::text[]) AS u(key, scopes) WHERE p.%s = %s",
		s.table(), s.keyColumn().column(), s.key("u.key")))
	s.images[s.insert] = s.imaged(s.insert, s.insertImageSQL())
	s.images[s.upsert] = s.imaged(s.upsert, s.updateImageSQL(""))
	s.images[s.remove] = s.imaged(s.remove, s.removeImageSQL())
	return s
}

func (s *statements) named(what, sql string) *statement {
	return &statement{name: fmt.Sprintf("g%d_r%d_%s", s.gen, s.rel.no, what), sql: sql}
}

// update is the statement for rows of which some columns keep their value; kept has one octet per captured column.
func (s *statements) update(kept string) *statement {
	st := s.updates[kept]
	if st == nil {
		st = s.named(fmt.Sprintf("update%d", len(s.updates)), s.updateSQL(kept))
		s.updates[kept] = st
		s.images[st] = s.imaged(st, s.updateImageSQL(kept))
	}
	return st
}

func (s *statements) table() string { return fmt.Sprintf("synchro_data.r_%d", s.rel.no) }

func (s *statements) keyColumn() captured {
	for _, c := range s.rel.columns {
		if c.attnum == s.rel.keyAttnum {
			return c
		}
	}
	return captured{attnum: s.rel.keyAttnum, storage: "text"}
}

// key is the typed key made of a text expression.
func (s *statements) key(expr string) string { return expr + "::" + s.keyColumn().storage }

// source is the FROM item that yields one row per changed row: v0.. its captured columns, ver and xm version and xmin.
func (s *statements) source(skip func(i int) bool) (from string, values []string, columns []captured) {
	var params, names []string
	add := func(name, typ string) {
		params = append(params, fmt.Sprintf("$%d::%s[]", len(params)+1, typ))
		names = append(names, name)
	}
	for i, c := range s.rel.columns {
		if skip(i) {
			continue
		}
		v := fmt.Sprintf("v%d", i)
		add(v, "text")
		if c.storage != "text" {
			v += "::" + c.storage
		}
		values, columns = append(values, "u."+v), append(columns, c)
	}
	add("ver", "text")
	add("xm", "xid")
	return fmt.Sprintf("unnest(%s) AS u(%s)", strings.Join(params, ", "), strings.Join(names, ", ")), values, columns
}

func (s *statements) insertSQL(conflict string) string {
	from, values, columns := s.source(func(int) bool { return false })
	var names []string
	for _, c := range columns {
		names = append(names, c.column())
	}
	return fmt.Sprintf("INSERT INTO %s AS p (%s, server_version, row_xmin) SELECT %s, u.ver, u.xm FROM %s%s",
		s.table(), strings.Join(names, ", "), strings.Join(values, ", "), from, conflict)
}

func (s *statements) onConflict() string {
	var set []string
	for _, c := range s.rel.columns {
		if c.attnum != s.rel.keyAttnum {
			set = append(set, fmt.Sprintf("%s = excluded.%[1]s", c.column()))
		}
	}
	set = append(set, "server_version = excluded.server_version", "row_xmin = excluded.row_xmin")
	return fmt.Sprintf(" ON CONFLICT (%s) DO UPDATE SET %s", s.keyColumn().column(), strings.Join(set, ", "))
}

func (s *statements) updateSQL(kept string) string {
	from, values, columns := s.source(func(i int) bool { return kept[i] != 0 })
	set := []string{"server_version = u.ver", "row_xmin = u.xm"}
	var key string
	for i, c := range columns {
		if c.attnum == s.rel.keyAttnum {
			key = values[i]
			continue
		}
		set = append(set, c.column()+" = "+values[i])
	}
	return s.told(fmt.Sprintf("UPDATE %s p SET %s FROM %s WHERE p.%s = %s", s.table(), strings.Join(set, ", "), from, s.keyColumn().column(), key))
}

// told adds to a statement that stores rows what it tells of them.
func (s *statements) told(sql string) string {
	if s.rel.kind == kindDependency {
		return sql
	}
	return sql + " RETURNING " + s.returning()
}

// returning is what a statement tells of the rows that it stored; p is the projection.
func (s *statements) returning() string {
	key := s.keyColumn().column() + "::text"
	soft := "false"
	if s.rel.deleted != 0 {
		soft = fmt.Sprintf("p.c%d IS NOT NULL", s.rel.deleted)
	}
	return fmt.Sprintf("p.%s, synchro._key_bytes('%s', p.%[1]s), p.scopes, %[3]s, synchro._row_digest(%[4]d, %[5]d, p, p.server_version)",
		key, s.rel.pkType, soft, s.rel.no, s.schema)
}

func (s *statements) readSQL() string {
	return fmt.Sprintf("SELECT %s, p.server_version FROM unnest($1::text[]) WITH ORDINALITY AS u(key, ord) JOIN %s p ON p.%s = %s ORDER BY u.ord",
		s.returning(), s.table(), s.keyColumn().column(), s.key("u.key"))
}

// removeSQL returns key and scopes of the rows that were there.
func (s *statements) removeSQL() string {
	return fmt.Sprintf("DELETE FROM %s p USING unnest($1::text[]) AS u(key) WHERE p.%s = %s RETURNING u.key, synchro._key_bytes('%s', u.key), p.scopes",
		s.table(), s.keyColumn().column(), s.key("u.key"), s.rel.pkType)
}

const entryColumns = `scope_no, commit_lsn, event_ordinal, digest_schema, rel_no, effect_ordinal, state, key, server_version, row_digest`

// entrySQL writes entries: $1 scopes, $2 commit positions, $3 event ordinals, $4 relations, $5 effect ordinals, $6 states, $7 keys,
// $8 versions, $9 digests, $10 manifest version of the digests. effect is the expression of the effect ordinal.
func entrySQL(effect, conflict string) string {
	return `INSERT INTO synchro.scope_entry AS e (` + entryColumns + `)
SELECT u.scope_no, u.lsn, u.ev, $10::int8, u.rel, ` + effect + `, u.state, u.key, u.ver, u.digest
  FROM unnest($1::int8[], $2::pg_lsn[], $3::int8[], $4::int4[], $5::int4[], $6::"char"[], $7::bytea[], $8::text[], $9::bytea[])
       AS u(scope_no, lsn, ev, rel, eff, state, key, ver, digest)` + conflict
}

const entryConflict = `
    ON CONFLICT (scope_no, rel_no, key) DO UPDATE
   SET commit_lsn = excluded.commit_lsn, event_ordinal = excluded.event_ordinal, digest_schema = excluded.digest_schema,
       effect_ordinal = excluded.effect_ordinal, state = excluded.state, server_version = excluded.server_version,
       row_digest = excluded.row_digest`

// Statements that know no relation.
var (
	stEntries = &statement{"entries", entrySQL("u.eff", entryConflict)}
	stFresh   = &statement{"fresh", entrySQL("u.eff", "")} // of rows that were never there: cheaper
	// A baseline comes in many calls at one position: its effect ordinals run on from those already given there.
	stBaseline = &statement{"baseline", entrySQL(`u.eff + coalesce((SELECT max(f.effect_ordinal) + 1 FROM synchro.scope_entry f
        WHERE f.scope_no = u.scope_no AND f.commit_lsn = u.lsn AND f.event_ordinal = u.ev), 0)`, "")}
	// The first six arrays of stEntries, then keys and versions.
	stLeave = &statement{"leave", `UPDATE synchro.scope_entry e
   SET commit_lsn = u.lsn, event_ordinal = u.ev, effect_ordinal = u.eff, digest_schema = $8::int8, state = 'x',
       server_version = u.ver, row_digest = NULL
  FROM unnest($1::int8[], $2::pg_lsn[], $3::int8[], $4::int4[], $5::int4[], $6::bytea[], $7::text[]) AS u(scope_no, lsn, ev, rel, eff, key, ver)
 WHERE e.scope_no = u.scope_no AND e.rel_no = u.rel AND e.key = u.key`}
	stTouch  = &statement{"touch", `UPDATE synchro.scope s SET high_lsn = $2::pg_lsn FROM unnest($1::int8[]) AS u(scope_no) WHERE s.scope_no = u.scope_no`}
	stIntern = &statement{"intern", `WITH fresh AS (
  INSERT INTO synchro.scope (scope_id, high_lsn)
  SELECT u.id, $2::pg_lsn FROM unnest($1::text[]) AS u(id) WHERE NOT EXISTS (SELECT FROM synchro.scope s WHERE s.scope_id = u.id)
  RETURNING scope_id, scope_no
)
SELECT s.scope_id, s.scope_no, false FROM unnest($1::text[]) AS u(id) JOIN synchro.scope s ON s.scope_id = u.id
UNION ALL SELECT f.scope_id, f.scope_no, true FROM fresh f`}
)
