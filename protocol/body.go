package protocol

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"

	"synchro/internal/ijson"
)

// Version is the one protocol version that is spoken here.
const Version = 3

// Limits on requests. Bodies are measured while they are read.
const (
	MaxPushBody = 1 << 20 // octets of a push request
	MaxBody     = 8 << 20 // octets of any other request; known scopes and their cursors can be many
	MaxDepth    = 32      // open arrays and objects
	MaxLimit    = 1000    // rows of a page
)

// trusted is how much memory an announcement alone is worth.
const trusted = 64 << 10

// Reasons why the intake refuses a request. The answer to all is invalid_request.
var (
	ErrTooLarge = errors.New("body is too large")
	errRange    = errors.New("out of range")
	errEmpty    = errors.New("empty")
	errFraming  = errors.New("malformed transfer coding")
	errUUID     = errors.New("not a lower case, hyphenated, non-nil UUID")
)

// ReadBody reads a whole request body of at most limit octets; announced is its length if that is known, or -1. One that did not arrive
// says nothing about the request: it may be sent again; one whose framing is wrong would be wrong again.
func ReadBody(r io.Reader, limit, announced int64) ([]byte, error) {
	var buffer bytes.Buffer
	buffer.Grow(int(min(max(announced, 0), trusted)) + bytes.MinRead)
	_, err := buffer.ReadFrom(io.LimitReader(r, limit+1))
	body := buffer.Bytes()
	var tooLarge *http.MaxBytesError
	var network net.Error
	switch {
	case errors.As(err, &tooLarge) || int64(len(body)) > limit:
		return nil, invalidRequest(ErrTooLarge)
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, &network):
		return nil, invalidRequest(errFraming)
	case err != nil:
		e := NewError(ErrTemporaryUnavailable, "the request did not arrive completely") // the cause may name addresses
		e.Cause = err
		return nil, e
	}
	return body, nil
}

// invalidRequest wraps the reason, which never holds request data.
func invalidRequest(reason error) *Error {
	e := NewError(ErrInvalidRequest, "request is invalid: "+reason.Error())
	e.Cause = reason
	return e
}

// open checks a whole body and returns its value with a reader for it.
func open(body []byte) (*ijson.Reader, []byte) {
	value, err := ijson.Value(body, MaxDepth)
	return &ijson.Reader{Err: err, Checked: err == nil}, value
}

// Gates is what a request whose shape is wrong says of the checks that come before the shape, as a request of its own that no endpoint
// accepts: client id and versions. nil when it names no client.
func Gates(body []byte) []byte {
	value, err := ijson.Value(body, MaxDepth)
	if err != nil || ijson.KindOf(value) != ijson.Object {
		return nil
	}
	members, err := ijson.Map(value)
	if err != nil {
		return nil
	}
	out, named := []byte{'{'}, false
	for _, m := range members {
		switch name := string(m.Name); name {
		case "client_id":
			named = ijson.KindOf(m.Value) == ijson.String
		case "protocol_version", "app_version":
		default:
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(ijson.AppendQuoted(out, m.Name), ':'), m.Value...)
	}
	if !named {
		return nil
	}
	return append(out, '}')
}
