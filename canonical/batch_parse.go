package canonical

import (
	"fmt"

	"synchro/internal/ijson"
)

// dialect is one of the two spellings of a push batch: how requests travel,
// and how the fingerprint vectors write them. Both have their members in the
// same positions.
type dialect struct {
	batch    ijson.Shape
	mutation ijson.Shape
	key      func(r *ijson.Reader, raw []byte) Value
	columns  func(r *ijson.Reader, raw []byte) []Value
}

var (
	wire = dialect{
		batch: ijson.NewShape([]string{"client_id", "batch_id", "schema", "mutations"}, "client_generation", "atomic"),
		mutation: ijson.NewShape([]string{"mutation_id", "table", "pk", "authored_schema", "op", "client_version"},
			"base_version", "columns"),
		key: readKey, columns: readMap,
	}
	listed = dialect{
		batch: ijson.NewShape([]string{"client_id", "batch_id", "request_schema", "mutations"}, "client_generation", "atomic"),
		mutation: ijson.NewShape([]string{"mutation_id", "table_id", "pk", "authored_schema", "operation", "client_version"},
			"base_version", "columns"),
		key: readPair, columns: readPairs,
	}
	pairShape = ijson.NewShape([]string{"field_id", "value"})
)

// ParseBatch reads a push request as it travels and checks it. A batch without
// a generation comes back together with ErrNoGeneration.
func ParseBatch(body []byte) (*Batch, error) { return wire.parseBatch(body) }

// ParseListedBatch reads the list form: table_id, operation, request_schema,
// and fields as a list of pairs.
func ParseListedBatch(body []byte) (*Batch, error) { return listed.parseBatch(body) }

// ParseMutation reads one mutation of a push request and checks it.
func ParseMutation(body []byte) (*Mutation, error) { return wire.parseMutation(body) }

// ParseListedMutation reads one mutation in the list form.
func ParseListedMutation(body []byte) (*Mutation, error) { return listed.parseMutation(body) }

func (d *dialect) parseBatch(body []byte) (*Batch, error) {
	value, err := ijson.Value(body, ijson.DefaultDepth)
	r := ijson.Reader{Err: err}
	b := d.readBatch(&r, value)
	if r.Err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFingerprint, r.Err)
	}
	return b, b.Validate()
}

func (d *dialect) readBatch(r *ijson.Reader, raw []byte) *Batch {
	v := r.Object(d.batch, raw)
	b := &Batch{ClientID: v.Text(0), ID: v.Text(1), Schema: ReadSchemaRef(r, v.Raw(2))}
	r.Each(v.Raw(3), func(raw []byte) {
		if len(b.Mutations) == MaxMutations {
			v.Refuse(3, errRange)
			return
		}
		b.Mutations = append(b.Mutations, d.readMutation(r, raw))
	})
	if v.Has(4) {
		if b.Generation = v.Integer(4); b.Generation < 1 {
			v.Refuse(4, errRange)
		}
	}
	if v.Has(5) {
		if b.Atomic = v.Bool(5); !b.Atomic {
			v.Refuse(5, errAtomic)
		}
	}
	return b
}

func (d *dialect) parseMutation(body []byte) (*Mutation, error) {
	value, err := ijson.Value(body, ijson.DefaultDepth)
	r := ijson.Reader{Err: err}
	m := d.readMutation(&r, value)
	if r.Err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFingerprint, r.Err)
	}
	return &m, m.Validate()
}

func (d *dialect) readMutation(r *ijson.Reader, raw []byte) Mutation {
	v := r.Object(d.mutation, raw)
	m := Mutation{ID: v.Text(0), TableID: v.Text(1), Key: d.key(r, v.Raw(2)), Authored: ReadSchemaRef(r, v.Raw(3)),
		Op: v.Text(4), ClientVersion: v.Text(5)}
	if v.Has(6) {
		if m.BaseVersion = v.Text(6); m.BaseVersion == "" {
			v.Refuse(6, errEmpty)
		}
	}
	if v.Has(7) {
		m.Columns = d.columns(r, v.Raw(7))
	}
	return m
}

// readKey reads {field_id: value} of exactly one field.
func readKey(r *ijson.Reader, raw []byte) Value {
	members := readMap(r, raw)
	if len(members) != 1 {
		r.Keep(errOneKey)
		return Value{}
	}
	return members[0]
}

// readMap reads {field_id: value}. The result is never nil: an empty map is not an absent one.
func readMap(r *ijson.Reader, raw []byte) []Value {
	values := []Value{}
	for _, m := range r.Map(raw) {
		values = append(values, Value{FieldID: string(m.Name), JSON: m.Value})
	}
	return values
}

func readPair(r *ijson.Reader, raw []byte) Value {
	v := r.Object(pairShape, raw)
	return Value{FieldID: v.Text(0), JSON: v.Raw(1)}
}

// readPairs reads [{field_id, value}].
func readPairs(r *ijson.Reader, raw []byte) []Value {
	values := []Value{}
	r.Each(raw, func(element []byte) { values = append(values, readPair(r, element)) })
	return values
}
