package worker

import (
	"bufio"
	"encoding/binary"
	"io"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	largeMessage  = 64 << 10
	messageLeast  = 64 << 20 // bound of our own messages where rows are small
	messageFactor = 4        // text of a row's values per octet of them, at most
	protocolHead  = 5
	messageHead   = protocolHead + walDataHeader + 1 + 4 + 1 + 8 + len(messagePrefix) + 1
)

// filter passes the replication stream on, but not large logical messages of others: everybody may emit them, up to a gigabyte each,
// pgoutput sends them all, and the protocol reader would hold each in memory.
type filter struct {
	r       *bufio.Reader
	largest int64 // no message of ours is larger
	left    int64 // of the protocol message that is being passed on
	skip    int64 // of the one that is dropped
	stream  bool  // between S and E, where messages begin with a transaction
}

// filtered makes the frontend of a replication connection.
func filtered(maxRowBytes int64) func(io.Reader, io.Writer) *pgproto3.Frontend {
	return func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		return pgproto3.NewFrontend(newFilter(r, max(messageFactor*maxRowBytes, messageLeast)), w)
	}
}

func newFilter(r io.Reader, largest int64) *filter {
	return &filter{r: bufio.NewReaderSize(r, largeMessage), largest: largest}
}

// Read returns what is there without waiting for more.
func (f *filter) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if f.left == 0 {
			if n > 0 && f.r.Buffered() < messageHead {
				break
			}
			if err := f.next(); err != nil {
				return n, err
			}
		}
		if n > 0 && f.r.Buffered() == 0 {
			break
		}
		m, err := f.r.Read(p[n:min(int64(len(p)), int64(n)+f.left)])
		n += m
		f.left -= int64(m)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// next finds the next protocol message to pass on. After an error, a deadline for instance, it can be called again.
func (f *filter) next() error {
	for {
		for f.skip > 0 {
			n, err := f.r.Discard(int(min(f.skip, largeMessage)))
			f.skip -= int64(n)
			if err != nil {
				return err
			}
		}
		head, err := f.r.Peek(protocolHead)
		if err != nil {
			return err
		}
		size := int64(binary.BigEndian.Uint32(head[1:])) + 1
		if head[0] != 'd' || size <= protocolHead+walDataHeader {
			f.left = max(size, protocolHead)
			return nil
		}
		if head, err = f.r.Peek(int(min(size, int64(messageHead)))); err != nil {
			return err
		}
		if head[protocolHead] == pglogrepl.XLogDataByteID && f.foreign(head[protocolHead+walDataHeader:], size) {
			f.skip = size
			continue
		}
		f.left = size
		return nil
	}
}

// foreign tells from its first octets whether a message of pgoutput is dropped.
func (f *filter) foreign(d []byte, size int64) bool {
	switch d[0] {
	case msgStreamStart:
		f.stream = true
	case msgStreamStop:
		f.stream = false
	case msgLogical:
		if size <= largeMessage {
			return false
		}
		at := 1 + 1 + 8
		if f.stream {
			at += 4
		}
		return size > f.largest || string(d[at:at+len(messagePrefix)+1]) != messagePrefix+"\x00"
	}
	return false
}
