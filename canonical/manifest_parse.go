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
	value, err := ijson.Value(body, ijson.DefaultDepth)
	r := ijson.Reader{Err: err}
	m := readManifest(&r, value)
	if r.Err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, r.Err)
	}
	if err := m.Verify(); err != nil {
		return nil, err
	}
	return m, nil
}

// Lists are never nil here: written back, an empty list is not null.

func readManifest(r *ijson.Reader, raw []byte) *Manifest {
	v := r.Object(manifestShape, raw)
	m := &Manifest{
		SchemaVersion: v.Integer(0), SchemaHash: v.Text(1),
		TransitionClass: v.Text(3), CompatibilityFloor: v.Integer(4), Tables: []TableDef{},
	}
	if !v.Null(2) {
		ref := ReadSchemaRef(r, v.Raw(2))
		m.ParentSchema = &ref
	}
	r.Each(v.Raw(5), func(raw []byte) { m.Tables = append(m.Tables, readTable(r, raw)) })
	return m
}

func readTable(r *ijson.Reader, raw []byte) TableDef {
	v := r.Object(tableShape, raw)
	l := r.Object(lifecycleShape, v.Raw(5))
	t := TableDef{
		TableID: v.Text(0), RelationID: v.Text(1), Name: v.Text(2), Composition: v.Text(3), PrimaryKeyFieldID: v.Text(4),
		Lifecycle: Lifecycle{l.NullableText(0), l.NullableText(1), l.NullableText(2)},
		Fields:    []FieldDef{}, Indexes: []IndexDef{},
	}
	r.Each(v.Raw(6), func(raw []byte) { t.Fields = append(t.Fields, readField(r, raw)) })
	r.Each(v.Raw(7), func(raw []byte) { t.Indexes = append(t.Indexes, readIndex(r, raw)) })
	return t
}

func readField(r *ijson.Reader, raw []byte) FieldDef {
	v := r.Object(fieldShape, raw)
	return FieldDef{
		FieldID: v.Text(0), Name: v.Text(1), Type: v.Text(2), Nullable: v.Bool(3), Writable: v.Bool(4),
		Precision: v.OptionalInteger(5), Scale: v.OptionalInteger(6),
	}
}

func readIndex(r *ijson.Reader, raw []byte) IndexDef {
	v := r.Object(indexShape, raw)
	index := IndexDef{IndexID: v.Text(0), Name: v.Text(1), Unique: v.Bool(3), FieldIDs: []string{}}
	r.Each(v.Raw(2), func(raw []byte) { index.FieldIDs = append(index.FieldIDs, r.Text(raw)) })
	return index
}

// ReadSchemaRef reads a schema reference as part of a larger structure. It
// checks the shape; SchemaRef.Valid checks the content.
func ReadSchemaRef(r *ijson.Reader, raw []byte) SchemaRef {
	v := r.Object(refShape, raw)
	return SchemaRef{Version: v.Integer(0), Hash: v.Text(1)}
}
