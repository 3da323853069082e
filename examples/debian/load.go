package debian

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"
)

//go:embed sql/schema.sql
var schemaSQL string

//go:embed sql/sync.sql
var syncSQL string

// Role owns the example's tables, loads them and registers them.
const Role = "archive"

// CreateSchema makes the application's roles and tables; conn is a superuser's, and the database has the extension.
func CreateSchema(ctx context.Context, conn *pgx.Conn) error {
	return run(ctx, conn, schemaSQL)
}

// Register makes the tables sync, as one migration; conn is Role's.
func Register(ctx context.Context, conn *pgx.Conn) error {
	return run(ctx, conn, syncSQL)
}

// run executes a script in one transaction.
func run(ctx context.Context, conn *pgx.Conn, script string) error {
	_, err := conn.PgConn().Exec(ctx, "BEGIN;"+script+"\n;COMMIT").ReadAll()
	return err
}

var packageColumns = []string{
	"id", "name", "architecture", "version", "section", "priority", "maintainer", "installed_size", "download_size", "depends",
	"homepage", "summary", "essential",
}

// Load copies packages into archive.package; conn is Role's.
func Load(ctx context.Context, conn *pgx.Conn, packages []Package) error {
	rows := pgx.CopyFromSlice(len(packages), func(i int) ([]any, error) {
		p := &packages[i]
		return []any{
			p.ID, p.Name, p.Architecture, p.Version, p.Section, p.Priority, p.Maintainer, p.InstalledSize, p.DownloadSize, p.Depends,
			p.Homepage, p.Summary, p.Essential,
		}, nil
	})
	n, err := conn.CopyFrom(ctx, pgx.Identifier{"archive", "package"}, packageColumns, rows)
	if err != nil {
		return err
	}
	if n != int64(len(packages)) {
		return fmt.Errorf("loaded %d of %d packages", n, len(packages))
	}
	return nil
}

// Follow makes a team follow sections.
func Follow(ctx context.Context, conn *pgx.Conn, team Team, sections []string) error {
	_, err := conn.Exec(ctx, "INSERT INTO archive.follow (team, section) SELECT $1, unnest($2::text[])", team.Address, sections)
	return err
}
