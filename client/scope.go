package client

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"synchro/canonical"
)

// ErrIntegrity is wrapped by every disagreement between what the server sent
// and what it hashes to.
var ErrIntegrity = errors.New("integrity check failed")

// mismatch names what disagrees, without identities or values.
func mismatch(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrIntegrity}, args...)...)
}

// held is what is remembered of one row.
type held struct {
	digest  [canonical.HashSize]byte
	version string
}

// scope is the verified content of one scope. Identities of a table share
// their prefix, so rows are kept under the rest.
type scope struct {
	id       string
	cursor   *string
	complete bool // a rebuild has finished and nothing has invalidated it since
	tables   map[string]*heldTable
	verified string // the digest that the content was last found equal to
	stats    Stats
}

type heldTable struct {
	prefix string
	rows   map[string]held
	order  []string // sorted keys of rows, nil when stale
}

// Stats counts what was received and checked for one scope.
type Stats struct {
	Pages   int
	Rows    int   // rows checked since the last rebuild began, that rebuild's included
	Bytes   int64 // JSON of those rows
	Elapsed time.Duration
}

func newScope(id string, cursor *string) *scope {
	return &scope{id: id, cursor: cursor, tables: map[string]*heldTable{}}
}

// table returns the rows of one table, whose identities start with prefix.
func (s *scope) table(id, prefix string) *heldTable {
	t := s.tables[id]
	if t == nil {
		t = &heldTable{prefix: prefix, rows: map[string]held{}, order: []string{}}
		s.tables[id] = t
	}
	return t
}

// put stores a row and reports whether it is new.
func (t *heldTable) put(key []byte, row held) bool {
	_, known := t.rows[string(key)]
	t.rows[string(key)] = row
	if !known {
		t.order = nil
	}
	return !known
}

// appendRow stores the next row of a rebuild, whose order is the final one.
func (t *heldTable) appendRow(key []byte, row held) {
	text := string(key)
	t.rows[text] = row
	t.order = append(t.order, text)
}

func (t *heldTable) drop(key []byte) {
	if _, known := t.rows[string(key)]; known {
		delete(t.rows, string(key))
		t.order = nil
	}
}

func (s *scope) cardinality() int {
	n := 0
	for _, t := range s.tables {
		n += len(t.rows)
	}
	return n
}

// digest computes the scope digest of what is held. Prefixes are free of
// prefixes of each other, so table by table is identity order.
func (s *scope) digest(schema [canonical.HashSize]byte) (string, error) {
	tables := make([]*heldTable, 0, len(s.tables))
	for _, t := range s.tables {
		tables = append(tables, t)
	}
	slices.SortFunc(tables, func(a, b *heldTable) int { return cmp.Compare(a.prefix, b.prefix) })
	h, err := canonical.NewScopeHash(schema, s.id, uint64(s.cardinality()))
	if err != nil {
		return "", err
	}
	var identity []byte
	for _, t := range tables {
		if t.order == nil {
			t.order = make([]string, 0, len(t.rows))
			for key := range t.rows {
				t.order = append(t.order, key)
			}
			slices.Sort(t.order)
		}
		for _, key := range t.order {
			row := t.rows[key]
			identity = append(append(identity[:0], t.prefix...), key...)
			if err := h.Add(identity, &row.digest); err != nil {
				return "", err
			}
		}
	}
	sum, err := h.Sum()
	return canonical.HexDigest(sum), err
}
