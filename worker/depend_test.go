package worker

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pglogrepl"
)

// dependentRegistry has n relations and dependencies given as target, source.
func dependentRegistry(t *testing.T, n int, pairs ...[2]int32) *registry {
	t.Helper()
	reg := testRegistry(n)
	for _, p := range pairs {
		if err := reg.depend(p[0], p[1], []int16{1, 2}); err != nil {
			t.Fatal(err)
		}
	}
	reg.linkDependencies()
	for _, rel := range reg.byNo {
		rel.sql = newStatements(rel, reg)
	}
	return reg
}

func TestTransactionsThatReadWhatOthersWriteShareNoBatch(t *testing.T) {
	// 1 depends on 2, and 2 on 3; 4 on itself; 5 depends on nothing, and 6 on 7.
	reg := dependentRegistry(t, 7, [2]int32{1, 2}, [2]int32{2, 3}, [2]int32{4, 4}, [2]int32{6, 7})
	for _, c := range []struct {
		first, second []int32
		together      bool
	}{
		{[]int32{1}, []int32{1}, true},  // children beside each other: what they read rests
		{[]int32{2}, []int32{1}, false}, // the parent's change evaluates rows that the other has changed
		{[]int32{1}, []int32{2}, false},
		{[]int32{2}, []int32{2}, false}, // both may impact one row
		{[]int32{3}, []int32{2}, false},
		{[]int32{3}, []int32{1}, true}, // 1 reads 2 alone
		{[]int32{4}, []int32{4}, false},
		{[]int32{5}, []int32{5, 1, 4}, true},
		{[]int32{2}, []int32{5, 7}, true}, // impacts of different targets
		{[]int32{2, 6}, []int32{7}, false},
		{[]int32{1, 5}, []int32{5, 3}, true},
	} {
		a, b := newSource(1, 100), newSource(2, 110)
		for i, rel := range c.first {
			a.write(reg.byNo[rel], 'I', i)
		}
		for i, rel := range c.second {
			b.write(reg.byNo[rel], 'I', 100+i)
		}
		works := plan(t, &planner{x: testIndexer(reg), limits: testLimits(100)}, txns(a, b)...)
		if got := len(works) == 1; got != c.together {
			t.Errorf("%v and %v: together %v, want %v", c.first, c.second, got, c.together)
		}
	}
}

func TestARefusedTransactionLeavesTheBatchsFootprintAsItWas(t *testing.T) {
	reg := dependentRegistry(t, 3, [2]int32{1, 2})
	a, b, c, d := newSource(1, 100), newSource(2, 110), newSource(3, 120), newSource(4, 130)
	a.write(reg.byNo[1], 'I', 1)
	b.write(reg.byNo[2], 'U', 1) // must wait
	c.write(reg.byNo[3], 'I', 1)
	d.write(reg.byNo[3], 'I', 2)
	works := plan(t, &planner{x: testIndexer(reg), limits: testLimits(100)}, txns(a, b, c, d)...)
	if got := commits(works); !slices.Equal(got, []pglogrepl.LSN{100, 130}) {
		t.Errorf("batches end at %v", got)
	}
}

func TestPiecesEvaluateLateWhatReadsOtherPieces(t *testing.T) {
	reg := dependentRegistry(t, 4, [2]int32{1, 2}, [2]int32{3, 3})
	for _, c := range []struct {
		rels, late []int32
	}{
		{[]int32{1, 4}, nil},
		{[]int32{2, 4}, nil}, // the parent's rows read nothing else; its impacts come at the end anyway
		{[]int32{1, 2}, []int32{1}},
		{[]int32{1, 2, 3, 4}, []int32{1, 3}},
	} {
		s := newSource(7, 100)
		for _, rel := range c.rels {
			for i := range 10 {
				s.write(reg.byNo[rel], 'I', i)
			}
		}
		works := plan(t, &planner{x: testIndexer(reg), limits: testLimits(5)}, txns(s)...)
		for i, w := range works {
			var late []int32
			for no, rel := range reg.byNo {
				if w.late.has(rel.bit) {
					late = append(late, no)
				}
			}
			slices.Sort(late)
			if !slices.Equal(late, c.late) {
				t.Errorf("%v: piece %d has %v late, want %v", c.rels, i, late, c.late)
			}
		}
	}
}

// What is stored of rows in the aftermath comes back once a row, at its last event, whatever the number of parts; rows of the batch itself
// only move.
func TestAftermathGathersEveryRowOnceAtItsLastEvent(t *testing.T) {
	reg := dependentRegistry(t, 3, [2]int32{1, 2}, [2]int32{3, 2})
	for _, parts := range []uint64{1, 3} {
		for _, limit := range []int{64, 1 << 20} { // in a file, in memory
			f := newAftermath(limit, t.TempDir())
			base := &changes{rel: reg.byNo[1], keys: array{elem: oidText}, gone: array{elem: oidText}}
			base.rows = []rowChange{{key: addKey(&base.keys, []byte("7")), lsn: 100, ordinal: 3}}
			base.removals = []rowChange{{key: addKey(&base.gone, []byte("8")), lsn: 100, ordinal: 4}}
			late := rowChange{lsn: 100, ordinal: 5, fresh: true}
			copy(late.version[:], "version-of-a-row")
			put := func(err error) {
				if err != nil {
					t.Fatal(err)
				}
			}
			put(f.postpone(reg.byNo[3], &late, []byte("1")))
			for ordinal := range int64(10) {
				for _, key := range []string{"1", "7", "8", "9"} {
					put(f.impact(reg.byNo[1], &rowChange{lsn: 100, ordinal: ordinal}, []byte(key)))
				}
			}
			put(f.impact(reg.byNo[3], &rowChange{lsn: 100, ordinal: 2}, []byte("1")))
			put(f.touched.sealed())
			got := map[string]rowChange{}
			for part := range parts {
				var all []*changes
				put(f.gather(reg, []*changes{base}, part, parts, 1, func(ch *changes) error {
					all = append(all, ch)
					return nil
				}))
				for _, ch := range all {
					if len(ch.rows) != 1 {
						t.Errorf("%d rows beyond the limit", len(ch.rows))
					}
					for _, r := range ch.rows {
						id := fmt.Sprintf("%d/%s", ch.rel.no, ch.keys.buf[r.key.from:r.key.to])
						if _, twice := got[id]; twice {
							t.Errorf("%s comes twice", id)
						}
						got[id] = r
					}
				}
			}
			if len(got) != 3 {
				t.Errorf("%d rows", len(got))
			}
			if r := got["1/1"]; r.ordinal != 9 || !r.impacted || r.fresh {
				t.Errorf("impacted row: %+v", r)
			}
			if r := got["3/1"]; r.ordinal != 5 || r.impacted || !r.fresh || string(r.version[:]) != "version-of-a-row" {
				t.Errorf("late row: %+v", r)
			}
			if base.rows[0].ordinal != 9 || base.removals[0].ordinal != 4 {
				t.Errorf("rows of the batch are at %d and %d", base.rows[0].ordinal, base.removals[0].ordinal)
			}
			if f.first != 100 || f.rows != 42 {
				t.Errorf("first %s, %d rows", f.first, f.rows)
			}
			f.close()
		}
	}
}

func TestEffectsOfOneEventAreNumbered(t *testing.T) {
	reg := testRegistry(2)
	reg.byNo[1].table[15], reg.byNo[2].table[15] = 9, 3 // table ids decide, not the numbers of relations
	row := func(ordinal int64, key string) *rowChange {
		return &rowChange{lsn: 100, ordinal: ordinal, typed: []byte(key)}
	}
	entries := []entry{
		{scope: 1, rel: reg.byNo[1], row: row(4, "a")},
		{scope: 1, rel: reg.byNo[2], row: row(4, "z"), state: entryLeft},
		{scope: 1, rel: reg.byNo[1], row: row(4, "A")},
		{scope: 1, rel: reg.byNo[1], row: row(5, "b")},
		{scope: 2, rel: reg.byNo[1], row: row(4, "a")},
	}
	slices.SortFunc(entries, entry.compare)
	number(entries)
	got := ""
	for _, e := range entries {
		got += fmt.Sprintf("%d/%d/%s=%d ", e.scope, e.row.ordinal, e.row.typed, e.effect)
	}
	if want := "1/4/A=1 1/4/a=2 1/5/b=0 1/4/z=0 2/4/a=0 "; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestRelationSets(t *testing.T) {
	var a, b relset
	a.add(3)
	a.add(130)
	b.add(130)
	if !a.has(130) || a.has(129) || a.has(1000) || !a.meets(b) || !b.meets(a) || a.meets(relset{4}) {
		t.Errorf("%v and %v", a, b)
	}
	b = nil
	b.addAll(a)
	if !b.has(3) || !b.has(130) {
		t.Errorf("%v", b)
	}
}
