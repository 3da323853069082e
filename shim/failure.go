package shim

import (
	"errors"

	"synchro/protocol"
)

// retryAfter is the value of Retry-After on every retryable answer, in seconds.
const retryAfter = "1"

// wireError maps an error of a database call to the wire. A call that the server did not answer may be tried again;
// what the server answered is mapped by its SQLSTATE, and whatever is not known is an integrity failure without detail.
func wireError(err error) *protocol.Error {
	if state := sqlState(err); state != "" {
		return protocol.ErrorForSQLState(state)
	}
	if errors.Is(err, ErrContract) {
		return refusal(protocol.ErrSyncIntegrityFailure)
	}
	return refusal(protocol.ErrTemporaryUnavailable)
}

// refusal is a wire error with its usual message.
func refusal(name string) *protocol.Error {
	code, _ := protocol.CodeByName(name)
	return protocol.ErrorForSQLState(code.SQLState)
}
