package worker

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/jackc/pglogrepl"
)

// Message types of pgoutput (protocol version 2) that the core reads. Origin and type messages carry nothing it needs.
const (
	msgBegin        = 'B'
	msgCommit       = 'C'
	msgInsert       = 'I'
	msgUpdate       = 'U'
	msgDelete       = 'D'
	msgTruncate     = 'T'
	msgRelation     = 'R'
	msgType         = 'Y'
	msgOrigin       = 'O'
	msgLogical      = 'M'
	msgStreamStart  = 'S'
	msgStreamStop   = 'E'
	msgStreamCommit = 'c'
	msgStreamAbort  = 'A'
)

// Kinds of a tuple's column.
const (
	colNull      = 'n'
	colUnchanged = 'u' // a TOASTed value that the update did not touch: not in the WAL
	colText      = 't'
)

// errMalformed says that a message of the stream is not what the protocol promises.
var errMalformed = errors.New("malformed message in the replication stream")

// reader takes a message apart. A read past the end sets bad and yields zeroes: callers check once, at the end.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad = true
		r.b = nil
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) u8() byte {
	if v := r.bytes(1); v != nil {
		return v[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if v := r.bytes(2); v != nil {
		return binary.BigEndian.Uint16(v)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if v := r.bytes(4); v != nil {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if v := r.bytes(8); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

func (r *reader) lsn() pglogrepl.LSN { return pglogrepl.LSN(r.u64()) }

func (r *reader) cstring() string {
	i := bytes.IndexByte(r.b, 0)
	if i < 0 {
		r.bad = true
		r.b = nil
		return ""
	}
	v := string(r.b[:i])
	r.b = r.b[i+1:]
	return v
}

// end reports whether everything was read and nothing is left.
func (r *reader) end() error {
	if r.bad || len(r.b) != 0 {
		return errMalformed
	}
	return nil
}

// commitRecord is what B and C, or c, say of a transaction.
type commitRecord struct {
	xid       uint32
	commitLSN pglogrepl.LSN
	endLSN    pglogrepl.LSN
	time      int64 // microseconds since 2000-01-01
}

func parseBegin(d []byte) (c commitRecord, err error) {
	r := reader{b: d[1:]}
	c.commitLSN, c.time, c.xid = r.lsn(), int64(r.u64()), r.u32()
	return c, r.end()
}

func parseCommit(d []byte) (c commitRecord, err error) {
	r := reader{b: d[1:]}
	r.u8()
	c.commitLSN, c.endLSN, c.time = r.lsn(), r.lsn(), int64(r.u64())
	return c, r.end()
}

func parseStreamCommit(d []byte) (c commitRecord, err error) {
	r := reader{b: d[1:]}
	c.xid = r.u32()
	r.u8()
	c.commitLSN, c.endLSN, c.time = r.lsn(), r.lsn(), int64(r.u64())
	return c, r.end()
}

// streamXID reads the transaction of a stream start; parseStreamAbort reads both of an abort.
func parseStreamStart(d []byte) (xid uint32, err error) {
	r := reader{b: d[1:]}
	xid = r.u32()
	r.u8()
	return xid, r.end()
}

func parseStreamAbort(d []byte) (xid, sub uint32, err error) {
	r := reader{b: d[1:]}
	xid, sub = r.u32(), r.u32()
	return xid, sub, r.end()
}

// wireColumn is a column of a relation as the stream describes it.
type wireColumn struct {
	key  bool
	name string
	typ  uint32
}

// wireRelation is a relation as the stream describes it.
type wireRelation struct {
	oid      uint32
	schema   string
	name     string
	identity byte
	columns  []wireColumn
}

// parseRelation reads the body of R (after the type octet and, in a stream, the xid).
func parseRelation(d []byte) (w wireRelation, err error) {
	r := reader{b: d}
	w.oid, w.schema, w.name, w.identity = r.u32(), r.cstring(), r.cstring(), r.u8()
	n := int(r.u16())
	for i := 0; i < n && !r.bad; i++ {
		c := wireColumn{key: r.u8()&1 != 0, name: r.cstring(), typ: r.u32()}
		r.u32() // type modifier
		w.columns = append(w.columns, c)
	}
	return w, r.end()
}

// column is one value of a tuple.
type column struct {
	kind byte
	text []byte
}

// parseTuple reads a tuple into dst, which it reuses.
func (r *reader) tuple(dst []column) []column {
	n := int(r.u16())
	dst = dst[:0]
	for i := 0; i < n && !r.bad; i++ {
		c := column{kind: r.u8()}
		switch c.kind {
		case colNull, colUnchanged:
		case colText:
			c.text = r.bytes(int(r.u32()))
		default: // binary was never asked for
			r.bad = true
		}
		dst = append(dst, c)
	}
	return dst
}

// skipTuple passes over a tuple.
func (r *reader) skipTuple() {
	n := int(r.u16())
	for i := 0; i < n && !r.bad; i++ {
		switch r.u8() {
		case colNull, colUnchanged:
		case colText:
			r.bytes(int(r.u32()))
		default:
			r.bad = true
		}
	}
}

// change is the row change of I, U or D: op, relation and the tuple that holds the key (old for D, else new).
type change struct {
	op    byte
	oid   uint32
	tuple []column
}

// parseChange reads the body of I, U or D; columns are appended to scratch.
func parseChange(op byte, d []byte, scratch []column) (c change, err error) {
	r := reader{b: d}
	c.op, c.oid = op, r.u32()
	switch kind := r.u8(); op {
	case msgInsert:
		if kind != 'N' {
			return c, errMalformed
		}
		c.tuple = r.tuple(scratch)
	case msgDelete:
		if kind != 'K' && kind != 'O' {
			return c, errMalformed
		}
		c.tuple = r.tuple(scratch)
	case msgUpdate:
		if kind == 'K' || kind == 'O' { // the key changed or the identity is FULL
			r.skipTuple()
			kind = r.u8()
		}
		if kind != 'N' {
			return c, errMalformed
		}
		c.tuple = r.tuple(scratch)
	}
	return c, r.end()
}

// parseTruncate reads the body of T: the relations that were emptied.
func parseTruncate(d []byte) (oids []uint32, err error) {
	r := reader{b: d}
	n := int(r.u32())
	r.u8()
	for i := 0; i < n && !r.bad; i++ {
		oids = append(oids, r.u32())
	}
	return oids, r.end()
}

// logicalMessage is the body of M.
type logicalMessage struct {
	transactional bool
	lsn           pglogrepl.LSN
	prefix        string
	content       []byte
}

func parseLogical(d []byte) (m logicalMessage, err error) {
	r := reader{b: d}
	m.transactional, m.lsn, m.prefix = r.u8()&1 != 0, r.lsn(), r.cstring()
	m.content = r.bytes(int(r.u32()))
	return m, r.end()
}
