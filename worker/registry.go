package worker

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// registry is the configuration of one generation.
type registry struct {
	generation    int64
	schemaVersion int64
	waiting       string // names of the generations that wait, when it captures for them too
	byOID         map[uint32]*relation
	byNo          map[int32]*relation
}

// relation is one registered relation of a generation.
type relation struct {
	no        int32
	oid       uint32
	since     int64
	id, table [16]byte
	kind      byte
	suspended bool // left out until it has been read anew
	ahead     bool // of a pending generation only: captured, and in no scope yet
	schema    string
	name      string
	qualified string
	keyAttnum int16
	pkType    string
	deleted   int16 // attnum of the deleted_at column, 0: none
	columns   []captured
	sql       *statements

	bit       int           // in a relset
	dependsOn []*dependency // of which it is the target
	impacts   []*dependency // of which it is the source
	members   relset        // what the membership function reads beyond the row itself
	reads     relset        // what all evaluations read that follow from a change of its rows
}

// captured is a column of a relation's projection.
type captured struct {
	attnum    int16
	name      string
	source    uint32 // type of the source column
	storage   string // type of the projection column, as SQL
	generated bool
	required  bool // of this generation: missing in the stream means drift
}

func (c captured) column() string { return "c" + strconv.Itoa(int(c.attnum)) }

const (
	relationsQuery = `
SELECT r.rel_no, l.relation_oid, r.since, pg_catalog.uuid_send(l.relation_id), pg_catalog.uuid_send(l.table_id), r.kind,
       l.physical_schema, l.physical_relation, pg_catalog.format('%I.%I', l.physical_schema, l.physical_relation),
       r.key_attnum, r.pk_type, coalesce(r.deleted_at_column, ''), pg_catalog.to_json(synchro._needed_columns(r, l.view_columns))
  FROM synchro.registration r JOIN synchro.relation l ON l.rel_no = r.rel_no
 WHERE r.generation = $1 ORDER BY l.table_id, r.rel_no`
	columnsQuery = `
SELECT c.rel_no, c.attnum, c.column_name, c.source_type, c.storage_type, c.generated
  FROM synchro.captured_column c
  JOIN pg_catalog.pg_attribute a ON a.attname = 'c' || c.attnum AND NOT a.attisdropped
   AND a.attrelid = pg_catalog.to_regclass('synchro_data.r_' || c.rel_no)
 WHERE c.rel_no IN (SELECT r.rel_no FROM synchro.registration r WHERE r.generation = $1)
 ORDER BY c.rel_no, c.attnum`
)

// loadRegistry reads one generation.
func loadRegistry(ctx context.Context, conn *pgconn.PgConn, generation int64) (*registry, error) {
	reg := &registry{generation: generation, byOID: map[uint32]*relation{}, byNo: map[int32]*relation{}}
	gen := strconv.FormatInt(generation, 10)
	rows, err := query(ctx, conn, "SELECT schema_version FROM synchro.registry_generation WHERE generation = $1", gen)
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 {
		return nil, fmt.Errorf("registry generation %d is missing", generation)
	}
	reg.schemaVersion = rows[0].int64(0)
	if rows, err = query(ctx, conn, relationsQuery, gen); err != nil {
		return nil, err
	}
	wanted := map[int32][]string{}
	deletedColumn := map[int32]string{}
	for _, r := range rows {
		rel := &relation{
			no: int32(r.int64(0)), oid: uint32(r.int64(1)), since: r.int64(2), kind: kindSynced,
			schema: r.text(6), name: r.text(7), qualified: r.text(8), keyAttnum: int16(r.int64(9)), pkType: r.text(10),
		}
		if r.text(5) == "capture_dependency" {
			rel.kind = kindDependency
		}
		if err := decodeHex(rel.id[:], r.text(3)); err != nil {
			return nil, err
		}
		if r[4] != nil { // a capture dependency may have it too: from a time when it was synced, or will be
			if err := decodeHex(rel.table[:], r.text(4)); err != nil {
				return nil, err
			}
		}
		var names []string
		if err := json.Unmarshal(r[12], &names); err != nil {
			return nil, fmt.Errorf("columns of a registration: %w", err)
		}
		wanted[rel.no] = names
		deletedColumn[rel.no] = r.text(11)
		reg.byOID[rel.oid], reg.byNo[rel.no] = rel, rel
	}
	if rows, err = query(ctx, conn, columnsQuery, gen); err != nil {
		return nil, err
	}
	for _, r := range rows {
		rel := reg.byNo[int32(r.int64(0))]
		c := captured{attnum: int16(r.int64(1)), name: r.text(2), source: uint32(r.int64(3)), storage: r.text(4), generated: r.text(5) == "t"}
		c.required = slices.Contains(wanted[rel.no], c.name)
		if deletedColumn[rel.no] != "" && c.name == deletedColumn[rel.no] {
			rel.deleted = c.attnum
		}
		rel.columns = append(rel.columns, c)
	}
	if err := reg.loadDependencies(ctx, conn, gen); err != nil {
		return nil, err
	}
	if err := reg.suspend(ctx, conn); err != nil {
		return nil, err
	}
	for _, rel := range reg.byNo {
		rel.sql = newStatements(rel, reg)
	}
	return reg, nil
}

// ordered returns the relations in the order of their table ids.
func (g *registry) ordered() []*relation {
	all := make([]*relation, 0, len(g.byNo))
	for _, r := range g.byNo {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *relation) int { return slices.Compare(a.table[:], b.table[:]) })
	return all
}

// binding says where the captured columns are in the tuples that the stream sends for a relation from some point on.
type binding struct {
	wire  wireRelation
	rel   *relation
	key   int   // index of the key in the tuple
	pos   []int // per captured column: index in the tuple, -1: not there
	drift bool  // the relation is no longer what was registered
}

// bind compares what the stream says of a relation with its registration. Column order is compared too: a column that was
// dropped and added again under the same name comes last. A column that this generation does not need is bound where it is as it was, and
// does not matter otherwise.
func bind(rel *relation, wire wireRelation) *binding {
	b := &binding{wire: wire, rel: rel, key: -1, pos: make([]int, len(rel.columns))}
	b.drift = wire.schema != rel.schema || wire.name != rel.name || wire.identity != 'd'
	last := -1
	place := func(name string) int {
		return slices.IndexFunc(wire.columns, func(w wireColumn) bool { return w.name == name })
	}
	for i, c := range rel.columns {
		b.pos[i] = -1
		at := place(c.name)
		switch {
		case c.generated: // its value travels in the fence
		case at < 0:
			b.drift = b.drift || c.required
		case !c.required && slices.ContainsFunc(rel.columns[i+1:], func(n captured) bool { return n.required && !n.generated && place(n.name) < at }):
		case wire.columns[at].typ != c.source || at < last:
			b.drift = b.drift || c.required
		default:
			b.pos[i], last = at, at
			if c.attnum == rel.keyAttnum {
				b.key = at
				b.drift = b.drift || !wire.columns[at].key
			}
		}
	}
	b.drift = b.drift || b.key < 0
	for i, w := range wire.columns {
		b.drift = b.drift || (w.key && i != b.key)
	}
	return b
}

func (w wireRelation) equal(o wireRelation) bool {
	return w.oid == o.oid && w.schema == o.schema && w.name == o.name && w.identity == o.identity && slices.Equal(w.columns, o.columns)
}

// row is a result row in text form.
type row [][]byte

func (r row) text(i int) string { return string(r[i]) }

func (r row) int64(i int) int64 {
	n, _ := strconv.ParseInt(string(r[i]), 10, 64)
	return n
}

func decodeHex(dst []byte, text string) error {
	n, err := hex.Decode(dst, []byte(strings.TrimPrefix(text, `\x`)))
	if err != nil || n != len(dst) {
		return fmt.Errorf("an identifier of %d octets was expected", len(dst))
	}
	return nil
}

// query runs one statement with text parameters and reads all its rows.
func query(ctx context.Context, conn *pgconn.PgConn, sql string, args ...string) ([]row, error) {
	params := make([][]byte, len(args))
	for i, a := range args {
		params[i] = []byte(a)
	}
	res := conn.ExecParams(ctx, sql, params, nil, nil, nil).Read()
	if res.Err != nil {
		return nil, res.Err
	}
	rows := make([]row, len(res.Rows))
	for i, r := range res.Rows {
		rows[i] = r
	}
	return rows, nil
}

// one runs a statement that returns one row.
func one(ctx context.Context, conn *pgconn.PgConn, sql string, args ...string) (row, error) {
	rows, err := query(ctx, conn, sql, args...)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, pgx.ErrNoRows
	}
	return rows[0], nil
}
