package canonical

import "testing"

// fullRow is a row with a field of every type.
func fullRow(t testing.TB) (table *Table, row, version string) {
	for _, v := range vectors(t) {
		if v.ID == "VEC-ROW-DIGEST-FULL-ROW-001" {
			in := decode[rowInput](v.Input)
			return in.table(), in.Row, in.Version
		}
	}
	t.Fatal("no full row among the vectors")
	return nil, "", ""
}

// BenchmarkRowDigest is what a client does for each row it receives.
func BenchmarkRowDigest(b *testing.B) {
	table, text, version := fullRow(b)
	row := []byte(text)
	d := table.NewDigester()
	b.SetBytes(int64(len(row)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Row(row, version); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIdentity(b *testing.B) {
	table, _, _ := fullRow(b)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if buf, err = table.AppendIdentity(buf[:0], []byte(`"row-0001"`)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkScopeDigest(b *testing.B) {
	table, _, _ := fullRow(b)
	identity, err := table.AppendIdentity(nil, []byte(`"row-0001"`))
	if err != nil {
		b.Fatal(err)
	}
	h, err := NewScopeHash([HashSize]byte{}, "scope", 1<<62)
	if err != nil {
		b.Fatal(err)
	}
	var digest [HashSize]byte
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		for i := range 8 { // the last octets count up, so the order holds
			identity[len(identity)-1-i] = byte('!' + n>>(6*i)&63)
		}
		if err := h.Add(identity, &digest); err != nil {
			b.Fatal(err)
		}
	}
}
