package pgtest

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// DSN is the connection string for a role and a database over the unix socket; empty: Superuser, Database.
func (c *Cluster) DSN(role, database string) string { return c.dsn(c.dir, role, database) }

// TCPDSN is the same over loopback TCP.
func (c *Cluster) TCPDSN(role, database string) string { return c.dsn("127.0.0.1", role, database) }

func (c *Cluster) dsn(host, role, database string) string {
	if role == "" {
		role = Superuser
	}
	if database == "" {
		database = Database
	}
	return fmt.Sprintf("host='%s' port=%d user='%s' dbname='%s' sslmode=disable", host, c.port, role, database)
}

// Conn connects as a role to a database; empty: Superuser, Database.
func (c *Cluster) Conn(ctx context.Context, role, database string) (*pgx.Conn, error) {
	return pgx.Connect(ctx, c.DSN(role, database))
}

// Exec runs statements as the superuser in Database on a connection of their own.
func (c *Cluster) Exec(ctx context.Context, sql string) error {
	conn, err := c.Conn(ctx, "", "")
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.PgConn().Exec(ctx, sql).ReadAll()
	return err
}

// CreateExtension creates the extension in Database.
func (c *Cluster) CreateExtension(ctx context.Context) error {
	return c.Exec(ctx, "CREATE EXTENSION synchro")
}
