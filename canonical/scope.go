package canonical

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"
)

// Entry is one live row of a scope.
type Entry struct {
	Identity []byte
	Digest   [HashSize]byte
}

// ScopeHash computes a scope digest while entries stream by in the order of
// their identities. The number of entries comes first in the hash, so it is
// announced at the start and must be met.
type ScopeHash struct {
	hash     hash.Hash
	left     uint64
	previous []byte
	key      int    // where the key's value begins in previous: entries of one table share what is before
	pending  []byte // what the hash gets next
	started  bool
	failed   error
}

// batch is how many octets the hash gets at once: many small pieces take longer.
const batch = 4096

// NewScopeHash starts the digest of one scope under one schema.
func NewScopeHash(schemaHash [HashSize]byte, scopeID string, cardinality uint64) (*ScopeHash, error) {
	if scopeID == "" || checkIdentifier([]byte(scopeID)) != nil {
		return nil, fmt.Errorf("%w: bad scope id", ErrScope)
	}
	h := &ScopeHash{hash: sha256.New(), left: cardinality}
	head := append([]byte(domainScope), schemaHash[:]...)
	head = appendBlob(head, scopeID)
	head = binary.BigEndian.AppendUint64(head, cardinality)
	h.hash.Write(head)
	return h, nil
}

// Add takes the next entry. After an error the digest is lost.
func (h *ScopeHash) Add(identity []byte, digest *[HashSize]byte) error {
	if h.failed != nil {
		return h.failed
	}
	h.failed = h.check(identity)
	if h.failed != nil {
		return h.failed
	}
	h.left--
	h.started = true
	h.previous = append(h.previous[:0], identity...)
	h.pending = append(appendBlob(h.pending, identity), digest[:]...)
	if len(h.pending) >= batch {
		h.flush()
	}
	return nil
}

func (h *ScopeHash) flush() {
	h.hash.Write(h.pending)
	h.pending = h.pending[:0]
}

func (h *ScopeHash) check(identity []byte) error {
	var err error
	if h.started && len(identity) > h.key && bytes.Equal(identity[:h.key], h.previous[:h.key]) {
		err = checkKeyValue(identity[h.key:])
	} else {
		h.key, err = checkIdentity(identity)
	}
	if err != nil {
		return err
	}
	if h.left == 0 {
		return fmt.Errorf("%w: more entries than announced", ErrScope)
	}
	if h.started {
		switch order := bytes.Compare(h.previous, identity); {
		case order == 0:
			return fmt.Errorf("%w: an identity appears twice", ErrScope)
		case order > 0:
			return fmt.Errorf("%w: entries are out of order", ErrScope)
		}
	}
	return nil
}

// Clone returns a copy that goes on for itself.
func (h *ScopeHash) Clone() *ScopeHash {
	h.flush()
	state, err := h.hash.(hash.Cloner).Clone()
	if err != nil {
		panic("SHA-256 cannot be copied: " + err.Error())
	}
	return &ScopeHash{hash: state, left: h.left, previous: slices.Clone(h.previous), key: h.key, started: h.started, failed: h.failed}
}

// Sum returns the digest once every announced entry has been added.
func (h *ScopeHash) Sum() (sum [HashSize]byte, err error) {
	if h.failed != nil {
		return sum, h.failed
	}
	if h.left != 0 {
		return sum, fmt.Errorf("%w: fewer entries than announced", ErrScope)
	}
	h.flush()
	h.hash.Sum(sum[:0])
	return sum, nil
}

// ScopeDigest computes the digest of entries in any order; the slice gets sorted.
func ScopeDigest(schemaHash [HashSize]byte, scopeID string, entries []Entry) (sum [HashSize]byte, err error) {
	slices.SortFunc(entries, func(a, b Entry) int { return bytes.Compare(a.Identity, b.Identity) })
	h, err := NewScopeHash(schemaHash, scopeID, uint64(len(entries)))
	if err != nil {
		return sum, err
	}
	for i := range entries {
		if err := h.Add(entries[i].Identity, &entries[i].Digest); err != nil {
			return sum, err
		}
	}
	return h.Sum()
}
