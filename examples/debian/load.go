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
	"id", "name", "architecture", "version", "section", "priority", "maintainer", "installed_size", "download_size",
	"homepage", "summary", "essential",
}

// Load copies packages and what they need into archive.package and archive.dependency; conn is Role's. It returns how
// many dependencies there are.
func Load(ctx context.Context, conn *pgx.Conn, packages []Package) (int, error) {
	err := load(ctx, conn, "package", packageColumns, len(packages), func(i int) []any {
		p := &packages[i]
		return []any{
			p.ID, p.Name, p.Architecture, p.Version, p.Section, p.Priority, p.Maintainer, p.InstalledSize, p.DownloadSize,
			p.Homepage, p.Summary, p.Essential,
		}
	})
	if err != nil {
		return 0, err
	}
	var dependencies [][]any
	add := func(p *Package, kind string, needs []string) {
		for _, n := range needs {
			dependencies = append(dependencies, []any{int64(len(dependencies) + 1), p.ID, kind, n})
		}
	}
	for i := range packages {
		add(&packages[i], "pre-depends", packages[i].PreDepends)
		add(&packages[i], "depends", packages[i].Depends)
	}
	columns := []string{"id", "package_id", "kind", "needs"}
	return len(dependencies), load(ctx, conn, "dependency", columns, len(dependencies), func(i int) []any { return dependencies[i] })
}

func load(ctx context.Context, conn *pgx.Conn, table string, columns []string, rows int, row func(i int) []any) error {
	source := pgx.CopyFromSlice(rows, func(i int) ([]any, error) { return row(i), nil })
	n, err := conn.CopyFrom(ctx, pgx.Identifier{Role, table}, columns, source)
	if err != nil {
		return err
	}
	if n != int64(rows) {
		return fmt.Errorf("loaded %d of %d rows of %s", n, rows, table)
	}
	return nil
}

// Follow makes a team follow sections.
func Follow(ctx context.Context, conn *pgx.Conn, team Team, sections []string) error {
	_, err := conn.Exec(ctx, "INSERT INTO archive.follow (team, section) SELECT $1, unnest($2::text[])", team.Address, sections)
	return err
}

// Share makes a team for shared work, with a packaging team as its only member and tasks of the given titles.
func Share(ctx context.Context, conn *pgx.Conn, name string, member Team, titles []string) error {
	_, err := conn.Exec(ctx, `WITH t AS (INSERT INTO archive.team (id, name) VALUES (gen_random_uuid(), $1) RETURNING id),
	m AS (INSERT INTO archive.team_member (id, team_id, member) SELECT gen_random_uuid(), t.id, $2 FROM t)
	INSERT INTO archive.task (id, team_id, title) SELECT gen_random_uuid(), t.id, u.title FROM t, unnest($3::text[]) AS u(title)`,
		name, member.Address, titles)
	return err
}
