// Package worker is the Go core: it streams one database's changes from a logical slot and materializes them. It runs the
// same inside the server (through worker/host) and in a Go test.
package worker

import "time"

// Config says which database to serve and how to reach it.
type Config struct {
	Conninfo    string        // keyword/value string or URI of the server; may hold a password: never log it
	Database    string        // name of the database
	Slot        string        // logical replication slot
	Publication string        // publication of registered relations
	Limits      func() Limits // the limits in force now (a reload changes them); safe for concurrent use
	Wake        <-chan struct{}
	// Wake ticks when there is something to look at before the next timer: a registration, a compaction request, new
	// limits. Ticks are coalesced. May be nil.
	TempDir string                   // for transactions that do not fit into memory; empty: the system's
	Failed  func(error)              // told of failures that do not end the worker; may be nil
	Fail    func(point string) error // for tests: an error makes the core fail at a named point; may be nil
}

func (c Config) failAt(point string) error {
	if c.Fail == nil {
		return nil
	}
	return c.Fail(point)
}

// Limits are the settings of the same name (docs/configuration.md), all positive.
type Limits struct {
	MaxHeartbeatAge   time.Duration // max_worker_heartbeat_age_seconds
	MaxWALLagBytes    int64         // max_wal_lag_bytes
	MaxWALLag         time.Duration // max_wal_lag_seconds
	StaleClientAfter  time.Duration // stale_client_after
	CompactEvery      time.Duration // compact_schedule; zero: only on request
	BackfillBatchSize int           // backfill_batch_size
	MaxRowBytes       int64         // max_row_bytes
	BatchMaxRows      int           // batch_max_rows
	BatchMaxBytes     int64         // batch_max_bytes
	MemoryBytes       int64         // worker_memory_limit; the host hands it to the Go runtime as well
}

// State is a step of the core's life, shown by synchro._worker_status(). Lower case letters and '_' only, at most 31.
type State string

// The states that every host knows. A core may report others.
const (
	Connecting State = "connecting"
	Streaming  State = "streaming"
	Blocked    State = "blocked"
)
