package worker

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"
	"testing/iotest"
)

// copyData wraps a message of pgoutput as the walsender does.
func copyData(message []byte) []byte {
	b := append([]byte{'d'}, binary.BigEndian.AppendUint32(nil, uint32(4+walDataHeader+len(message)))...)
	return append(append(append(b, 'w'), make([]byte, walDataHeader-1)...), message...)
}

func logical(xid bool, prefix string, size int) []byte {
	b := []byte{msgLogical}
	if xid {
		b = append(b, 0, 0, 0, 9)
	}
	b = append(append(append(b, 1), make([]byte, 8)...), prefix+"\x00"...)
	return append(binary.BigEndian.AppendUint32(b, uint32(size)), bytes.Repeat([]byte{'x'}, size)...)
}

func TestFilterDropsLargeForeignMessagesOnly(t *testing.T) {
	large := 3 * largeMessage
	start, stop := []byte{msgStreamStart, 0, 0, 0, 9, 1}, []byte{msgStreamStop}
	pass := [][]byte{
		copyData([]byte{msgBegin}), copyData(logical(false, "synchro", large)), copyData(logical(false, "other", 100)),
		copyData(start), copyData(logical(true, "synchro", large)), copyData(append([]byte{msgInsert}, make([]byte, large)...)), copyData(stop),
		copyData(logical(false, "synchro", 10)), {'d', 0, 0, 0, 5, 'k'}, {'Z', 0, 0, 0, 5, 'I'},
	}
	drop := [][]byte{copyData(logical(false, "other", large)), copyData(logical(false, "synchro2", large)), copyData(logical(false, "synchro", 4*large))}
	var in, want []byte
	for i, m := range pass {
		in, want = append(in, m...), append(want, m...)
		if i < 3 || i > 6 {
			in = append(in, drop[i%len(drop)]...)
		} else if i < 6 {
			in = append(in, copyData(logical(true, "other", large))...)
		}
	}
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader, "octets": iotest.OneByteReader, "late errors": iotest.DataErrReader,
	} {
		f := newFilter(wrap(bytes.NewReader(in)), int64(4*large))
		got, err := io.ReadAll(f)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d octets of %d, want %d: %v", name, len(got), len(in), len(want), err)
		}
	}
}
