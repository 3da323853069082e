package protocol

import (
	"synchro/canonical"
	"synchro/internal/ijson"
)

// Rules shared by the requests. Each records a refusal and returns the value.

// name reads a non-empty text.
func name(f ijson.Fields, i int) string {
	text := f.Text(i)
	if text == "" {
		f.Refuse(i, errEmpty)
	}
	return text
}

func uuid(f ijson.Fields, i int) string {
	text := f.Text(i)
	if !canonical.IsUUID(text) {
		f.Refuse(i, errUUID)
	}
	return text
}

func within(f ijson.Fields, i int, low, high int64) int64 {
	n := f.Integer(i)
	if n < low || n > high {
		f.Refuse(i, errRange)
	}
	return n
}

// generation reads an optional positive client generation.
func generation(f ijson.Fields, i int) *int64 {
	if !f.Has(i) {
		return nil
	}
	n := within(f, i, 1, ijson.MaxSafe)
	return &n
}

// currentSchema reads a reference that must be able to name a manifest.
func currentSchema(r *ijson.Reader, f ijson.Fields, i int) SchemaRef {
	ref := canonical.ReadSchemaRef(r, f.Raw(i))
	if !ref.Valid() {
		f.Refuse(i, errRange)
	}
	return ref
}

// nullableName is name, or null.
func nullableName(f ijson.Fields, i int) *string {
	if f.Null(i) {
		return nil
	}
	text := name(f, i)
	return &text
}

var cursorShape = ijson.NewShape([]string{"cursor"})

// scopeCursors reads a map of scope id to {"cursor": text or null}.
func scopeCursors(r *ijson.Reader, raw []byte) map[string]ScopeCursor {
	scopes := map[string]ScopeCursor{}
	for _, m := range r.Map(raw) {
		f := r.Object(cursorShape, m.Value)
		scopes[mapKey(r, m.Name)] = ScopeCursor{Cursor: nullableName(f, 0)}
	}
	return scopes
}

// mapKey checks a member name that is a scope id.
func mapKey(r *ijson.Reader, key []byte) string {
	if len(key) == 0 {
		r.Keep(errEmpty)
	}
	return string(key)
}
