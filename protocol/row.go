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

// Spelling of a checksum as servers write it, around the digest.
const (
	checksumHead = `{"algorithm":"sha256","version":1,"encoding":"hex","digest":"`
	checksumTail = `"}`
)

// checksum reads a checksum object and returns its hex digest.
func checksum(r *ijson.Reader, raw []byte) string {
	if digest, ok := usualChecksum(raw); ok {
		return digest
	}
	v := r.Object(checksumShape, raw)
	digest := v.Text(3)
	if _, ok := canonical.ParseHash(digest); !ok || v.Text(0) != "sha256" || v.Integer(1) != 1 || v.Text(2) != "hex" {
		r.Keep(errChecksum)
	}
	return digest
}

// usualChecksum saves the parsing of the one spelling that occurs a million times.
func usualChecksum(raw []byte) (digest string, ok bool) {
	if len(raw) != len(checksumHead)+2*canonical.HashSize+len(checksumTail) ||
		string(raw[:len(checksumHead)]) != checksumHead || string(raw[len(raw)-len(checksumTail):]) != checksumTail {
		return "", false
	}
	digest = string(raw[len(checksumHead) : len(raw)-len(checksumTail)])
	_, ok = canonical.ParseHash(digest)
	return digest, ok
}

// known keeps the texts that every row of a page repeats, so that each is
// allocated once.
type known struct{ table, key string }

func (k *known) text(slot *string, text []byte) string {
	if *slot != string(text) {
		*slot = string(text)
	}
	return *slot
}

func (k *known) readTable(v ijson.Fields, i int) string {
	text, err := ijson.Text(v.Raw(i))
	if err != nil {
		v.Refuse(i, err)
	}
	return k.text(&k.table, text)
}

func (k *known) readKey(r *ijson.Reader, raw []byte) (field string, key []byte) {
	name, value := r.Single(raw, errOneKey)
	return k.text(&k.key, name), value
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

// openResponse starts reading an answer.
func openResponse(body []byte) (*ijson.Reader, []byte) {
	value, err := ijson.Value(body, ijson.DefaultDepth)
	return &ijson.Reader{Err: err, Checked: err == nil}, value
}

func responseError(r *ijson.Reader) error {
	if r.Err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrResponse, r.Err)
}
