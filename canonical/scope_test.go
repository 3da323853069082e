package canonical

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

func entry(n uint32) Entry {
	identity := append(appendIdentityPrefix(nil, "t", "f"), byte(Int), present)
	return Entry{Identity: binary.BigEndian.AppendUint32(identity, n), Digest: [HashSize]byte{byte(n)}}
}

func TestScopeHashRefusesWrongStreams(t *testing.T) {
	one, two := entry(1), entry(2)
	for what, c := range map[string]struct {
		announced uint64
		entries   []Entry
		want      error
	}{
		"out of order":        {2, []Entry{two, one}, ErrScope},
		"repeated":            {2, []Entry{one, one}, ErrScope},
		"too many":            {1, []Entry{one, two}, ErrScope},
		"too few":             {3, []Entry{one, two}, ErrScope},
		"no identity":         {1, []Entry{{}}, ErrIdentity},
		"good after bad":      {2, []Entry{{Identity: []byte("x")}, one}, ErrIdentity},
		"identity of a bytes": {1, []Entry{{Identity: append(appendIdentityPrefix(nil, "t", "f"), byte(Bytes), present, 0, 0, 0, 0, 0, 0, 0, 0)}}, ErrIdentity},
		"null identity":       {1, []Entry{{Identity: append(appendIdentityPrefix(nil, "t", "f"), byte(Int), absent)}}, ErrIdentity},
		"empty table id":      {1, []Entry{{Identity: append(appendIdentityPrefix(nil, "", "f"), byte(Int), present, 0, 0, 0, 1)}}, ErrIdentity},
		"invalid text": {1, []Entry{{Identity: append(appendIdentityPrefix(nil, "t", "f"),
			byte(String), present, 0, 0, 0, 0, 0, 0, 0, 1, 0xff)}}, ErrIdentity},
		"length beyond the end": {1, []Entry{{Identity: append(appendIdentityPrefix(nil, "t", "f"),
			byte(String), present, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 'x')}}, ErrIdentity},
	} {
		t.Run(what, func(t *testing.T) {
			h, err := NewScopeHash([HashSize]byte{}, "s", c.announced)
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.entries {
				h.Add(c.entries[i].Identity, &c.entries[i].Digest)
			}
			if sum, err := h.Sum(); !errors.Is(err, c.want) || sum != [HashSize]byte{} {
				t.Errorf("got %x, %v", sum, err)
			}
		})
	}
}

func TestScopeDigestIgnoresDeliveryOrder(t *testing.T) {
	var entries []Entry
	for n := range uint32(500) {
		entries = append(entries, entry(n*2654435761))
	}
	want, err := ScopeDigest([HashSize]byte{}, "s", slices.Clone(entries))
	if err != nil {
		t.Fatal(err)
	}
	rand.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	if got, err := ScopeDigest([HashSize]byte{}, "s", entries); err != nil || got != want {
		t.Errorf("got %x, %v; want %x", got, err, want)
	}
}

func TestScopeDigestBindsSchemaAndScope(t *testing.T) {
	base, _ := ScopeDigest([HashSize]byte{}, "s", []Entry{entry(1)})
	schema, _ := ScopeDigest([HashSize]byte{1}, "s", []Entry{entry(1)})
	scope, _ := ScopeDigest([HashSize]byte{}, "t", []Entry{entry(1)})
	empty, _ := ScopeDigest([HashSize]byte{}, "s", nil)
	if base == schema || base == scope || base == empty {
		t.Error("something is not bound")
	}
}
