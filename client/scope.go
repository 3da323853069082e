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

// heldRow is a row where it stands.
type heldRow struct {
	held
	key    string
	hashed bool // since its last change
}

// scope is the verified content of one scope. Identities of a table share
// their prefix, so rows are kept under the rest.
type scope struct {
	id       string
	cursor   *string
	complete bool // a rebuild has finished and nothing has invalidated it since
	tables   map[string]*heldTable
	verified string // the digest that the content was last found equal to
	marks    marks
	stats    Stats
}

type heldTable struct {
	prefix string
	rows   map[string]*heldRow
	order  []*heldRow // by key, nil when rows have come or gone
}

// marks are states of the hash on the way to the last digest: the next one
// goes on before the first row that has changed since. They are good for one
// schema and one sequence of rows.
type marks struct {
	schema [canonical.HashSize]byte
	rows   int
	states []*canonical.ScopeHash // before row 0, markDistance, 2*markDistance, ...
}

const markDistance = 128

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
		t = &heldTable{prefix: prefix, rows: map[string]*heldRow{}, order: []*heldRow{}}
		s.tables[id] = t
	}
	return t
}

// put stores a row.
func (t *heldTable) put(key []byte, row held) {
	if known := t.rows[string(key)]; known != nil {
		known.held, known.hashed = row, false
		return
	}
	t.rows[string(key)] = &heldRow{held: row, key: string(key)}
	t.order = nil
}

// appendRow stores the next row of a rebuild, whose order is the final one.
func (t *heldTable) appendRow(key []byte, row held) {
	next := &heldRow{held: row, key: string(key)}
	t.rows[next.key] = next
	t.order = append(t.order, next)
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

// ordered returns the tables in the order of their prefixes. Those are free of
// prefixes of each other, so table by table is identity order.
func (s *scope) ordered() []*heldTable {
	tables := make([]*heldTable, 0, len(s.tables))
	for _, t := range s.tables {
		tables = append(tables, t)
		if t.order != nil {
			continue
		}
		s.marks = marks{}
		t.order = make([]*heldRow, 0, len(t.rows))
		for _, row := range t.rows {
			t.order = append(t.order, row)
		}
		slices.SortFunc(t.order, func(a, b *heldRow) int { return cmp.Compare(a.key, b.key) })
	}
	slices.SortFunc(tables, func(a, b *heldTable) int { return cmp.Compare(a.prefix, b.prefix) })
	return tables
}

// unhashed is the place of the first row that has changed since the last digest.
func unhashed(tables []*heldTable) int {
	n := 0
	for _, t := range tables {
		for _, row := range t.order {
			if !row.hashed {
				return n
			}
			n++
		}
	}
	return n
}

// digest computes the scope digest of what is held.
func (s *scope) digest(schema [canonical.HashSize]byte) (string, error) {
	tables := s.ordered()
	if n := s.cardinality(); s.marks.states == nil || s.marks.schema != schema || s.marks.rows != n {
		start, err := canonical.NewScopeHash(schema, s.id, uint64(n))
		if err != nil {
			return "", err
		}
		s.marks = marks{schema: schema, rows: n, states: []*canonical.ScopeHash{start}}
	}
	mark := min(unhashed(tables)/markDistance, len(s.marks.states)-1)
	s.marks.states = s.marks.states[:mark+1]
	h := s.marks.states[mark].Clone()
	skip := mark * markDistance // rows that the state has
	place := 0
	var identity []byte
	for _, t := range tables {
		if place+len(t.order) <= skip {
			place += len(t.order)
			continue
		}
		for _, row := range t.order[max(0, skip-place):] {
			at := max(place, skip)
			if at%markDistance == 0 && at > skip {
				s.marks.states = append(s.marks.states, h.Clone())
			}
			identity = append(append(identity[:0], t.prefix...), row.key...)
			if err := h.Add(identity, &row.digest); err != nil {
				s.marks = marks{}
				return "", err
			}
			row.hashed = true
			place = at + 1
		}
	}
	sum, err := h.Sum()
	return canonical.HexDigest(sum), err
}

// check compares the digest of what is held with the server's.
func (s *scope) check(schema [canonical.HashSize]byte, want string) error {
	digest, err := s.digest(schema)
	if err != nil {
		return err
	}
	if digest != want {
		return mismatch("scope digest differs from the server's")
	}
	s.verified = digest
	return nil
}
