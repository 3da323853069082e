package ijson

import "fmt"

// Reader keeps the first error while a structure is read, so that reading it
// stays a plain list of members.
type Reader struct {
	Err error
	// Checked promises that the whole input has passed Validate, so that the
	// structure around nested values need not be checked level by level.
	Checked bool

	slab [][]byte // room for the members of objects to come
}

func (r *Reader) scanner(raw []byte) scanner {
	return scanner{data: raw, depth: DefaultDepth, skim: r.Checked}
}

// room returns n empty places.
func (r *Reader) room(n int) [][]byte {
	if len(r.slab) < n {
		r.slab = make([][]byte, max(n, 256))
	}
	out := r.slab[:n:n]
	r.slab = r.slab[n:]
	return out
}

// Keep records an error unless there is one already.
func (r *Reader) Keep(err error) {
	if r.Err == nil {
		r.Err = err
	}
}

// Object reads an exact object.
func (r *Reader) Object(shape Shape, raw []byte) Fields {
	f := Fields{r: r, shape: shape, values: r.room(len(shape.names))}
	if r.Err == nil {
		r.Keep(shape.read(f.values, r.scanner(raw)))
	}
	return f
}

// Each reads an array. visit is not called any more after an error.
func (r *Reader) Each(raw []byte, visit func(element []byte)) {
	if r.Err == nil {
		r.Keep(elements(r.scanner(raw), func(element []byte) error {
			visit(element)
			return r.Err
		}))
	}
}

// Map reads an object with free names.
func (r *Reader) Map(raw []byte) []Member {
	if r.Err != nil {
		return nil
	}
	members, err := readMap(r.scanner(raw))
	r.Keep(err)
	return members
}

// Single reads an object of exactly one member; it records the given error for
// any other number.
func (r *Reader) Single(raw []byte, other error) (name, value []byte) {
	if r.Err != nil {
		return nil, nil
	}
	count := 0
	r.Keep(members(r.scanner(raw), func(n, v []byte) error {
		name, value = n, v
		count++
		return nil
	}))
	if count != 1 {
		r.Keep(other)
	}
	return name, value
}

// Text reads a string.
func (r *Reader) Text(raw []byte) string {
	text, err := Text(raw)
	r.Keep(err)
	return string(text)
}

// Fields are the members of one exact object, by their position in its shape.
type Fields struct {
	r      *Reader
	shape  Shape
	values [][]byte
}

func (f Fields) keep(i int, err error) {
	if err != nil && f.r.Err == nil {
		f.r.Err = fmt.Errorf("member %s: %w", f.shape.names[i], err)
	}
}

// Has tells whether an optional member is there.
func (f Fields) Has(i int) bool { return f.values[i] != nil }

// Raw returns the member as it lies in the input, nil if absent.
func (f Fields) Raw(i int) []byte { return f.values[i] }

// Null tells whether the member is null.
func (f Fields) Null(i int) bool { return string(f.values[i]) == "null" }

// Refuse records that the member breaks a rule.
func (f Fields) Refuse(i int, rule error) { f.keep(i, rule) }

// Text reads a string member.
func (f Fields) Text(i int) string {
	text, err := Text(f.values[i])
	f.keep(i, err)
	return string(text)
}

// NullableText reads a string or null; nil is null.
func (f Fields) NullableText(i int) *string {
	if f.Null(i) {
		return nil
	}
	text := f.Text(i)
	return &text
}

// Integer reads an integer literal.
func (f Fields) Integer(i int) int64 {
	n, err := Integer(f.values[i])
	f.keep(i, err)
	return n
}

// OptionalInteger reads an integer literal or the absence of one.
func (f Fields) OptionalInteger(i int) *int64 {
	if f.values[i] == nil {
		return nil
	}
	n := f.Integer(i)
	return &n
}

// Bool reads true or false.
func (f Fields) Bool(i int) bool {
	b, err := Bool(f.values[i])
	f.keep(i, err)
	return b
}
