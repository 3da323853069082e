package client

import (
	"encoding/binary"
	"fmt"
	"testing"

	"synchro/canonical"
)

// identityPrefix is what identities of a table begin with whose id ends with n.
func identityPrefix(n byte) string {
	id := "81000000-0000-4000-8000-00000000000" + string(n)
	size := string(binary.BigEndian.AppendUint64(nil, uint64(len(id))))
	return "synchro:v3:row-identity:v1\x00" + size + id + size + id
}

func keyOf(i int) []byte {
	return append([]byte{byte(canonical.Int64), 1}, binary.BigEndian.AppendUint64(nil, uint64(i))...)
}

// afresh computes the digest without what was kept of earlier ones.
func afresh(t *testing.T, s *scope, schema [canonical.HashSize]byte) string {
	var entries []canonical.Entry
	for _, table := range s.tables {
		for key, row := range table.rows {
			entries = append(entries, canonical.Entry{Identity: []byte(table.prefix + key), Digest: row.digest})
		}
	}
	sum, err := canonical.ScopeDigest(schema, s.id, entries)
	if err != nil {
		t.Fatal(err)
	}
	return canonical.HexDigest(sum)
}

func TestDigestGoesOnWhereSomethingChanged(t *testing.T) {
	s := newScope("s", nil)
	schema := [canonical.HashSize]byte{1}
	one, two := s.table("1", identityPrefix('1')), s.table("2", identityPrefix('2'))
	changes := 0
	row := func() held {
		changes++
		return held{version: fmt.Sprint(changes), digest: [canonical.HashSize]byte{byte(changes), byte(changes >> 8)}}
	}
	check := func(what string) {
		t.Helper()
		digest, err := s.digest(schema)
		if err != nil || digest != afresh(t, s, schema) {
			t.Errorf("%s: another digest, error %v", what, err)
		}
	}
	check("nothing held")
	for i := range 5 * markDistance / 2 {
		one.appendRow(keyOf(2*i), row())
		two.appendRow(keyOf(2*i), row())
	}
	check("rebuilt")
	check("unchanged")
	for _, i := range []int{0, 1, markDistance - 1, markDistance, markDistance + 1, 2*markDistance + 5, 5*markDistance/2 - 1} {
		one.put(keyOf(2*i), row())
		check(fmt.Sprintf("row %d of the first table", i))
		two.put(keyOf(2*i), row())
		check(fmt.Sprintf("row %d of the second table", i))
		one.put(keyOf(2*i), row())
		two.put(keyOf(0), row())
		check(fmt.Sprintf("row %d and one of the second table", i))
	}
	one.put(keyOf(7), row())
	check("a new row")
	one.drop(keyOf(7))
	check("it is gone")
	one.drop(keyOf(2))
	one.put(keyOf(9), row())
	check("one for another")
	schema[0] = 2
	check("another schema")
	two.appendRow(keyOf(1<<20), row())
	check("one more at the end")
}

func BenchmarkScopeDigest(b *testing.B) {
	s := newScope("user:u0", nil)
	t := s.table("1", identityPrefix('1'))
	for i := range 1000 {
		t.appendRow(keyOf(i), held{version: "v"})
	}
	for b.Loop() {
		t.put(keyOf(0), held{version: "v"})
		if _, err := s.digest([canonical.HashSize]byte{}); err != nil {
			b.Fatal(err)
		}
	}
}
