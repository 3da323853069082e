package ijson

import (
	"fmt"
)

// Members calls visit for each member of one object, all of raw, with the
// decoded name. Everything inside the values is checked; duplicate names of
// the object itself are the visitor's to refuse.
func Members(raw []byte, visit func(name, value []byte) error) error {
	return members(scanner{data: raw, depth: DefaultDepth}, visit)
}

func members(s scanner, visit func(name, value []byte) error) error {
	if KindOf(s.data) != Object {
		return ErrType
	}
	if err := s.object(visit); err != nil {
		return err
	}
	return s.end()
}

// Elements calls visit for each element of one array, all of raw.
func Elements(raw []byte, visit func(element []byte) error) error {
	return elements(scanner{data: raw, depth: DefaultDepth}, visit)
}

func elements(s scanner, visit func(element []byte) error) error {
	if KindOf(s.data) != Array {
		return ErrType
	}
	if err := s.array(visit); err != nil {
		return err
	}
	return s.end()
}

func (s *scanner) end() error {
	if s.blanks(); s.pos != len(s.data) {
		return ErrSyntax
	}
	return nil
}

// Map reads an object with free member names into entries in input order.
// Duplicate names are refused.
func Map(raw []byte) ([]Member, error) {
	return readMap(scanner{data: raw, depth: DefaultDepth})
}

func readMap(s scanner) ([]Member, error) {
	var list []Member
	var seen names
	err := members(s, func(name, value []byte) error {
		if !seen.add(name) {
			return ErrDuplicate
		}
		list = append(list, Member{Name: name, Value: value})
		return nil
	})
	return list, err
}

// Member is one member of an object; the name is decoded.
type Member struct{ Name, Value []byte }

// Shape describes an exact object: its member names and how many of them,
// counted from the first, must be there.
type Shape struct {
	names    []string
	required int
}

// NewShape makes a shape from its required and its optional member names.
func NewShape(required []string, optional ...string) Shape {
	return Shape{names: append(append([]string(nil), required...), optional...), required: len(required)}
}

// Read returns the members' values in the order of the shape's names, nil for
// an absent optional one. It refuses unknown, duplicate and missing members.
func (sh Shape) Read(raw []byte) ([][]byte, error) {
	values := make([][]byte, len(sh.names))
	return values, sh.ReadInto(values, raw)
}

// ReadInto is Read into a slice of the caller with room for every name.
func (sh Shape) ReadInto(values [][]byte, raw []byte) error {
	return sh.read(values, scanner{data: raw, depth: DefaultDepth})
}

func (sh Shape) read(values [][]byte, s scanner) error {
	clear(values)
	err := members(s, func(name, value []byte) error {
		i := sh.index(name)
		if i < 0 {
			return ErrUnknown
		}
		if values[i] != nil {
			return fmt.Errorf("member %s: %w", sh.names[i], ErrDuplicate)
		}
		values[i] = value
		return nil
	})
	if err != nil {
		return err
	}
	for i := range sh.required {
		if values[i] == nil {
			return fmt.Errorf("member %s: %w", sh.names[i], ErrMissing)
		}
	}
	return nil
}

func (sh Shape) index(name []byte) int {
	for i, n := range sh.names {
		if n == string(name) {
			return i
		}
	}
	return -1
}
