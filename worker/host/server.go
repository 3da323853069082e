package host

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// connectTimeout bounds one attempt to log in.
const connectTimeout = 5 * time.Second

// findServer returns the first connection string that leads to the database of the server that hosts us.
func findServer(ctx context.Context, s settings) (string, error) {
	var failure error = classError(classConnection)
	for _, conninfo := range s.conninfos {
		conninfo, err := withDatabase(conninfo, s.database)
		if err == nil {
			if err = probe(ctx, conninfo, s); err == nil {
				return conninfo, nil
			}
		}
		failure = err // the last one: a socket that asks for a peer is normal, a loopback that refuses us is not
	}
	return "", failure
}

// probe logs in and checks that this is our server: a connection string that leads elsewhere would sync foreign data.
func probe(ctx context.Context, conninfo string, s settings) error {
	config, err := pgconn.ParseConfig(conninfo)
	if err != nil {
		return classError(classInvalidConninfo)
	}
	config.RuntimeParams["application_name"] = "synchro core"
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer conn.Close(ctx)
	const same = `SELECT 1 WHERE pg_catalog.current_database() = $1
		AND pg_catalog.pg_postmaster_start_time() = 'epoch'::timestamptz + $2::int8 * interval '1 microsecond'`
	r := conn.ExecParams(ctx, same, [][]byte{[]byte(s.database), fmt.Append(nil, s.startedAt)}, nil, nil, nil).Read()
	if r.Err != nil {
		return fmt.Errorf("checking the server: %w", r.Err)
	}
	if len(r.Rows) != 1 {
		return classError(classWrongServer)
	}
	return nil
}

// withDatabase makes a connection string lead to database.
func withDatabase(conninfo, database string) (string, error) {
	// By itself first: an unfinished string must not swallow what is appended.
	if _, err := pgconn.ParseConfig(conninfo); err != nil {
		return "", classError(classInvalidConninfo) // its text quotes the string
	}
	if strings.HasPrefix(conninfo, "postgres://") || strings.HasPrefix(conninfo, "postgresql://") {
		u, err := url.Parse(conninfo)
		if err != nil {
			return "", classError(classInvalidConninfo)
		}
		u.Path, u.RawPath = "/"+database, ""
		return u.String(), nil
	}
	quoted := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(database)
	return strings.TrimSpace(conninfo + " dbname='" + quoted + "'"), nil
}
