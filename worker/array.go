package worker

import "encoding/binary"

// Type OIDs of array elements.
const (
	oidInt8  = 20
	oidText  = 25
	oidJSONB = 3802
)

const arrayHeader = 20

// array builds a one-dimensional array parameter in binary format.
type array struct {
	buf   []byte
	elem  uint32
	n     uint32
	nulls bool
}

func (a *array) next() {
	if a.n == 0 {
		a.buf = append(a.buf[:0], make([]byte, arrayHeader)...)
	}
	a.n++
}

func (a *array) text(v []byte) {
	a.next()
	a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(len(v)))
	a.buf = append(a.buf, v...)
}

func (a *array) null() {
	a.next()
	a.nulls = true
	a.buf = binary.BigEndian.AppendUint32(a.buf, 0xffffffff)
}

func (a *array) value(c column) {
	if c.kind == colNull {
		a.null()
		return
	}
	a.text(c.text)
}

// jsonb adds a document's text; nil: null.
func (a *array) jsonb(text []byte) {
	if text == nil {
		a.null()
		return
	}
	a.next()
	a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(1+len(text)))
	a.buf = append(append(a.buf, 1), text...)
}

func (a *array) u64(v uint64) {
	a.next()
	a.buf = binary.BigEndian.AppendUint32(a.buf, 8)
	a.buf = binary.BigEndian.AppendUint64(a.buf, v)
}

// param completes the header and returns the parameter, valid until the array grows again.
func (a *array) param() []byte {
	if a.n == 0 {
		a.next()
		a.n = 0
	}
	binary.BigEndian.PutUint32(a.buf, 1)
	binary.BigEndian.PutUint32(a.buf[4:], map[bool]uint32{true: 1}[a.nulls])
	binary.BigEndian.PutUint32(a.buf[8:], a.elem)
	binary.BigEndian.PutUint32(a.buf[12:], a.n)
	binary.BigEndian.PutUint32(a.buf[16:], 1)
	return a.buf
}
