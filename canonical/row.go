package canonical

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"synchro/internal/ijson"
)

// Digester hashes the rows of one table. It reuses its memory from row to row,
// so it serves one goroutine at a time and what it hands out is valid until
// the next row.
type Digester struct {
	table    *Table
	values   [][]byte
	buf      []byte
	key      []byte // scratch of MatchKey
	identity [2]int // where the identity lies in buf
	body     [2]int
	next     int // the field expected next when a row arrives in field order
	visit    func(name, value []byte) error
}

// NewDigester makes a digester of the table.
func (t *Table) NewDigester() *Digester {
	d := &Digester{table: t, values: make([][]byte, len(t.fields)), buf: append([]byte(nil), t.digest...)}
	d.visit = d.place
	return d
}

// Row hashes a complete row: one JSON object with every field of the table once.
func (d *Digester) Row(row []byte, version string) (sum [HashSize]byte, err error) {
	clear(d.values)
	d.next = 0
	if err := ijson.Skim(row, d.visit); err != nil { // AppendTyped reads every value to its end
		return sum, fmt.Errorf("%w: %w", ErrRow, err)
	}
	return d.Values(d.values, version)
}

// place puts one member of a row where Values wants it.
func (d *Digester) place(name, value []byte) error {
	i := d.next
	if i >= len(d.values) || d.table.fields[i].id != string(name) {
		var known bool
		if i, known = d.table.index[string(name)]; !known {
			return ijson.ErrUnknown
		}
	}
	if d.values[i] != nil {
		return ijson.ErrDuplicate
	}
	d.values[i] = value
	d.next = i + 1
	return nil
}

// Values hashes a row given as raw JSON values in the order of Table.FieldIDs.
func (d *Digester) Values(values [][]byte, version string) (sum [HashSize]byte, err error) {
	t := d.table
	if len(values) != len(t.fields) {
		return sum, fmt.Errorf("%w: wrong number of fields", ErrRow)
	}
	if version == "" {
		return sum, fmt.Errorf("%w: empty server version", ErrRow)
	}
	for i := range values {
		if values[i] == nil {
			return sum, fmt.Errorf("%w: missing field", ErrRow)
		}
	}
	buf := append(d.buf[:len(t.digest)], 0, 0, 0, 0, 0, 0, 0, 0)
	d.identity[0] = len(buf)
	buf, err = t.AppendIdentity(buf, values[t.key])
	d.identity[1] = len(buf)
	if err != nil {
		d.buf = buf
		return sum, err
	}
	binary.BigEndian.PutUint64(buf[d.identity[0]-8:], uint64(d.identity[1]-d.identity[0]))

	buf = append(buf, 0, 0, 0, 0, 0, 0, 0, 0)
	d.body[0] = len(buf)
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(t.fields)))
	for i := range t.fields {
		buf = append(buf, t.fields[i].blob...)
		if buf, err = AppendTyped(buf, t.fields[i].spec, values[i]); err != nil {
			d.buf = buf
			return sum, fmt.Errorf("field %d of the table: %w", i, err)
		}
	}
	d.body[1] = len(buf)
	binary.BigEndian.PutUint64(buf[d.body[0]-8:], uint64(d.body[1]-d.body[0]))

	buf = appendBlob(buf, version)
	d.buf = buf
	return sha256.Sum256(buf), nil
}

// Identity is the row identity of the row hashed last.
func (d *Digester) Identity() []byte { return d.buf[d.identity[0]:d.identity[1]] }

// Body is the row body of the row hashed last.
func (d *Digester) Body() []byte { return d.buf[d.body[0]:d.body[1]] }

// Tombstone tells whether the row given to Row last is soft-deleted.
func (d *Digester) Tombstone() bool {
	i := d.table.deleted
	return i >= 0 && d.values[i] != nil && string(d.values[i]) != "null"
}

// MatchKey refuses a key, raw JSON, that is not the one of the row hashed last.
func (d *Digester) MatchKey(key []byte) error {
	identity, err := d.table.AppendIdentity(d.key[:0], key)
	d.key = identity
	if err != nil {
		return err
	}
	if !bytes.Equal(identity, d.Identity()) {
		return fmt.Errorf("%w: key differs from the row's", ErrRow)
	}
	return nil
}
