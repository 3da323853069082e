package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"synchro/worker"
)

// Frame kinds of cgo/core_abi.h; a test compares them.
const (
	frameConfig = 'C'
	frameLimits = 'L'
	frameWake   = 'W'
	frameStop   = 'T'
)

// maxFrame is far above any configuration.
const maxFrame = 1 << 20

var (
	errStop     = errors.New("told to stop")
	errProtocol = errors.New("host and core do not speak the same protocol")
)

type frame struct {
	kind    byte
	payload []byte
}

// readFrame reads one control frame; io.EOF only between frames.
func readFrame(r io.Reader) (frame, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return frame{}, errProtocol
	}
	f := frame{kind: head[0], payload: make([]byte, n)}
	if _, err := io.ReadFull(r, f.payload); err != nil {
		return frame{}, errProtocol
	}
	return f, nil
}

// settings is the content of the configuration frame.
type settings struct {
	conninfos   []string // ways into the server, tried in order
	startedAt   int64    // when the postmaster started, µs since 1970: tells our server from any other
	database    string
	slot        string
	publication string
	limits      worker.Limits
}

// parseConfig reads the first frame.
func parseConfig(f frame) (settings, error) {
	if f.kind != frameConfig {
		return settings{}, errProtocol
	}
	values, err := parsePairs(f.payload)
	if err != nil {
		return settings{}, err
	}
	s := settings{conninfos: values["conninfo"]}
	s.database, s.slot, s.publication = values.text("database"), values.text("slot"), values.text("publication")
	if len(s.conninfos) == 0 || s.database == "" || s.slot == "" || s.publication == "" {
		return settings{}, fmt.Errorf("%w: incomplete configuration", errProtocol)
	}
	if s.startedAt, err = values.positive("started_at"); err != nil {
		return settings{}, err
	}
	s.limits, err = values.limits()
	return s, err
}

// parseLimits reads a frame of changed limits.
func parseLimits(f frame) (worker.Limits, error) {
	values, err := parsePairs(f.payload)
	if err != nil {
		return worker.Limits{}, err
	}
	return values.limits()
}

type pairs map[string][]string

// parsePairs splits "name NUL value NUL ...".
func parsePairs(b []byte) (pairs, error) {
	fields := strings.Split(string(b), "\x00")
	if len(fields)%2 != 1 || fields[len(fields)-1] != "" {
		return nil, errProtocol
	}
	p := pairs{}
	for i := 0; i+1 < len(fields); i += 2 {
		p[fields[i]] = append(p[fields[i]], fields[i+1])
	}
	return p, nil
}

func (p pairs) text(name string) string {
	if v := p[name]; len(v) == 1 {
		return v[0]
	}
	return ""
}

// number reads a number that is at least least; anything else is a host of another version.
func (p pairs) number(name string, least int64) (int64, error) {
	n, err := strconv.ParseInt(p.text(name), 10, 64)
	if err != nil || n < least {
		return 0, fmt.Errorf("%w: %s", errProtocol, name)
	}
	return n, nil
}

func (p pairs) positive(name string) (int64, error) { return p.number(name, 1) }

// limits reads every limit: none has a default here.
func (p pairs) limits() (worker.Limits, error) {
	var errs []error
	get := func(name string, least int64) int64 {
		n, err := p.number(name, least)
		errs = append(errs, err)
		return n
	}
	seconds := func(name string, least int64) time.Duration { return time.Duration(get(name, least)) * time.Second }
	l := worker.Limits{
		MaxHeartbeatAge:   seconds("max_worker_heartbeat_age_seconds", 1),
		MaxWALLagBytes:    get("max_wal_lag_bytes", 1),
		MaxWALLag:         seconds("max_wal_lag_seconds", 1),
		StaleClientAfter:  seconds("stale_client_after", 1),
		CompactEvery:      seconds("compact_schedule", 0),
		BackfillBatchSize: int(get("backfill_batch_size", 1)),
		MaxRowBytes:       get("max_row_bytes", 1),
		BatchMaxRows:      int(get("batch_max_rows", 1)),
		BatchMaxBytes:     get("batch_max_bytes", 1),
		MemoryBytes:       get("worker_memory_limit", 1),
	}
	return l, errors.Join(errs...)
}
