// Package canonical turns portable values into the one byte form that every
// implementation hashes: typed values, row identities, row and scope digests,
// schema manifests and push fingerprints. Input is JSON as it travels; a
// spelling that is not the canonical one is refused, never repaired.
package canonical

import (
	"encoding/binary"
	"errors"
)

// Errors of this package wrap one of these. None carries a value, key or id.
var (
	ErrValue       = errors.New("value is not in canonical portable form")
	ErrNull        = errors.New("null in a field that is not nullable")
	ErrRow         = errors.New("row does not match its table")
	ErrIdentity    = errors.New("row identity is malformed")
	ErrScope       = errors.New("scope digest input is invalid")
	ErrManifest    = errors.New("schema manifest is invalid")
	ErrFingerprint = errors.New("push batch is invalid")
)

// Domains keep the hashes of different things apart. Each ends with one zero octet.
const (
	domainRowIdentity = "synchro:v3:row-identity:v1\x00"
	domainRowDigest   = "synchro:v3:row-digest:v1\x00"
	domainScope       = "synchro:v3:scope-digest:v1\x00"
	domainManifest    = "synchro:v3:schema-manifest:v1\x00"
	domainBatch       = "synchro:v3:push-batch-fingerprint:v1\x00"
	domainMutation    = "synchro:v3:push-mutation-fingerprint:v1\x00"
)

// HashSize is the length of every digest and fingerprint in octets.
const HashSize = 32

// appendBlob appends x with its length: blob(x), and text(s) for a string.
func appendBlob[T []byte | string](dst []byte, x T) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(len(x)))
	return append(dst, x...)
}
