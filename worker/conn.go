package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
)

// pinned are the settings that results depend on. Given at startup they outrank what ALTER ROLE or ALTER DATABASE set.
var pinned = map[string]string{
	"client_encoding":                     "UTF8",
	"datestyle":                           "ISO, MDY",
	"timezone":                            "UTC",
	"intervalstyle":                       "postgres",
	"extra_float_digits":                  "1",
	"bytea_output":                        "hex",
	"lc_monetary":                         "C",
	"array_nulls":                         "on",
	"xmloption":                           "content",
	"search_path":                         "pg_catalog",
	"statement_timeout":                   "0",
	"lock_timeout":                        "0",
	"idle_in_transaction_session_timeout": "0",
	"idle_session_timeout":                "0",
	"default_transaction_isolation":       "read committed",
	"default_transaction_read_only":       "off",
	"default_transaction_deferrable":      "off",
	"row_security":                        "on",
	"jit":                                 "off",
	"max_parallel_workers_per_gather":     "0",
}

// connect opens a connection of the worker's login with pinned settings and some more.
func connect(ctx context.Context, cfg Config, more map[string]string) (*pgconn.PgConn, error) {
	c, err := pgconn.ParseConfig(cfg.Conninfo)
	if err != nil {
		return nil, errors.New("the connection string is not valid") // the error may quote the password
	}
	if cfg.Database != "" {
		c.Database = cfg.Database
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 10 * time.Second
	}
	delete(c.RuntimeParams, "options")
	for _, m := range []map[string]string{pinned, more} {
		for k, v := range m {
			c.RuntimeParams[k] = v
		}
	}
	if more["replication"] != "" {
		c.BuildFrontend = filtered(cfg.Limits().MaxRowBytes)
	}
	conn, err := pgconn.ConnectConfig(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return conn, nil
}

// closeConn ends a connection without waiting for anything.
func closeConn(conn *pgconn.PgConn) {
	if conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}
}

// sqlState is the SQLSTATE of an error of the server, "" of any other.
func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// constraint is the name of the constraint that an error of the server tells of.
func constraint(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.ConstraintName
	}
	return ""
}

// transient says that the same attempt may succeed later without anybody's help. What is not an answer of the server is a
// broken connection, a full disk or the end of the context.
func transient(err error) bool {
	var p *poison
	if errors.As(err, &p) {
		return false
	}
	var refused *refusal
	if errors.As(err, &refused) {
		return false
	}
	code := sqlState(err)
	if code == "" {
		return true
	}
	for _, prefix := range []string{"08", "40001", "40P01", "53", "55P03", "57P0", "57014", "55006", "58030", "25006"} {
		if strings.HasPrefix(code, prefix) {
			return true
		}
	}
	return false
}

// isTimeout recognizes the end of a read deadline.
func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func lsnParam(lsn pglogrepl.LSN) []byte { return u64Param(uint64(lsn)) }

func u64Param(v uint64) []byte {
	b := make([]byte, 8)
	for i := range b {
		b[i] = byte(v >> (56 - 8*i))
	}
	return b
}

func parseLSN(b []byte) (pglogrepl.LSN, error) {
	if len(b) == 0 {
		return 0, nil
	}
	return pglogrepl.ParseLSN(string(b))
}

// majorVersion of the server, 0 when it does not say.
func majorVersion(conn *pgconn.PgConn) int {
	v, _, _ := strings.Cut(conn.ParameterStatus("server_version"), ".")
	n, _ := strconv.Atoi(strings.TrimFunc(v, func(r rune) bool { return r < '0' || r > '9' }))
	return n
}
