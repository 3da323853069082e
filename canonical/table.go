package canonical

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
)

// Table is a table of a verified manifest, prepared for hashing its rows. It
// is immutable and may be shared; each goroutine makes its own Digester.
type Table struct {
	def      TableDef
	fields   []tableField // by unsigned octets of the field id
	index    map[string]int
	key      int
	deleted  int    // position of the deleted_at field, -1 without one
	identity []byte // prefix of every row identity
	prefix   string // the same
	digest   []byte // prefix of every row digest input
}

type tableField struct {
	id   string
	blob []byte // text(field_id)
	spec FieldSpec
}

// Prepare makes the tables of the manifest ready for hashing, by table id.
func (m *Manifest) Prepare() (map[string]*Table, error) {
	if err := m.Verify(); err != nil {
		return nil, err
	}
	hash, _ := ParseHash(m.SchemaHash)
	tables := make(map[string]*Table, len(m.Tables))
	for i := range m.Tables {
		table, err := prepare(&m.Tables[i], hash)
		if err != nil {
			return nil, err
		}
		tables[table.def.TableID] = table
	}
	return tables, nil
}

func prepare(def *TableDef, hash [HashSize]byte) (*Table, error) {
	t := &Table{def: *def, index: make(map[string]int, len(def.Fields)), deleted: -1}
	for i := range def.Fields {
		f := &def.Fields[i]
		spec, err := f.spec()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrManifest, err)
		}
		t.fields = append(t.fields, tableField{id: f.FieldID, blob: appendBlob(nil, f.FieldID), spec: spec})
	}
	slices.SortFunc(t.fields, func(a, b tableField) int { return cmp.Compare(a.id, b.id) })
	for i, f := range t.fields {
		t.index[f.id] = i
	}
	t.key = t.index[def.PrimaryKeyFieldID]
	if id := def.Lifecycle.DeletedAtFieldID; id != nil {
		t.deleted = t.index[*id]
	}
	t.identity = appendIdentityPrefix(nil, def.TableID, def.PrimaryKeyFieldID)
	t.prefix = string(t.identity)
	t.digest = append([]byte(domainRowDigest), hash[:]...)
	return t, nil
}

// Def returns the manifest's description of the table.
func (t *Table) Def() TableDef { return t.def }

// KeyFieldID returns the id of the key field.
func (t *Table) KeyFieldID() string { return t.def.PrimaryKeyFieldID }

// IdentityPrefix is what all row identities of the table start with; the typed
// key follows.
func (t *Table) IdentityPrefix() string { return t.prefix }

// FieldIDs returns the field ids in the order of Digester.Values.
func (t *Table) FieldIDs() []string {
	ids := make([]string, len(t.fields))
	for i, f := range t.fields {
		ids[i] = f.id
	}
	return ids
}

// AppendIdentity appends the identity of the row with the given key, raw JSON.
func (t *Table) AppendIdentity(dst, key []byte) ([]byte, error) {
	out, err := AppendTyped(append(dst, t.identity...), t.fields[t.key].spec, key)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// RowDigest computes the digest of one complete row object. With a key, raw
// JSON, the row must be the one of that key.
func (t *Table) RowDigest(dst *[HashSize]byte, key, row []byte, version string) error {
	d := t.NewDigester()
	sum, err := d.Row(row, version)
	if err != nil {
		return err
	}
	if key != nil {
		if err := d.MatchKey(key); err != nil {
			return err
		}
	}
	*dst = sum
	return nil
}

// HexDigest is the spelling of a digest on the wire.
func HexDigest(sum [HashSize]byte) string { return hex.EncodeToString(sum[:]) }
