package canonical

import (
	"fmt"

	"synchro/internal/ijson"
)

var (
	manifestShape = ijson.NewShape([]string{"schema_version", "schema_hash", "parent_schema", "transition_class",
		"compatibility_floor", "tables"})
	tableShape = ijson.NewShape([]string{"table_id", "relation_id", "name", "composition", "primary_key_field_id",
		"lifecycle", "fields", "indexes"})
	lifecycleShape = ijson.NewShape([]string{"created_at_field_id", "updated_at_field_id", "deleted_at_field_id"})
	fieldShape     = ijson.NewShape([]string{"field_id", "name", "type", "nullable", "writable"}, "precision", "scale")
	indexShape     = ijson.NewShape([]string{"index_id", "name", "field_ids", "unique"})
	refShape       = ijson.NewShape([]string{"version", "hash"})
)

// ParseManifest reads a manifest body strictly, checks every rule and its hash.
func ParseManifest(body []byte) (*Manifest, error) {
	m := &Manifest{Tables: []TableDef{}}
	r := reader{}
	m.read(&r, body)
	if r.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, r.err)
	}
	if err := m.Verify(); err != nil {
		return nil, err
	}
	return m, nil
}

// reader keeps the first error, so that reading a structure stays a list.
type reader struct{ err error }

func (r *reader) members(shape ijson.Shape, raw []byte, n int) [][]byte {
	values, err := shape.Read(raw)
	r.keep(err)
	if r.err != nil {
		return make([][]byte, n)
	}
	return values
}

func (r *reader) keep(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) text(raw []byte) string {
	text, err := ijson.Text(raw)
	r.keep(err)
	return string(text)
}

func (r *reader) optionalText(raw []byte) *string {
	if string(raw) == "null" {
		return nil
	}
	text := r.text(raw)
	return &text
}

func (r *reader) integer(raw []byte) int64 {
	n, err := ijson.Integer(raw)
	r.keep(err)
	return n
}

func (r *reader) optionalInt(raw []byte) *int {
	if raw == nil {
		return nil
	}
	n := int(r.integer(raw))
	return &n
}

func (r *reader) boolean(raw []byte) bool {
	b, err := ijson.Bool(raw)
	r.keep(err)
	return b
}

func (r *reader) ref(raw []byte) SchemaRef {
	v := r.members(refShape, raw, 2)
	return SchemaRef{Version: r.integer(v[0]), Hash: r.text(v[1])}
}

func (r *reader) each(raw []byte, visit func(element []byte)) {
	if r.err == nil {
		r.keep(ijson.Elements(raw, func(element []byte) error {
			visit(element)
			return r.err
		}))
	}
}

func (m *Manifest) read(r *reader, body []byte) {
	value, err := ijson.Value(body, ijson.DefaultDepth)
	r.keep(err)
	v := r.members(manifestShape, value, 6)
	m.SchemaVersion = r.integer(v[0])
	m.SchemaHash = r.text(v[1])
	if string(v[2]) != "null" {
		ref := r.ref(v[2])
		m.ParentSchema = &ref
	}
	m.TransitionClass = r.text(v[3])
	m.CompatibilityFloor = r.integer(v[4])
	r.each(v[5], func(raw []byte) { m.Tables = append(m.Tables, readTable(r, raw)) })
}

func readTable(r *reader, raw []byte) (t TableDef) {
	v := r.members(tableShape, raw, 8)
	t.TableID, t.RelationID, t.Name = r.text(v[0]), r.text(v[1]), r.text(v[2])
	t.Composition, t.PrimaryKeyFieldID = r.text(v[3]), r.text(v[4])
	t.Fields, t.Indexes = []FieldDef{}, []IndexDef{} // written back, an empty list is not null
	l := r.members(lifecycleShape, v[5], 3)
	t.Lifecycle = Lifecycle{r.optionalText(l[0]), r.optionalText(l[1]), r.optionalText(l[2])}
	r.each(v[6], func(raw []byte) { t.Fields = append(t.Fields, readField(r, raw)) })
	r.each(v[7], func(raw []byte) { t.Indexes = append(t.Indexes, readIndex(r, raw)) })
	return t
}

func readField(r *reader, raw []byte) FieldDef {
	v := r.members(fieldShape, raw, 7)
	return FieldDef{
		FieldID: r.text(v[0]), Name: r.text(v[1]), Type: r.text(v[2]),
		Nullable: r.boolean(v[3]), Writable: r.boolean(v[4]),
		Precision: r.optionalInt(v[5]), Scale: r.optionalInt(v[6]),
	}
}

func readIndex(r *reader, raw []byte) IndexDef {
	v := r.members(indexShape, raw, 4)
	index := IndexDef{FieldIDs: []string{}, IndexID: r.text(v[0]), Name: r.text(v[1]), Unique: r.boolean(v[3])}
	r.each(v[2], func(raw []byte) { index.FieldIDs = append(index.FieldIDs, r.text(raw)) })
	return index
}
