package shim

import (
	"context"
	"errors"
	"io"
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

func TestPushIsOneStatementWithoutTransactionBlock(t *testing.T) {
	mock, err := pgxmock.NewPool()
	if err != nil {
		t.Fatal(err)
	}
	mock.ExpectQuery(`SELECT status, body, wait_on FROM synchro.synchro_push`).WithArgs("alice", "body", `{"sub":"alice"}`).
		WillReturnRows(pgxmock.NewRows([]string{"status", "body", "wait_on"}).AddRow(200, "out", []int64(nil)))
	a, err := (&postgres{pool: mock}).call(context.Background(), endpointNamed(t, "push"), caller, []byte("body"))
	if err != nil || a.status != 200 || a.body != "out" || a.waitOn != nil {
		t.Errorf("answer %v, error %v", a, err)
	}
	if err := mock.ExpectationsWereMet(); err != nil {
		t.Error(err)
	}
}

// snapshotResults are the results of a snapshot call, of which one may fail.
type snapshotResults struct {
	pgx.BatchResults
	step   int
	failAt int
	tag    string
}

var errStep = &pgconn.PgError{Code: "40001"}

func (r *snapshotResults) next() error {
	r.step++
	if r.step == r.failAt {
		return errStep
	}
	return nil
}

func (r *snapshotResults) Exec() (pgconn.CommandTag, error) {
	return pgconn.NewCommandTag(r.tag), r.next()
}
func (r *snapshotResults) QueryRow() pgx.Row { return r }
func (r *snapshotResults) Scan(dest ...any) error {
	*dest[0].(*int), *dest[1].(*string) = 200, "out"
	return r.next()
}

func TestSnapshotAnswerCountsOnlyAfterCommit(t *testing.T) {
	var a answer
	if err := readSnapshot(&snapshotResults{tag: "COMMIT"}, &a); err != nil || a.body != "out" {
		t.Errorf("committed: %v %v", a, err)
	}
	for step := 1; step <= 3; step++ {
		if err := readSnapshot(&snapshotResults{tag: "COMMIT", failAt: step}, &a); !errors.Is(err, errStep) {
			t.Errorf("failure of statement %d: %v", step, err)
		}
	}
	if err := readSnapshot(&snapshotResults{tag: "ROLLBACK"}, &a); !errors.Is(err, errRolledBack) {
		t.Errorf("rolled back: %v", err)
	}
}

// batches answers one snapshot call after the other.
type batches struct {
	connections
	results []*snapshotResults
	calls   int
}

func (b *batches) SendBatch(context.Context, *pgx.Batch) pgx.BatchResults {
	b.calls++
	return b.results[b.calls-1]
}
func (r *snapshotResults) Close() error { return nil }

func TestSnapshotCallIsRepeatedAfterALostRace(t *testing.T) {
	lost, won := func() *snapshotResults { return &snapshotResults{tag: "COMMIT", failAt: 2} }, &snapshotResults{tag: "COMMIT"}
	pool := &batches{results: []*snapshotResults{lost(), lost(), won}}
	a, err := (&postgres{pool: pool}).call(context.Background(), endpointNamed(t, "rebuild"), caller, nil)
	if err != nil || a.body != "out" || pool.calls != 3 {
		t.Errorf("answer %v after %d calls: %v", a, pool.calls, err)
	}
	pool = &batches{results: []*snapshotResults{lost(), lost(), lost()}}
	if _, err := (&postgres{pool: pool}).call(context.Background(), endpointNamed(t, "pull"), caller, nil); !errors.Is(err, errStep) || pool.calls != 3 {
		t.Errorf("%d calls: %v", pool.calls, err)
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

type deadConnections struct {
	connections
	row   pgx.Row
	dead  int
	calls int
}

func (d *deadConnections) QueryRow(context.Context, string, ...any) pgx.Row {
	if d.calls++; d.calls <= d.dead {
		return failedRow{neverSent{io.ErrClosedPipe}}
	}
	return d.row
}

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

func TestCallOnADeadConnectionIsRepeatedOnce(t *testing.T) {
	for dead, want := range []bool{true, true, false} {
		pool := &deadConnections{row: &snapshotResults{}, dead: dead}
		a, err := (&postgres{pool: pool}).call(context.Background(), endpointNamed(t, "push"), caller, nil)
		if (err == nil && a.body == "out") != want {
			t.Errorf("%d dead connections: %v %v", dead, a, err)
		}
	}
	pool := &deadConnections{row: failedRow{io.ErrUnexpectedEOF}}
	if _, err := (&postgres{pool: pool}).call(context.Background(), endpointNamed(t, "push"), caller, nil); err == nil || pool.calls != 1 {
		t.Errorf("a call that may have been executed was repeated: %d calls", pool.calls)
	}
}
