package worker

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pglogrepl"
)

func testLimits(rows int) func() Limits {
	return func() Limits { return Limits{BatchMaxRows: rows, BatchMaxBytes: 1 << 20, MemoryBytes: 64 << 20} }
}

// plan runs the planner over items and returns the work that it emits before it waits for more.
func plan(t *testing.T, p *planner, items ...item) []*work {
	t.Helper()
	works := make(chan *work, 1000)
	p.works, p.b, p.pending = works, &batch{table: *newTable()}, items
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for len(p.pending) > 0 {
		if err := p.next(ctx); err != nil {
			t.Fatal(err)
		}
	}
	close(works)
	var out []*work
	for w := range works {
		out = append(out, w)
	}
	return out
}

func txns(sources ...*source) (items []item) {
	for _, s := range sources {
		items = append(items, item{txn: s.txn})
	}
	return items
}

func commits(works []*work) (lsns []pglogrepl.LSN) {
	for _, w := range works {
		lsns = append(lsns, w.commit.commitLSN)
	}
	return lsns
}

func TestTransactionsShareABatchUntilARowOccursTwice(t *testing.T) {
	reg := testRegistry(2)
	a, b, c, d := newSource(1, 100), newSource(2, 110), newSource(3, 120), newSource(4, 130)
	a.write(reg.byNo[1], 'I', 1)
	b.write(reg.byNo[2], 'I', 1) // another relation's row of the same key
	c.write(reg.byNo[1], 'U', 1)
	d.write(reg.byNo[1], 'I', 2)
	works := plan(t, &planner{x: testIndexer(reg), limits: testLimits(100)}, txns(a, b, c, d)...)
	if got := commits(works); len(got) != 2 || got[0] != 110 || got[1] != 130 {
		t.Fatalf("batches end at %v", got)
	}
	if works[0].items+works[1].items != 4 {
		t.Errorf("%d and %d items", works[0].items, works[1].items)
	}
}

func TestRowsKeepTheirOwnTransactionsPosition(t *testing.T) {
	reg := testRegistry(1)
	a, b := newSource(1, 100), newSource(2, 110)
	a.write(reg.byNo[1], 'I', 1)
	b.write(reg.byNo[1], 'I', 5)
	b.write(reg.byNo[1], 'I', 2)
	works := plan(t, &planner{x: testIndexer(reg), limits: testLimits(100)}, txns(a, b)...)
	for i, want := range [][2]int64{{100, 0}, {110, 0}, {110, 1}} {
		r := works[0].changes[0].rows[i]
		if int64(r.lsn) != want[0] || r.ordinal != want[1] {
			t.Errorf("row %d is at (%s, %d)", i, r.lsn, r.ordinal)
		}
	}
}

func TestBatchesKeepToTheirRowLimit(t *testing.T) {
	reg := testRegistry(1)
	for _, n := range []int{9, 10, 11, 20, 25} {
		var sources []*source
		for i := range n {
			s := newSource(uint32(i+1), pglogrepl.LSN(100+10*i))
			s.write(reg.byNo[1], 'I', i)
			sources = append(sources, s)
		}
		works := plan(t, &planner{x: testIndexer(reg), limits: testLimits(10)}, txns(sources...)...)
		rows := 0
		for _, w := range works {
			rows += w.rows
			if w.rows > 10 || !w.first || !w.last {
				t.Errorf("%d transactions: a batch of %d rows", n, w.rows)
			}
		}
		if rows != n || len(works) != (n+9)/10 {
			t.Errorf("%d transactions: %d rows in %d batches", n, rows, len(works))
		}
	}
}

func TestHugeTransactionsComeInPiecesOfOneDatabaseTransaction(t *testing.T) {
	reg := testRegistry(1)
	for _, n := range []int{11, 20, 21} {
		s := newSource(7, 100)
		for i := range n {
			s.row(reg.byNo[1], 'I', i)
		}
		for i := range n {
			s.fence(reg.byNo[1], 'I', i)
		}
		works := plan(t, &planner{x: testIndexer(reg), limits: testLimits(10)}, txns(s)...)
		rows := 0
		for i, w := range works {
			rows += w.rows
			if w.first != (i == 0) || w.last != (i == len(works)-1) || w.rows > 10 {
				t.Errorf("%d rows: piece %d of %d: first %v, last %v, %d rows", n, i, len(works), w.first, w.last, w.rows)
			}
		}
		if rows != n || works[len(works)-1].items != 1 {
			t.Errorf("%d rows: %d planned", n, rows)
		}
	}
}

func TestMarkersEndABatch(t *testing.T) {
	reg := testRegistry(1)
	a, b := newSource(1, 100), newSource(2, 130)
	a.write(reg.byNo[1], 'I', 1)
	b.write(reg.byNo[1], 'I', 2)
	works := plan(t, &planner{x: testIndexer(reg), limits: testLimits(10)}, item{txn: a.txn}, item{marker: 120}, item{txn: b.txn})
	if len(works) != 2 || works[0].seen != 120 || works[0].commit.commitLSN != 100 || works[0].items != 2 {
		t.Errorf("works: %+v", works)
	}
}

func TestReplayedTransactionsGoAlone(t *testing.T) {
	reg := testRegistry(1)
	var sources []*source
	for i := range 4 {
		s := newSource(uint32(i+1), pglogrepl.LSN(100+10*i))
		s.write(reg.byNo[1], 'I', i)
		sources = append(sources, s)
	}
	works := plan(t, &planner{x: testIndexer(reg), limits: testLimits(10), single: 110}, txns(sources...)...)
	if got := commits(works); len(got) != 3 || got[0] != 100 || got[1] != 110 || got[2] != 130 {
		t.Errorf("batches end at %v", got)
	}
}

func TestPoisonComesAfterWhatPrecedesIt(t *testing.T) {
	reg := testRegistry(1)
	a, b := newSource(1, 100), newSource(2, 110)
	a.write(reg.byNo[1], 'I', 1)
	b.row(reg.byNo[1], 'I', 2)
	works := make(chan *work, 10)
	p := &planner{x: testIndexer(reg), limits: testLimits(10), works: works, b: &batch{table: *newTable()}, pending: txns(a, b)}
	ctx, cancel := context.WithCancel(t.Context())
	if err := p.next(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := p.next(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if first := <-works; first.commit.commitLSN != 100 || first.poison != nil {
		t.Errorf("first: %+v", first)
	}
	select {
	case second := <-works:
		if second.poison == nil || second.poison.class != classFence || second.poison.commitLSN != 110 {
			t.Errorf("second: %+v", second)
		}
	default: // the context ended first: emit may choose either
	}
}

func TestActivationsGetABatchOfTheirOwn(t *testing.T) {
	reg := testRegistry(1)
	a, b, c := newSource(1, 100), newSource(2, 110), newSource(3, 120)
	a.write(reg.byNo[1], 'I', 1)
	b.write(reg.byNo[1], 'I', 2)
	b.message(typeActivation, be64(be64(nil, 3), 2))
	c.write(reg.byNo[1], 'I', 3)
	works := make(chan *work, 10)
	p := &planner{x: testIndexer(reg), limits: testLimits(10), works: works, b: &batch{table: *newTable()}, pending: txns(a, b, c)}
	done := make(chan error, 1)
	go func() {
		for len(p.pending) > 0 {
			if err := p.next(t.Context()); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	if first := <-works; first.act != nil || first.commit.commitLSN != 100 {
		t.Fatalf("first: %+v", first)
	}
	second := <-works
	if second.act == nil || second.act.generation != 3 || second.act.ordinal != 1 || second.commit.commitLSN != 110 {
		t.Fatalf("second: %+v", second)
	}
	next := testRegistry(1)
	next.generation = 3
	second.done <- next
	third := <-works
	if got := third.changes[0].rel; got != next.byNo[1] {
		t.Errorf("later transactions use %s", got.sql.store.name)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestPushesReportTheirHighestEpoch(t *testing.T) {
	reg := testRegistry(1)
	a, b := newSource(1, 100), newSource(2, 110)
	a.message(typePush, be64(be64(nil, 5), 9))
	b.message(typePush, be64(be64(nil, 5), 8))
	works := plan(t, &planner{x: testIndexer(reg), limits: testLimits(10)}, txns(a, b)...)
	if len(works) != 1 || works[0].clients[5] != 9 {
		t.Errorf("works: %+v", works[0])
	}
}
