package worker

import (
	"encoding/binary"

	"github.com/dchest/siphash"
	"github.com/jackc/pglogrepl"
)

// Types of the extension's WAL messages (docs/architecture.md, section 2).
const (
	messagePrefix  = "synchro"
	typeFence      = 'F'
	typeActivation = 'A'
	typeSwitch     = 'S'
	typePush       = 'P'
	typeMarker     = 'M'
	typeDrift      = 'D'
	typeCompaction = 'C'
)

const macSize = 16

// macKey is a SipHash key of purpose fence.
type macKey struct{ k0, k1 uint64 }

func newMACKey(secret []byte) (macKey, bool) {
	if len(secret) != 16 {
		return macKey{}, false
	}
	return macKey{binary.LittleEndian.Uint64(secret), binary.LittleEndian.Uint64(secret[8:])}, true
}

// authenticator checks the MAC of messages. Anybody may emit a logical message, so nothing of one counts before that.
type authenticator struct {
	ring *keyring
	buf  []byte
}

// open returns type and body of an authentic message; lsn is its position in the WAL or one above. An error is one of reading the keys.
func (a *authenticator) open(topXID uint32, lsn pglogrepl.LSN, content []byte) (typ byte, body []byte, ok bool, err error) {
	if len(content) < 1+macSize {
		return 0, nil, false, nil
	}
	typ, body = content[0], content[1+macSize:]
	a.buf = binary.BigEndian.AppendUint32(a.buf[:0], topXID)
	a.buf = append(a.buf, typ)
	a.buf = append(a.buf, body...)
	if cap(a.buf) > 16*largeMessage {
		defer func() { a.buf = nil }()
	}
	if a.signed(a.ring.current(), content) {
		return typ, body, true, nil
	}
	keys, err := a.ring.beyond(lsn)
	return typ, body, err == nil && a.signed(keys, content), err
}

// signed compares the MAC of a message with that of the octets in buf, in a time that does not depend on them.
func (a *authenticator) signed(keys []macKey, content []byte) bool {
	want0 := binary.LittleEndian.Uint64(content[1:])
	want1 := binary.LittleEndian.Uint64(content[9:])
	for _, k := range keys {
		h0, h1 := siphash.Hash128(k.k0, k.k1, a.buf)
		if (h0^want0)|(h1^want1) == 0 {
			return true
		}
	}
	return false
}

// fence is the body of F: what the trigger of a row operation says of it.
type fence struct {
	op        byte
	kind      byte
	relNo     int32
	relation  [16]byte
	table     [16]byte // zero for a capture dependency
	ordinal   uint64
	id        [16]byte
	xid       uint32 // of the (sub)transaction that changed the row: raw xmin of a new tuple
	version   []byte
	qualified []byte
	key       []byte
	generated []byte // encoded values of stored generated columns
}

const (
	kindSynced     = 's'
	kindDependency = 'd'
)

func parseFence(body []byte) (f fence, err error) {
	r := reader{b: body}
	f.op, f.kind, f.relNo = r.u8(), r.u8(), int32(r.u32())
	copy(f.relation[:], r.bytes(16))
	if f.kind == kindSynced {
		copy(f.table[:], r.bytes(16))
	} else if f.kind != kindDependency {
		return f, errMalformed
	}
	f.ordinal = r.u64()
	copy(f.id[:], r.bytes(16))
	f.xid, f.version = r.u32(), r.bytes(16)
	f.qualified = r.bytes(int(r.u16()))
	f.key = r.bytes(int(r.u32()))
	start := r.b
	n := int(r.u16())
	for i := 0; i < n && !r.bad; i++ {
		r.u16()
		r.u8()
		r.bytes(int(r.u32()))
	}
	f.generated = start
	return f, r.end()
}

// eachGenerated calls fn for every value of a stored generated column in a fence that parseFence accepted.
func (f fence) eachGenerated(fn func(attnum int16, c column)) {
	r := reader{b: f.generated}
	n := int(r.u16())
	for range n {
		attnum, present := int16(r.u16()), r.u8()
		c := column{kind: colNull}
		if text := r.bytes(int(r.u32())); present != 0 {
			c = column{kind: colText, text: text}
		}
		fn(attnum, c)
	}
}

// parsePair reads the body of A and S (generation, xid8 of the transaction that tells of it) and of P (client, write epoch).
func parsePair(body []byte) (first, second int64, err error) {
	r := reader{b: body}
	first, second = int64(r.u64()), int64(r.u64())
	return first, second, r.end()
}
