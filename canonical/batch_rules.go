package canonical

import (
	"errors"
	"fmt"

	"synchro/internal/ijson"
)

// Limits of a push batch.
const (
	MaxMutations    = 1000
	MaxColumns      = 256
	MaxMutationSize = 64 << 10 // normalized
	maxUserID       = 255
)

// ErrNoGeneration says that a batch is sound but for its absent generation,
// which has an answer of its own on the wire.
var ErrNoGeneration = errors.New("push batch has no client generation")

var (
	errRange  = errors.New("out of range")
	errEmpty  = errors.New("empty")
	errAtomic = errors.New("true or absent, nothing else")
	errOneKey = errors.New("a key has exactly one field")
)

func invalid(what string) error { return fmt.Errorf("%w: %s", ErrFingerprint, what) }

// Validate checks every rule that needs neither database nor manifest. It also
// puts columns into the order in which they are hashed.
func (b *Batch) Validate() error {
	if checkName(b.ClientID) != nil || b.Generation < 0 || b.Generation > ijson.MaxSafe || !IsUUID(b.ID) {
		return invalid("client id, generation or batch id")
	}
	if !b.Schema.Valid() {
		return invalid("request schema")
	}
	if len(b.Mutations) == 0 || len(b.Mutations) > MaxMutations {
		return invalid("number of mutations")
	}
	ids := make(map[string]struct{}, len(b.Mutations))
	rows := make(map[string]struct{}, len(b.Mutations))
	for i := range b.Mutations {
		m := &b.Mutations[i]
		if err := m.Validate(); err != nil {
			return fmt.Errorf("mutation %d: %w", i, err)
		}
		if _, repeated := ids[m.ID]; repeated {
			return invalid("a mutation id appears twice")
		}
		ids[m.ID] = struct{}{}
		if !b.Atomic {
			continue
		}
		row, err := m.row()
		if err != nil {
			return err
		}
		if _, repeated := rows[row]; repeated {
			return invalid("an atomic batch writes a row twice")
		}
		rows[row] = struct{}{}
	}
	if b.Generation == 0 {
		return ErrNoGeneration
	}
	return nil
}

// row spells the written row independently of how the request spelled its key.
func (m *Mutation) row() (string, error) {
	key, err := Canonicalize(m.Key.JSON)
	return m.TableID + "\x00" + string(key), err
}

// Validate checks one mutation by itself and sorts its columns.
func (m *Mutation) Validate() error {
	if !IsUUID(m.ID) || checkName(m.TableID) != nil || checkName(m.Key.FieldID) != nil {
		return invalid("mutation id, table or key")
	}
	if !m.Authored.Valid() {
		return invalid("authored schema")
	}
	if checkDatetime([]byte(m.ClientVersion)) != nil {
		return invalid("client version")
	}
	if err := m.checkOp(); err != nil {
		return err
	}
	if len(m.Columns) > MaxColumns {
		return invalid("number of columns")
	}
	sortColumns(m.Columns)
	for i, column := range m.Columns {
		if checkName(column.FieldID) != nil {
			return invalid("field id")
		}
		if i > 0 && m.Columns[i-1].FieldID == column.FieldID {
			return invalid("a field appears twice")
		}
	}
	return m.checkSize()
}

// maxGrowth is how many times as long the RFC 8785 form of a value can be: 1e20 has 21 digits.
const maxGrowth = 6

// checkSize refuses a mutation that is too large in the form that gets hashed. Most are so small that nobody has to look.
func (m *Mutation) checkSize() error {
	size := len(m.TableID) + len(m.Key.FieldID) + len(m.Key.JSON) + len(m.BaseVersion)
	for _, column := range m.Columns {
		size += len(column.FieldID) + len(column.JSON) + 1
	}
	if (size+200)*maxGrowth <= MaxMutationSize {
		return nil
	}
	normalized, err := m.NormalizedSize()
	if err != nil {
		return err
	}
	if normalized > MaxMutationSize {
		return invalid("mutation is too large")
	}
	return nil
}

// checkOp holds the matrix of operation, base version and columns.
func (m *Mutation) checkOp() error {
	var wantBase, wantColumns, needColumn bool
	switch m.Op {
	case Insert:
		wantColumns = true
	case Update:
		wantBase, wantColumns, needColumn = true, true, true
	case Delete:
		wantBase = true
	default:
		return invalid("operation")
	}
	if wantBase != (m.BaseVersion != "") || wantBase && checkName(m.BaseVersion) != nil {
		return invalid("base version")
	}
	if wantColumns != (m.Columns != nil) || needColumn && len(m.Columns) == 0 {
		return invalid("columns")
	}
	return nil
}

// Valid tells whether the reference can name a manifest.
func (r SchemaRef) Valid() bool {
	_, ok := ParseHash(r.Hash)
	return ok && r.Version > 0 && r.Version <= ijson.MaxSafe
}

func checkUser(userID string) error {
	if len(userID) > maxUserID || checkName(userID) != nil {
		return invalid("user id")
	}
	return nil
}

// checkName accepts non-empty text that a database can hold.
func checkName(name string) error {
	if name == "" {
		return invalid("empty name")
	}
	return checkIdentifier([]byte(name))
}

// IsUUID tells whether text is a lower case, hyphenated UUID other than nil.
func IsUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	zero := true
	for i := range len(text) {
		c := text[i]
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
			continue
		}
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
		zero = zero && c == '0'
	}
	return !zero
}
