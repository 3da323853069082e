package canonical

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strconv"

	"synchro/internal/ijson"
)

// Operations of a mutation.
const (
	Insert = "insert"
	Update = "update"
	Delete = "delete"
)

// Value is one field of a mutation. JSON is the value as submitted; it needs
// no manifest to be fingerprinted.
type Value struct {
	FieldID string
	JSON    []byte
}

// Mutation is one queued write. BaseVersion is empty for an insert; a delete
// has no columns, which an insert with an empty list is not.
type Mutation struct {
	ID            string
	TableID       string
	Key           Value
	Authored      SchemaRef
	Op            string
	BaseVersion   string
	ClientVersion string
	Columns       []Value // sorted by field id
}

// Batch is one push request.
type Batch struct {
	ClientID   string
	Generation int64
	ID         string
	Schema     SchemaRef
	Atomic     bool
	Mutations  []Mutation
}

// Fingerprint identifies the batch of a user. Generation and request schema
// take part here only, so a mutation may move to a successor batch.
func (b *Batch) Fingerprint(userID string) ([HashSize]byte, error) {
	data, err := b.fingerprintInput(userID)
	return sha256.Sum256(data), err
}

func (b *Batch) fingerprintInput(userID string) ([]byte, error) {
	if err := checkUser(userID); err != nil {
		return nil, err
	}
	word := "batch-v1"
	if b.Atomic {
		word = "atomic-batch-v1"
	}
	out := appendStrings(append([]byte(domainBatch), '['), word, userID, b.ClientID,
		strconv.FormatInt(b.Generation, 10), b.ID)
	out = appendRef(append(out, ','), b.Schema)
	out = append(out, ',', '[')
	for i := range b.Mutations {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = b.Mutations[i].appendArray(out); err != nil {
			return nil, err
		}
	}
	return append(out, ']', ']'), nil
}

// Fingerprint identifies the mutation of a user's client.
func (m *Mutation) Fingerprint(userID, clientID string) ([HashSize]byte, error) {
	data, err := m.fingerprintInput(userID, clientID)
	return sha256.Sum256(data), err
}

func (m *Mutation) fingerprintInput(userID, clientID string) ([]byte, error) {
	if err := checkUser(userID); err != nil {
		return nil, err
	}
	if err := checkName(clientID); err != nil {
		return nil, err
	}
	out := appendStrings(append([]byte(domainMutation), '['), "mutation-scope-v1", userID, clientID)
	out, err := m.appendArray(append(out, ','))
	return append(out, ']'), err
}

// NormalizedSize is the length that the limit on one mutation applies to.
func (m *Mutation) NormalizedSize() (int, error) {
	out, err := m.appendArray(nil)
	return len(out), err
}

// appendArray appends the mutation as the complete array that gets hashed. All
// members but the submitted values are in RFC 8785 form by construction.
func (m *Mutation) appendArray(dst []byte) ([]byte, error) {
	dst = appendStrings(append(dst, '['), "mutation-v1", m.ID, m.TableID)
	dst, err := appendPair(append(dst, ','), m.Key)
	if err != nil {
		return dst, err
	}
	dst = appendRef(append(dst, ','), m.Authored)
	dst = appendStrings(append(dst, ','), m.Op)
	if m.Op == Insert {
		dst = append(dst, ",[0],"...)
	} else {
		dst = append(appendStrings(append(dst, ",[1,"...), m.BaseVersion), "],"...)
	}
	dst = appendStrings(dst, m.ClientVersion)
	if m.Op == Delete {
		return append(dst, ",[0]]"...), nil
	}
	dst = append(dst, ",[1,["...)
	for i, column := range m.Columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendPair(dst, column); err != nil {
			return dst, err
		}
	}
	return append(dst, "]]]"...), nil
}

func appendPair(dst []byte, v Value) ([]byte, error) {
	canonical, err := Canonicalize(v.JSON)
	if err != nil {
		return dst, err
	}
	dst = append(appendStrings(append(dst, '['), v.FieldID), ',')
	return append(append(dst, canonical...), ']'), nil
}

func appendRef(dst []byte, ref SchemaRef) []byte {
	dst = appendStrings(append(dst, '['), strconv.FormatInt(ref.Version, 10), ref.Hash)
	return append(dst, ']')
}

// appendStrings appends JSON strings separated by commas.
func appendStrings(dst []byte, texts ...string) []byte {
	for i, text := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = ijson.AppendQuoted(dst, []byte(text))
	}
	return dst
}

func sortColumns(columns []Value) {
	slices.SortFunc(columns, func(a, b Value) int { return cmp.Compare(a.FieldID, b.FieldID) })
}
