package shim

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pashagolub/pgxmock/v3"
)

func endpointNamed(t *testing.T, name string) *endpoint {
	t.Helper()
	for _, ep := range endpoints {
		if ep.name == name {
			return ep
		}
	}
	t.Fatalf("no endpoint %s", name)
	return nil
}

var caller = identity{user: "alice", claims: []byte(`{"sub":"alice"}`)}

func TestPullIsOneStatementWithoutTransactionBlock(t *testing.T) {
	mock, err := pgxmock.NewPool()
	if err != nil {
		t.Fatal(err)
	}
	mock.ExpectQuery(`SELECT status, body, wait_on FROM synchro.synchro_pull`).WithArgs("alice", "body", `{"sub":"alice"}`).
		WillReturnRows(pgxmock.NewRows([]string{"status", "body", "wait_on"}).AddRow(200, "out", []int64(nil)))
	a, err := (&postgres{pool: mock}).call(context.Background(), endpointNamed(t, "pull"), caller, []byte("body"))
	if err != nil || a.status != 200 || a.body != "out" || a.waitOn != nil {
		t.Errorf("answer %v, error %v", a, err)
	}
	if err := mock.ExpectationsWereMet(); err != nil {
		t.Error(err)
	}
}

// blockResults are the results of a transaction block, of which one may fail.
type blockResults struct {
	pgx.BatchResults
	step   int
	failAt int
	tag    string
}

var errStep = &pgconn.PgError{Code: "40001"}

func (r *blockResults) next() error {
	r.step++
	if r.step == r.failAt {
		return errStep
	}
	return nil
}

func (r *blockResults) Exec() (pgconn.CommandTag, error) {
	return pgconn.NewCommandTag(r.tag), r.next()
}
func (r *blockResults) QueryRow() pgx.Row { return r }
func (r *blockResults) Scan(dest ...any) error {
	*dest[0].(*int), *dest[1].(*string) = 200, "out"
	return r.next()
}

func TestAnswerOfATransactionBlockCountsOnlyAfterCommit(t *testing.T) {
	var a answer
	if err := readCommitted(&blockResults{tag: "COMMIT"}, &a); err != nil || a.body != "out" {
		t.Errorf("committed: %v %v", a, err)
	}
	for step := 1; step <= 3; step++ {
		if err := readCommitted(&blockResults{tag: "COMMIT", failAt: step}, &a); !errors.Is(err, errStep) {
			t.Errorf("failure of statement %d: %v", step, err)
		}
	}
	if err := readCommitted(&blockResults{tag: "ROLLBACK"}, &a); !errors.Is(err, errRolledBack) {
		t.Errorf("rolled back: %v", err)
	}
}

// rowsOf gives one row after the other, the last for ever.
type rowsOf struct {
	connections
	rows  []pgx.Row
	calls int
}

func (r *rowsOf) QueryRow(context.Context, string, ...any) pgx.Row {
	r.calls++
	return r.rows[min(r.calls, len(r.rows))-1]
}
func (r *blockResults) Close() error { return nil }

func TestSnapshotCallIsRepeatedAfterALostRace(t *testing.T) {
	lost, won := failedRow{errStep}, &blockResults{}
	pool := &rowsOf{rows: []pgx.Row{lost, lost, won}}
	a, err := (&postgres{pool: pool}).call(context.Background(), endpointNamed(t, "rebuild"), caller, nil)
	if err != nil || a.body != "out" || pool.calls != 3 {
		t.Errorf("answer %v after %d calls: %v", a, pool.calls, err)
	}
	pool = &rowsOf{rows: []pgx.Row{lost}}
	if _, err := (&postgres{pool: pool}).call(context.Background(), endpointNamed(t, "pull"), caller, nil); !errors.Is(err, errStep) || pool.calls != 3 {
		t.Errorf("%d calls: %v", pool.calls, err)
	}
}

// batchesOf gives the results of one transaction block after the other, the last for ever.
type batchesOf struct {
	connections
	results []*blockResults
	calls   int
}

func (b *batchesOf) SendBatch(context.Context, *pgx.Batch) pgx.BatchResults {
	b.calls++
	r := *b.results[min(b.calls, len(b.results))-1]
	return &r
}

// Whoever meets another first connect of the same client id finds the client made when it asks again.
func TestConnectIsRepeatedAfterALostRace(t *testing.T) {
	lost, won, broken := &blockResults{failAt: 2}, &blockResults{tag: "COMMIT"}, &blockResults{tag: "ROLLBACK"}
	for _, c := range []struct {
		results []*blockResults
		calls   int
		err     error
	}{
		{[]*blockResults{won}, 1, nil},
		{[]*blockResults{lost, lost, won}, 3, nil},
		{[]*blockResults{lost}, 3, errStep},
		{[]*blockResults{broken}, 1, errRolledBack},
	} {
		pool := &batchesOf{results: c.results}
		a, err := (&postgres{pool: pool}).call(context.Background(), endpointNamed(t, "connect"), caller, nil)
		if !errors.Is(err, c.err) || pool.calls != c.calls || (err == nil && a.body != "out") {
			t.Errorf("answer %v after %d calls, want %d: %v", a, pool.calls, c.calls, err)
		}
	}
}

type batchOf struct {
	connections
	results pgx.BatchResults
	sent    []string
}

func (b *batchOf) SendBatch(_ context.Context, batch *pgx.Batch) pgx.BatchResults {
	for _, q := range batch.QueuedQueries {
		b.sent = append(b.sent, q.SQL)
	}
	return b.results
}

func TestPushReadsCommittedRowsAndIsNotRepeated(t *testing.T) {
	push := endpointNamed(t, "push")
	pool := &batchOf{results: &blockResults{tag: "COMMIT"}}
	a, err := (&postgres{pool: pool}).call(context.Background(), push, caller, nil)
	if want := []string{"BEGIN ISOLATION LEVEL READ COMMITTED", push.query, "COMMIT"}; err != nil || a.body != "out" || !slices.Equal(pool.sent, want) {
		t.Errorf("answer %v %v, sent %q", a, err, pool.sent)
	}
	pool = &batchOf{results: &blockResults{tag: "COMMIT", failAt: 2}}
	if _, err := (&postgres{pool: pool}).call(context.Background(), push, caller, nil); !errors.Is(err, errStep) || len(pool.sent) != 3 {
		t.Errorf("%v, sent %q", err, pool.sent)
	}
}

func TestReadsRunInOneSnapshot(t *testing.T) {
	for name, want := range map[string]bool{"connect": false, "push": false, "pull": true, "rebuild": true} {
		if got := endpointNamed(t, name).snapshot; got != want {
			t.Errorf("%s in a REPEATABLE READ transaction: %v", name, got)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := testConfig(io.Discard)
	if err := good.validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Config){
		"no database": func(c *Config) { c.DatabaseURL = "" }, "short secret": func(c *Config) { c.Secret = c.Secret[:31] },
		"no claim": func(c *Config) { c.SubjectClaim = "" }, "pool": func(c *Config) { c.PoolSize = 0 },
		"in flight": func(c *Config) { c.MaxInFlight = -1 }, "timeout": func(c *Config) { c.RequestTimeout = 0 },
		"leeway": func(c *Config) { c.Leeway = -1 },
	} {
		bad := good
		spoil(&bad)
		if bad.validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// neverSent is what pgx reports of a connection that was dead before anything was written to it.
type neverSent struct{ error }

func (neverSent) SafeToRetry() bool { return true }

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

func TestCallOnADeadConnectionIsRepeatedOnce(t *testing.T) {
	dead, good := failedRow{neverSent{io.ErrClosedPipe}}, &blockResults{}
	pull := endpointNamed(t, "pull")
	for i, rows := range [][]pgx.Row{{good}, {dead, good}, {dead, dead, good}} {
		a, err := (&postgres{pool: &rowsOf{rows: rows}}).call(context.Background(), pull, caller, nil)
		if (err == nil && a.body == "out") != (i < 2) {
			t.Errorf("%d dead connections: %v %v", i, a, err)
		}
	}
	pool := &rowsOf{rows: []pgx.Row{failedRow{io.ErrUnexpectedEOF}}}
	if _, err := (&postgres{pool: pool}).call(context.Background(), pull, caller, nil); err == nil || pool.calls != 1 {
		t.Errorf("a call that may have been executed was repeated: %d calls", pool.calls)
	}
}
