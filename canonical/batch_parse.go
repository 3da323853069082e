package canonical

import (
	"fmt"

	"synchro/internal/ijson"
)

// dialect is one of the two spellings of a push batch: how requests travel,
// and how the fingerprint vectors write them.
type dialect struct {
	batch    ijson.Shape
	mutation ijson.Shape
	key      func(r *reader, raw []byte) Value
	columns  func(r *reader, raw []byte) []Value
}

var (
	pairShape = ijson.NewShape([]string{"field_id", "value"})

	wire = dialect{
		batch: ijson.NewShape([]string{"client_id", "client_generation", "batch_id", "schema", "mutations"}, "atomic"),
		mutation: ijson.NewShape([]string{"mutation_id", "table", "pk", "authored_schema", "op", "client_version"},
			"base_version", "columns"),
		key: func(r *reader, raw []byte) Value {
			members := readMap(r, raw)
			if len(members) != 1 {
				r.keep(invalid("a key has exactly one field"))
				return Value{}
			}
			return members[0]
		},
		columns: readMap,
	}

	listed = dialect{
		batch: ijson.NewShape([]string{"client_id", "client_generation", "batch_id", "request_schema", "mutations"}, "atomic"),
		mutation: ijson.NewShape([]string{"mutation_id", "table_id", "pk", "authored_schema", "operation", "client_version"},
			"base_version", "columns"),
		key:     readPair,
		columns: readPairs,
	}
)

// ParseBatch reads a push request as it travels and checks it.
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
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFingerprint, err)
	}
	r := reader{}
	v := r.members(d.batch, value, 6)
	b := &Batch{ClientID: r.text(v[0]), Generation: r.integer(v[1]), ID: r.text(v[2]), Schema: r.ref(v[3])}
	r.each(v[4], func(raw []byte) {
		if len(b.Mutations) == MaxMutations {
			r.keep(invalid("number of mutations"))
			return
		}
		b.Mutations = append(b.Mutations, d.readMutation(&r, raw))
	})
	if v[5] != nil {
		if b.Atomic = r.boolean(v[5]); !b.Atomic {
			r.keep(invalid("atomic is true or absent"))
		}
	}
	if r.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFingerprint, r.err)
	}
	return b, b.Validate()
}

func (d *dialect) parseMutation(body []byte) (*Mutation, error) {
	value, err := ijson.Value(body, ijson.DefaultDepth)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFingerprint, err)
	}
	r := reader{}
	m := d.readMutation(&r, value)
	if r.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFingerprint, r.err)
	}
	return &m, m.Validate()
}

func (d *dialect) readMutation(r *reader, raw []byte) Mutation {
	v := r.members(d.mutation, raw, 8)
	m := Mutation{ID: r.text(v[0]), TableID: r.text(v[1]), Key: d.key(r, v[2]), Authored: r.ref(v[3]),
		Op: r.text(v[4]), ClientVersion: r.text(v[5])}
	if v[6] != nil {
		if m.BaseVersion = r.text(v[6]); m.BaseVersion == "" {
			r.keep(invalid("base version"))
		}
	}
	if v[7] != nil {
		m.Columns = d.columns(r, v[7])
	}
	return m
}

// readMap reads {field_id: value}. The result is never nil: an empty map is not an absent one.
func readMap(r *reader, raw []byte) []Value {
	values := []Value{}
	if r.err != nil {
		return values
	}
	members, err := ijson.Map(raw)
	r.keep(err)
	for _, m := range members {
		values = append(values, Value{FieldID: string(m.Name), JSON: m.Value})
	}
	return values
}

func readPair(r *reader, raw []byte) Value {
	v := r.members(pairShape, raw, 2)
	return Value{FieldID: r.text(v[0]), JSON: v[1]}
}

// readPairs reads [{field_id, value}].
func readPairs(r *reader, raw []byte) []Value {
	values := []Value{}
	r.each(raw, func(element []byte) { values = append(values, readPair(r, element)) })
	return values
}
