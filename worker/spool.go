package worker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	recordHeader = 9 // u32 length of the body, u32 subtransaction, u8 type
	readAhead    = 64 << 10
)

// spool holds the messages of one source transaction in their order: in memory while it is small, then in a file that has
// no name any more. A record is found again by its offset.
type spool struct {
	mem   []byte
	file  *os.File
	w     *bufio.Writer
	size  int64
	limit int // of mem
	dir   string
}

// append adds a record. sub is 0 outside streamed transactions.
func (s *spool) append(sub uint32, typ byte, body []byte) error {
	if s.file == nil && len(s.mem)+recordHeader+len(body) > s.limit {
		if err := s.spill(); err != nil {
			return err
		}
	}
	var h [recordHeader]byte
	binary.BigEndian.PutUint32(h[:], uint32(len(body)))
	binary.BigEndian.PutUint32(h[4:], sub)
	h[8] = typ
	s.size += int64(recordHeader + len(body))
	if s.file == nil {
		s.mem = append(append(s.mem, h[:]...), body...)
		return nil
	}
	if _, err := s.w.Write(h[:]); err != nil {
		return fmt.Errorf("spooling a transaction: %w", err)
	}
	if _, err := s.w.Write(body); err != nil {
		return fmt.Errorf("spooling a transaction: %w", err)
	}
	return nil
}

func (s *spool) spill() error {
	f, err := os.CreateTemp(s.dir, "synchro-spool-")
	if err != nil {
		return fmt.Errorf("spooling a transaction: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return errors.Join(err, f.Close())
	}
	s.file, s.w = f, bufio.NewWriterSize(f, readAhead)
	_, err = s.w.Write(s.mem)
	s.mem = nil
	return err
}

// sealed must be called before reading.
func (s *spool) sealed() error {
	if s.w == nil {
		return nil
	}
	err := s.w.Flush()
	s.w = nil
	return err
}

func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
	*s = spool{}
}

// each calls fn for every record; body is valid only during the call.
func (s *spool) each(fn func(off int64, sub uint32, typ byte, body []byte) error) error {
	if s.file == nil {
		for off := 0; off < len(s.mem); {
			n := int(binary.BigEndian.Uint32(s.mem[off:]))
			end := off + recordHeader + n
			if err := fn(int64(off), binary.BigEndian.Uint32(s.mem[off+4:]), s.mem[off+8], s.mem[off+recordHeader:end]); err != nil {
				return err
			}
			off = end
		}
		return nil
	}
	in := bufio.NewReaderSize(io.NewSectionReader(s.file, 0, s.size), 4*readAhead)
	var h [recordHeader]byte
	var body []byte
	for off := int64(0); off < s.size; {
		if _, err := io.ReadFull(in, h[:]); err != nil {
			return fmt.Errorf("reading a spooled transaction: %w", err)
		}
		n := int(binary.BigEndian.Uint32(h[:]))
		if cap(body) < n {
			body = make([]byte, n+n/2)
		}
		body = body[:n]
		if _, err := io.ReadFull(in, body); err != nil {
			return fmt.Errorf("reading a spooled transaction: %w", err)
		}
		if err := fn(off, binary.BigEndian.Uint32(h[4:]), h[8], body); err != nil {
			return err
		}
		off += int64(recordHeader + n)
	}
	return nil
}

// window reads records of a spool at growing offsets with few system calls.
type window struct {
	buf   []byte
	start int64
}

// at returns the record at off; body is valid until the next call.
func (w *window) at(s *spool, off int64) (typ byte, body []byte, err error) {
	if s.file == nil {
		n := int64(binary.BigEndian.Uint32(s.mem[off:]))
		return s.mem[off+8], s.mem[off+recordHeader : off+recordHeader+n], nil
	}
	h, err := w.read(s, off, recordHeader)
	if err != nil {
		return 0, nil, err
	}
	typ = h[8]
	b, err := w.read(s, off, recordHeader+int(binary.BigEndian.Uint32(h)))
	if err != nil {
		return 0, nil, err
	}
	return typ, b[recordHeader:], nil
}

func (w *window) read(s *spool, off int64, n int) ([]byte, error) {
	if i := off - w.start; i >= 0 && i+int64(n) <= int64(len(w.buf)) {
		return w.buf[i : i+int64(n)], nil
	}
	want := min(max(int64(n), readAhead), s.size-off)
	if want < int64(n) {
		return nil, errMalformed
	}
	if int64(cap(w.buf)) < want {
		w.buf = make([]byte, want)
	}
	w.buf, w.start = w.buf[:want], off
	if _, err := s.file.ReadAt(w.buf, off); err != nil {
		w.buf = w.buf[:0]
		return nil, fmt.Errorf("reading a spooled transaction: %w", err)
	}
	return w.buf[:n], nil
}
