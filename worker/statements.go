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

// statements are the statements of one relation in one generation, made from its registration.
type statements struct {
	rel     *relation
	gen     int64
	schema  int64
	upsert  *statement
	remove  *statement
	member  *statement // nil: a capture dependency has no members
	admit   *statement
	updates map[string]*statement // by the columns that keep their value
}

func newStatements(rel *relation, reg *registry) *statements {
	s := &statements{rel: rel, gen: reg.generation, schema: reg.schemaVersion, updates: map[string]*statement{}}
	s.upsert = s.named("upsert", s.upsertSQL())
	s.remove = s.named("remove", s.removeSQL())
	if rel.kind == kindSynced {
		s.member = s.named("member", s.memberSQL())
		s.admit = s.named("admit", s.admitSQL())
	}
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

func (s *statements) upsertSQL() string {
	from, values, columns := s.source(func(int) bool { return false })
	var names, set []string
	for _, c := range columns {
		names = append(names, c.column())
		if c.attnum != s.rel.keyAttnum {
			set = append(set, fmt.Sprintf("%s = excluded.%[1]s", c.column()))
		}
	}
	set = append(set, "server_version = excluded.server_version", "row_xmin = excluded.row_xmin")
	return fmt.Sprintf("INSERT INTO %s (%s, server_version, row_xmin) SELECT %s, u.ver, u.xm FROM %s ON CONFLICT (%s) DO UPDATE SET %s",
		s.table(), strings.Join(names, ", "), strings.Join(values, ", "), from, s.keyColumn().column(), strings.Join(set, ", "))
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
	return fmt.Sprintf("UPDATE %s p SET %s FROM %s WHERE p.%s = %s", s.table(), strings.Join(set, ", "), from, s.keyColumn().column(), key)
}

// touched is the last part of a statement: how many rows it found, and the scopes that it touched.
const touched = `
SELECT (SELECT count(*) FROM k),
       (SELECT CASE WHEN count(*) <= 400 THEN string_agg(q.scope_no::text, ',') ELSE '*' END FROM (%s) q)`

// removeSQL deletes rows: their entries become left ones with the version of the deletion.
// $1 keys, $2 versions, $3 commit positions, $4 event ordinals, $5 the last commit of the batch.
func (s *statements) removeSQL() string {
	return fmt.Sprintf(`WITH k AS (
  DELETE FROM %s p USING unnest($1::text[], $2::text[], $3::pg_lsn[], $4::int8[]) AS u(key, ver, lsn, ev)
   WHERE p.%s = %s
  RETURNING u.key, u.ver, u.lsn, u.ev, p.scopes
), x AS (
  UPDATE synchro.scope_entry e
     SET commit_lsn = k.lsn, event_ordinal = k.ev, effect_ordinal = 0, digest_schema = %d, state = 'x',
         server_version = k.ver, row_digest = NULL
    FROM k, unnest(k.scopes) AS o(scope_no)
   WHERE e.scope_no = o.scope_no AND e.rel_no = %d AND e.key = synchro._key_bytes('%s', k.key)
  RETURNING e.scope_no
), h AS (
  UPDATE synchro.scope s SET high_lsn = $5::pg_lsn FROM (SELECT DISTINCT x.scope_no FROM x) v WHERE s.scope_no = v.scope_no
)`+touched, s.table(), s.keyColumn().column(), s.key("u.key"), s.schema, s.rel.no, s.rel.pkType, "SELECT DISTINCT x.scope_no FROM x")
}

// state is the state of a row's entries.
func (s *statements) state() string {
	if s.rel.deleted == 0 {
		return `'l'::"char"`
	}
	return fmt.Sprintf(`CASE WHEN p.c%d IS NULL THEN 'l' ELSE 's' END::"char"`, s.rel.deleted)
}

// evaluated are the common parts of memberSQL and admitSQL: k the rows as they are now, m the scopes that their
// membership function puts them in, t those scopes' numbers. The first parameter is the keys, high the new scope.high_lsn.
func (s *statements) evaluated(source, high string) string {
	return fmt.Sprintf(`WITH k AS MATERIALIZED (
  SELECT u.ord::int AS ord, u.lsn, u.ev, p.scopes AS old, p.%[2]s AS pk, %[3]s AS state,
         synchro._key_bytes('%[4]s', u.key) AS key, p.server_version AS ver,
         synchro._row_digest(%[5]d, %[6]d, p, p.server_version) AS digest
    FROM %[7]s JOIN %[1]s p ON p.%[2]s = %[8]s
), m AS MATERIALIZED (
  SELECT e.ord, e.scope_id FROM synchro._evaluate_membership(%[5]d, %[9]d, $1::text[]) e
), d AS MATERIALIZED (
  SELECT DISTINCT m.scope_id FROM m
), known AS (
  UPDATE synchro.scope s SET high_lsn = %[10]s FROM d WHERE s.scope_id = d.scope_id RETURNING s.scope_no, s.scope_id
), fresh AS (
  INSERT INTO synchro.scope AS s (scope_id, high_lsn)
  SELECT d.scope_id, %[10]s FROM d WHERE NOT EXISTS (SELECT FROM synchro.scope z WHERE z.scope_id = d.scope_id)
  RETURNING s.scope_no, s.scope_id
), t AS MATERIALIZED (
  SELECT * FROM known UNION ALL SELECT * FROM fresh
), n AS MATERIALIZED (
  SELECT m.ord, array_agg(t.scope_no ORDER BY t.scope_no) AS scopes FROM m JOIN t ON t.scope_id = m.scope_id GROUP BY m.ord
)`, s.table(), s.keyColumn().column(), s.state(), s.rel.pkType, s.rel.no, s.schema, source, s.key("u.key"), s.gen, high)
}

const entryColumns = `scope_no, commit_lsn, event_ordinal, digest_schema, rel_no, effect_ordinal, state, key, server_version, row_digest`

const entryUpsert = `
  ON CONFLICT (scope_no, rel_no, key) DO UPDATE
     SET commit_lsn = excluded.commit_lsn, event_ordinal = excluded.event_ordinal, digest_schema = excluded.digest_schema,
         effect_ordinal = excluded.effect_ordinal, state = excluded.state, server_version = excluded.server_version,
         row_digest = excluded.row_digest`

// memberSQL brings the entries of changed rows up to date.
// $1 keys, $2 commit positions, $3 event ordinals, $4 the last commit of the batch.
func (s *statements) memberSQL() string {
	source := `unnest($1::text[], $2::pg_lsn[], $3::int8[]) WITH ORDINALITY AS u(key, lsn, ev, ord)`
	return s.evaluated(source, "$4::pg_lsn") + fmt.Sprintf(`, e AS (
  INSERT INTO synchro.scope_entry (`+entryColumns+`)
  SELECT o.scope_no, k.lsn, k.ev, %[2]d, %[3]d, 0, k.state, k.key, k.ver, k.digest
    FROM n JOIN k ON k.ord = n.ord CROSS JOIN LATERAL unnest(n.scopes) AS o(scope_no)`+entryUpsert+`
), x AS (
  UPDATE synchro.scope_entry e
     SET commit_lsn = k.lsn, event_ordinal = k.ev, effect_ordinal = 0, digest_schema = %[2]d, state = 'x',
         server_version = k.ver, row_digest = NULL
    FROM k LEFT JOIN n ON n.ord = k.ord CROSS JOIN LATERAL unnest(k.old) AS o(scope_no)
   WHERE k.old <> coalesce(n.scopes, '{}') AND o.scope_no <> ALL (coalesce(n.scopes, '{}'))
     AND e.scope_no = o.scope_no AND e.rel_no = %[3]d AND e.key = k.key
  RETURNING e.scope_no
), h AS (
  UPDATE synchro.scope s SET high_lsn = $4::pg_lsn FROM (SELECT x.scope_no FROM x EXCEPT SELECT t.scope_no FROM t) v
   WHERE s.scope_no = v.scope_no
), w AS (
  UPDATE %[1]s p SET scopes = coalesce(n.scopes, '{}')
    FROM k LEFT JOIN n ON n.ord = k.ord
   WHERE p.%[4]s = k.pk AND k.old <> coalesce(n.scopes, '{}')
)`+touched, s.table(), s.schema, s.rel.no, s.keyColumn().column(), "SELECT t.scope_no FROM t UNION SELECT x.scope_no FROM x")
}

// admitSQL makes the entries of rows that none knows yet: a baseline. Effect ordinals run on from those that an
// earlier call gave at the same position.
// $1 keys, $2 commit position, $3 event ordinal.
func (s *statements) admitSQL() string {
	source := `(SELECT a.key, a.ord, $2::pg_lsn, $3::int8 FROM unnest($1::text[]) WITH ORDINALITY AS a(key, ord)) AS u(key, ord, lsn, ev)`
	return s.evaluated(source, "$2::pg_lsn") + fmt.Sprintf(`, base AS MATERIALIZED (
  SELECT t.scope_no, coalesce((SELECT max(f.effect_ordinal) + 1 FROM synchro.scope_entry f
                                WHERE f.scope_no = t.scope_no AND f.commit_lsn = $2::pg_lsn AND f.event_ordinal = $3::int8), 0) AS next
    FROM t
), e AS (
  INSERT INTO synchro.scope_entry (`+entryColumns+`)
  SELECT o.scope_no, k.lsn, k.ev, %[2]d, %[3]d, b.next + row_number() OVER (PARTITION BY o.scope_no ORDER BY k.ord) - 1,
         k.state, k.key, k.ver, k.digest
    FROM n JOIN k ON k.ord = n.ord CROSS JOIN LATERAL unnest(n.scopes) AS o(scope_no) JOIN base b ON b.scope_no = o.scope_no`+entryUpsert+`
), w AS (
  UPDATE %[1]s p SET scopes = coalesce(n.scopes, '{}')
    FROM k LEFT JOIN n ON n.ord = k.ord
   WHERE p.%[4]s = k.pk AND k.old <> coalesce(n.scopes, '{}')
)`+touched, s.table(), s.schema, s.rel.no, s.keyColumn().column(), "SELECT t.scope_no FROM t")
}
