package protocol

import (
	"errors"
	"fmt"

	"synchro/canonical"
	"synchro/internal/ijson"
)

// ErrResponse is wrapped by the refusal of a server's answer.
var ErrResponse = errors.New("response breaks the protocol")

var (
	errAction   = errors.New("does not fit the schema action")
	errTerminal = errors.New("does not fit the page's place")
	errChecksum = errors.New("unknown checksum form")
	errOneKey   = errors.New("a key has exactly one field")
	errPair     = errors.New("a row and its checksum come together")
)

// Row is one row as it travels. Key and Columns are raw JSON; Columns is nil
// and Checksum empty where only the identity is sent.
type Row struct {
	Table         string
	KeyField      string
	Key           []byte
	Columns       []byte
	Checksum      string // hex
	ServerVersion string
}

var checksumShape = ijson.NewShape([]string{"algorithm", "version", "encoding", "digest"})

// checksum reads a checksum object and returns its hex digest.
func checksum(r *ijson.Reader, raw []byte) string {
	v := r.Object(checksumShape, raw)
	digest := v.Text(3)
	if _, ok := canonical.ParseHash(digest); !ok || v.Text(0) != "sha256" || v.Integer(1) != 1 || v.Text(2) != "hex" {
		r.Keep(errChecksum)
	}
	return digest
}

func readKey(r *ijson.Reader, raw []byte) (field string, key []byte) {
	members := r.Map(raw)
	if len(members) != 1 {
		r.Keep(errOneKey)
		return "", nil
	}
	return string(members[0].Name), members[0].Value
}

// readRow reads the members row and checksum, which may both be absent.
func readRow(r *ijson.Reader, v ijson.Fields, row, sum int) (columns []byte, digest string) {
	if v.Has(row) != v.Has(sum) {
		v.Refuse(row, errPair)
	}
	if !v.Has(row) || !v.Has(sum) {
		return nil, ""
	}
	return v.Raw(row), checksum(r, v.Raw(sum))
}

func optionalText(v ijson.Fields, i int) string {
	if !v.Has(i) {
		return ""
	}
	return v.Text(i)
}

func texts(r *ijson.Reader, raw []byte) []string {
	var out []string
	r.Each(raw, func(element []byte) { out = append(out, r.Text(element)) })
	return out
}

func nullableCursor(r *ijson.Reader, raw []byte) *string {
	if string(raw) == "null" {
		return nil
	}
	text := r.Text(raw)
	return &text
}

func scopeDelta(r *ijson.Reader, raw []byte) (d ScopeDelta) {
	v := r.Object(deltaShape, raw)
	r.Each(v.Raw(0), func(raw []byte) {
		a := r.Object(addedScopeShape, raw)
		d.Add = append(d.Add, ScopeAdded{ID: a.Text(0), Cursor: a.NullableText(1)})
	})
	d.Remove = texts(r, v.Raw(1))
	return d
}

// openResponse starts reading an answer; its parts are checked as they are read.
func openResponse(body []byte) (*ijson.Reader, []byte) {
	return &ijson.Reader{}, trimBlanks(body)
}

func trimBlanks(body []byte) []byte {
	for len(body) > 0 && (body[0] == ' ' || body[0] == '\n' || body[0] == '\r' || body[0] == '\t') {
		body = body[1:]
	}
	return body
}

func responseError(r *ijson.Reader) error {
	if r.Err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrResponse, r.Err)
}
