package client

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const acceptEncoding = "zstd, gzip"

// Decoders are large; they are kept for the next answer.
var (
	zstdPool sync.Pool
	gzipPool sync.Pool
)

// decompress returns a reader of the plain answer, which must be closed.
func decompress(encoding string, body io.Reader) (io.ReadCloser, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return io.NopCloser(body), nil
	case "zstd":
		decoder, kept := zstdPool.Get().(*zstd.Decoder)
		var err error
		if kept {
			err = decoder.Reset(body)
		} else {
			decoder, err = zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxResponse))
		}
		if err != nil {
			return nil, err
		}
		return pooled{decoder, func() {
			if decoder.Reset(nil) == nil {
				zstdPool.Put(decoder)
			}
		}}, nil
	case "gzip":
		decoder, kept := gzipPool.Get().(*gzip.Reader)
		var err error
		if kept {
			err = decoder.Reset(body)
		} else {
			decoder, err = gzip.NewReader(body)
		}
		if err != nil {
			return nil, err
		}
		return pooled{decoder, func() { gzipPool.Put(decoder) }}, nil
	}
	return nil, fmt.Errorf("unknown content encoding")
}

type pooled struct {
	io.Reader
	release func()
}

func (p pooled) Close() error {
	p.release()
	return nil
}
