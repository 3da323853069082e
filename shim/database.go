package shim

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"synchro"
)

// answer is what an endpoint function returns: exact bytes.
type answer struct {
	status int
	body   string
	waitOn []int64 // what would change an answer that says nothing new: numbers that the worker announces; else nil
}

// database is what the handlers need of PostgreSQL.
type database interface {
	// call runs the endpoint's one function for the caller and the unchanged request body.
	call(ctx context.Context, ep *endpoint, who identity, body []byte) (answer, error)
	// listen hears the worker's announcements until ctx ends.
	listen(ctx context.Context, begin func(), hear func(payload string), lost func(error))
	// ready asks synchro_health().
	ready(ctx context.Context) (bool, error)
	close()
}

// ErrContract says that the database has no synchro of this program's version.
var ErrContract = errors.New("the database has another version of the synchro extension")

var errRolledBack = errors.New("the transaction was rolled back")

// connections is the part of a pgxpool.Pool that is used.
type connections interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
	Close()
}

type postgres struct {
	pool     connections
	listener *pgx.ConnConfig
}

// openDatabase makes the pool; every connection is checked against the contract version when it is made.
func openDatabase(ctx context.Context, cfg Config) (*postgres, error) {
	pc, err := pgxpool.ParseConfig(cfg.DatabaseURL)
	if err != nil {
		return nil, errors.New("the database URL is malformed") // the parser's text may quote the password
	}
	pc.MaxConns = int32(cfg.PoolSize)
	params := pc.ConnConfig.RuntimeParams
	params["application_name"] = "synchro serve"
	params["client_encoding"] = "UTF8"
	params["default_transaction_isolation"] = "repeatable read" // of pulls, which are most of the calls
	params["default_transaction_read_only"] = "off"
	params["statement_timeout"] = fmt.Sprintf("%d", cfg.RequestTimeout.Milliseconds())
	params["idle_in_transaction_session_timeout"] = fmt.Sprintf("%d", 2*cfg.RequestTimeout.Milliseconds())
	pc.AfterConnect = checkContract
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, err
	}
	listener := pc.ConnConfig.Copy()
	if cfg.ListenURL != "" {
		if listener, err = pgx.ParseConfig(cfg.ListenURL); err != nil {
			pool.Close()
			return nil, errors.New("the URL of the listening connection is malformed")
		}
	}
	listener.RuntimeParams["application_name"] = "synchro listen"
	return &postgres{pool: pool, listener: listener}, nil
}

func checkContract(ctx context.Context, conn *pgx.Conn) error {
	var version string
	err := conn.QueryRow(ctx, "SELECT extversion FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'synchro'").Scan(&version)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%w: none is installed, this program is %s", ErrContract, synchro.Version())
	} else if err != nil {
		return err
	}
	if version != synchro.Version() {
		return fmt.Errorf("%w: it has %s, this program is %s", ErrContract, version, synchro.Version())
	}
	return nil
}

// raceAttempts is how often a call is made when it loses a race: another request of the same client wrote the same row, another
// session staged the same scope, or made the client that this one meant to make. Its next attempt sees what the other has done.
const raceAttempts = 3

func (p *postgres) call(ctx context.Context, ep *endpoint, who identity, body []byte) (answer, error) {
	for attempt, lost := 1, false; ; attempt++ {
		var a answer
		var err error
		if ep.snapshot {
			err = p.pool.QueryRow(ctx, ep.query, who.user, string(body), string(who.claims)).Scan(&a.status, &a.body, &a.waitOn)
		} else {
			a, err = p.callReadingCommitted(ctx, ep, who, body)
		}
		switch {
		case !lost && pgconn.SafeToRetry(err): // a connection of the pool was dead, and nothing of the call has left
			lost = true
		case !ep.repeats || sqlState(err) != serializationFailure || attempt >= raceAttempts:
			return a, err
		}
	}
}

const serializationFailure = "40001"

// callReadingCommitted takes one round trip: the transaction's statements travel together. A connection left inside a failed
// transaction is closed by the pool, not reused.
func (p *postgres) callReadingCommitted(ctx context.Context, ep *endpoint, who identity, body []byte) (answer, error) {
	var a answer
	batch := &pgx.Batch{}
	batch.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	batch.Queue(ep.query, who.user, string(body), string(who.claims))
	batch.Queue("COMMIT")
	results := p.pool.SendBatch(ctx, batch)
	err := readCommitted(results, &a)
	if closing := results.Close(); err == nil {
		err = closing
	}
	return a, err
}

// readCommitted reads the three results of such a transaction; the answer counts only when the commit succeeded.
func readCommitted(results pgx.BatchResults, a *answer) error {
	if _, err := results.Exec(); err != nil {
		return err
	}
	if err := results.QueryRow().Scan(&a.status, &a.body, &a.waitOn); err != nil {
		return err
	}
	tag, err := results.Exec()
	if err == nil && tag.String() != "COMMIT" {
		return errRolledBack
	}
	return err
}

func (p *postgres) ready(ctx context.Context) (bool, error) {
	var ready bool
	err := p.pool.QueryRow(ctx, "SELECT (synchro.synchro_health() OPERATOR(pg_catalog.->>) 'ready')::pg_catalog.bool").Scan(&ready)
	return ready, err
}

func (p *postgres) close() { p.pool.Close() }

// sqlState is the SQLSTATE of an error from the server, or empty.
func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// networkFault is what the network said of the way to the server, without the names of user and database that pgx adds.
func networkFault(err error) string {
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case errors.As(err, &op):
		return op.Error()
	case errors.As(err, &dns):
		return dns.Error()
	}
	return ""
}
