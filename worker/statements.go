package worker

import "fmt"

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
	waiting string                // of the registry
	store   *statement            // takes images (work.go), returns what changes.told reads
	remove  *statement            // of keys; returns key, key octets and scopes of those that were there
	read    *statement            // of keys; returns what changes.readAgain reads
	members *statement            // (ord, scope_id) of keys, by ord
	scopes  *statement            // records which scopes hold rows
	gone    *statement            // what removing rows will change that impacts others
	looks   map[string]*statement // the same of storing them, by kind
}

func newStatements(rel *relation, reg *registry) *statements {
	s := &statements{rel: rel, gen: reg.generation, schema: reg.schemaVersion, waiting: reg.waiting, looks: map[string]*statement{}}
	schema := s.schema
	if !rel.live() {
		schema = 0 // nothing is told
	}
	s.store = s.named("store", fmt.Sprintf("SELECT synchro._store_rows(%d, %d, %d::int2, %d::int2, $1)", rel.no, schema, rel.keyAttnum, rel.deleted))
	s.remove = s.named("remove", s.removeSQL())
	s.read = s.named("read", fmt.Sprintf("SELECT synchro._read_rows(%d, %d, %d::int2, %d::int2, $1)", rel.no, s.schema, rel.keyAttnum, rel.deleted))
	s.members = s.named("members", fmt.Sprintf("SELECT ord, scope_id FROM synchro._evaluate_membership(%d, %d, $1::text[])", rel.no, s.gen))
	s.scopes = s.named("scopes", fmt.Sprintf("SELECT synchro._store_scopes(%d, $1)", rel.no))
	s.gone = s.named("gone", s.removeImageSQL())
	return s
}

func (s *statements) named(what, sql string) *statement {
	return &statement{name: fmt.Sprintf("g%d%s_r%d_%s", s.gen, s.waiting, s.rel.no, what), sql: sql}
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

// keyText is a row's key as fences write it, by its type's output function, which a cast to text is not for every type.
func (s *statements) keyText() string {
	c := s.keyColumn()
	switch c.storage {
	case "pg_catalog.bpchar":
		return "textin(bpcharout(p." + c.column() + "))"
	case "pg_catalog.inet":
		return "textin(inet_out(p." + c.column() + "))"
	}
	return "p." + c.column() + "::text"
}

// returning is what a query tells of rows, as rowChange.read takes it; p is the projection.
func (s *statements) returning() string {
	soft := "false"
	if s.rel.deleted != 0 {
		soft = fmt.Sprintf("p.c%d IS NOT NULL", s.rel.deleted)
	}
	return fmt.Sprintf("synchro._key_bytes('%s', %s), p.scopes, %s, synchro._row_digest(%d, %d, p, p.server_version), p.ctid",
		s.rel.pkType, s.keyText(), soft, s.rel.no, s.schema)
}

// removeSQL returns key and scopes of the rows that were there.
func (s *statements) removeSQL() string {
	return fmt.Sprintf("DELETE FROM %s p USING unnest($1::text[]) AS u(key) WHERE p.%s = %s RETURNING u.key, synchro._key_bytes('%s', u.key), p.scopes",
		s.table(), s.keyColumn().column(), s.key("u.key"), s.rel.pkType)
}

// Statements that know no relation.
var (
	stEntries = &statement{"entries", "SELECT synchro._store_entries($1, $2, false)"}
	stNew     = &statement{"new", "SELECT synchro._store_entries($1, $2, true)"} // of rows that were never there: cheaper
	// The next effect ordinals of scopes at a position.
	stEffects = &statement{"effects", `SELECT u.scope_no, coalesce(greatest((SELECT max(e.effect_ordinal) FROM synchro.scope_entry e
        WHERE e.scope_no = u.scope_no AND e.commit_lsn = $2 AND e.event_ordinal = $3 AND e.state <> 'x'), (SELECT max(e.effect_ordinal) FROM synchro.scope_entry e
        WHERE e.scope_no = u.scope_no AND e.commit_lsn = $2 AND e.event_ordinal = $3 AND e.state = 'x')) + 1, 0) FROM unnest($1::int8[]) AS u(scope_no)`}
	stTouch  = &statement{"touch", `UPDATE synchro.scope s SET high_lsn = $2::pg_lsn FROM unnest($1::int8[]) AS u(scope_no) WHERE s.scope_no = u.scope_no`}
	stIntern = &statement{"intern", `WITH fresh AS (
  INSERT INTO synchro.scope (scope_id, high_lsn)
  SELECT u.id, $2::pg_lsn FROM unnest($1::text[]) AS u(id) WHERE NOT EXISTS (SELECT FROM synchro.scope s WHERE s.scope_id = u.id)
  RETURNING scope_id, scope_no
)
SELECT s.scope_id, s.scope_no, false FROM unnest($1::text[]) AS u(id) JOIN synchro.scope s ON s.scope_id = u.id
UNION ALL SELECT f.scope_id, f.scope_no, true FROM fresh f`}
)
