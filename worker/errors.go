package worker

import (
	"fmt"

	"github.com/jackc/pglogrepl"
)

// refusal is a condition that the core must not work under. Its class is all that is ever shown.
type refusal struct {
	class string
	hint  string // for the log of a developer
}

func (r *refusal) Error() string { return r.class + ": " + r.hint }

// Class is the bounded class that a host may show.
func (r *refusal) Class() string { return r.class }

// Refusals.
var (
	errSlotForeign = &refusal{"slot_foreign", "the slot's name is taken by another database, plugin or kind of slot"}
	errSlotActive  = &refusal{"slot_active", "another process streams from the slot"}
	errSynchronous = &refusal{"synchronous_standby", "synchronous_standby_names matches this walsender: name the standbys"}
	errIdentity    = &refusal{"stream_identity", "the state belongs to another server, timeline or database: a reset is needed"}
	errNoExtension = &refusal{"not_installed", "the extension is not created in this database"}
	errTakenOver   = &refusal{"taken_over", "another worker has moved the progress on"}
	errNoMACKey    = &refusal{"fence_key_missing", "there is no usable key of purpose fence"}
)

// replay asks for the transactions up to a position once more, one at a time: something failed in a batch.
type replay struct {
	until     pglogrepl.LSN
	cause     error
	returning []int32 // relations of which deleted keys come back
}

func (r *replay) Error() string { return fmt.Sprintf("batch up to %s failed: %v", r.until, r.cause) }
func (r *replay) Unwrap() error { return r.cause }
