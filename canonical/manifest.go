package canonical

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// SchemaRef names one manifest.
type SchemaRef struct {
	Version int64  `json:"version"`
	Hash    string `json:"hash"`
}

// Transition classes of a manifest.
const (
	Initial = "initial"
	Class2  = "class_2"
	Class3  = "class_3"
	Class4  = "class_4"
)

// Compositions of a table.
const (
	SingleScope = "single_scope"
	MultiScope  = "multi_scope"
)

// Manifest is the immutable description of what clients see under one schema
// version.
type Manifest struct {
	SchemaVersion      int64      `json:"schema_version"`
	SchemaHash         string     `json:"schema_hash,omitempty"`
	ParentSchema       *SchemaRef `json:"parent_schema"`
	TransitionClass    string     `json:"transition_class"`
	CompatibilityFloor int64      `json:"compatibility_floor"`
	Tables             []TableDef `json:"tables"`
}

// TableDef describes one synced table.
type TableDef struct {
	TableID           string     `json:"table_id"`
	RelationID        string     `json:"relation_id"`
	Name              string     `json:"name"`
	Composition       string     `json:"composition"`
	PrimaryKeyFieldID string     `json:"primary_key_field_id"`
	Lifecycle         Lifecycle  `json:"lifecycle"`
	Fields            []FieldDef `json:"fields"`
	Indexes           []IndexDef `json:"indexes"`
}

// Lifecycle names the fields with a meaning of their own; nil where a table has none.
type Lifecycle struct {
	CreatedAtFieldID *string `json:"created_at_field_id"`
	UpdatedAtFieldID *string `json:"updated_at_field_id"`
	DeletedAtFieldID *string `json:"deleted_at_field_id"`
}

// FieldDef describes one field. Precision and Scale are there for constrained decimals only.
type FieldDef struct {
	FieldID   string `json:"field_id"`
	Name      string `json:"name"`
	Type      string `json:"type"`
	Nullable  bool   `json:"nullable"`
	Writable  bool   `json:"writable"`
	Precision *int64 `json:"precision,omitempty"`
	Scale     *int64 `json:"scale,omitempty"`
}

// IndexDef describes one index; the order of its fields matters.
type IndexDef struct {
	IndexID  string   `json:"index_id"`
	Name     string   `json:"name"`
	FieldIDs []string `json:"field_ids"`
	Unique   bool     `json:"unique"`
}

// Ref is the reference by which requests name this manifest.
func (m *Manifest) Ref() SchemaRef { return SchemaRef{Version: m.SchemaVersion, Hash: m.SchemaHash} }

// Hash computes the schema hash; the SchemaHash member does not take part.
func (m *Manifest) Hash() ([HashSize]byte, error) {
	data, err := m.hashInput()
	return sha256.Sum256(data), err
}

func (m *Manifest) hashInput() ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	body, err := json.Marshal(m.sorted())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	body, err = Canonicalize(body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	return append([]byte(domainManifest), body...), nil
}

// Seal fills in the schema hash of a body that has none yet.
func (m *Manifest) Seal() error {
	sum, err := m.Hash()
	if err == nil {
		m.SchemaHash = hex.EncodeToString(sum[:])
	}
	return err
}

// Verify checks the whole manifest, its hash included.
func (m *Manifest) Verify() error {
	sum, err := m.Hash()
	if err != nil {
		return err
	}
	claimed, ok := ParseHash(m.SchemaHash)
	if !ok || !bytes.Equal(claimed[:], sum[:]) {
		return fmt.Errorf("%w: schema hash does not match the body", ErrManifest)
	}
	return nil
}

// Body returns the sealed manifest as it travels, in RFC 8785 form.
func (m *Manifest) Body() ([]byte, error) {
	if err := m.Verify(); err != nil {
		return nil, err
	}
	out := m.sorted()
	out.SchemaHash = m.SchemaHash
	body, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	return Canonicalize(body)
}

// sorted copies the manifest without its hash, unordered collections by id octets.
func (m *Manifest) sorted() *Manifest {
	out := *m
	out.SchemaHash = ""
	out.Tables = slices.Clone(m.Tables)
	if out.Tables == nil {
		out.Tables = []TableDef{}
	}
	slices.SortFunc(out.Tables, func(a, b TableDef) int { return cmp.Compare(a.TableID, b.TableID) })
	for i := range out.Tables {
		t := &out.Tables[i]
		t.Fields = slices.Clone(t.Fields)
		slices.SortFunc(t.Fields, func(a, b FieldDef) int { return cmp.Compare(a.FieldID, b.FieldID) })
		t.Indexes = append([]IndexDef{}, t.Indexes...)
		slices.SortFunc(t.Indexes, func(a, b IndexDef) int { return cmp.Compare(a.IndexID, b.IndexID) })
	}
	return &out
}

// ParseHash reads 64 lower case hex digits.
func ParseHash(text string) (sum [HashSize]byte, ok bool) {
	if len(text) != 2*HashSize {
		return sum, false
	}
	var seen byte
	for i := range sum {
		high, low := hexDigits[text[2*i]], hexDigits[text[2*i+1]]
		seen |= high | low
		sum[i] = high<<4 | low
	}
	if seen > 0x0f {
		return [HashSize]byte{}, false
	}
	return sum, true
}

// hexDigits maps a lower case digit to its value and anything else to 0xff.
var hexDigits = func() (table [256]byte) {
	for c := range table {
		table[c] = 0xff
	}
	for i, c := range []byte("0123456789abcdef") {
		table[c] = byte(i)
	}
	return table
}()
