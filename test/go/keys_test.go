package systest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"synchro/internal/pgtest"
)

// A rotation while writers are at work: capture goes on with what the old key has signed and with what the new one signs.
func TestFenceKeyRotation(t *testing.T) {
	c := newCore(t, pgtest.Config{Settings: []string{"logical_decoding_work_mem = '64kB'"}})
	c.register()
	c.start()
	c.streaming()
	open := c.Connect(t, "", "")
	run(t, open, "BEGIN")
	run(t, open, "INSERT INTO app.item (id, owner) SELECT g, 'u1' FROM generate_series(1, 2000) g") // streamed before it ends
	old := c.value("SELECT key_id FROM synchro.secret_key WHERE purpose = 'fence' AND state = 'active'")
	for round := range 3 {
		c.exec("SELECT synchro.synchro_rotate_keys()")
		run(t, open, "INSERT INTO app.item (id, owner) SELECT g, 'u2' FROM generate_series($1::int, $1::int + 100) g", 3000+1000*round)
		c.exec("INSERT INTO app.item (id, owner) SELECT g, 'u3' FROM generate_series($1::int, $1::int + 100) g", 10000+1000*round)
		c.materialized() // with a marker of the new key
	}
	// The key is kept as long as a transaction may use it.
	started := time.Now()
	if _, err := c.db.Exec(t.Context(), "SELECT synchro.synchro_retire_key($1)", old); sqlStateOf(err) != "55000" || time.Since(started) < 5*time.Second {
		t.Errorf("retired under an open transaction: %v after %v", err, time.Since(started))
	}
	run(t, open, "COMMIT")
	c.equal()
	secret := c.value("SELECT encode(secret, 'hex') FROM synchro.secret_key WHERE key_id = $1", old)
	c.exec("SELECT synchro.synchro_retire_key($1)", old)
	c.exec("UPDATE app.item SET n = n + 1 WHERE id < 100")
	c.equal()
	c.want("SELECT ignored_messages FROM synchro.progress", "0")
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
	c.want("SELECT state || length(secret) FROM synchro.secret_key WHERE key_id = '"+old+"'", "retired0")
	// Whoever has it can no longer sign with it: a marker, made by hand.
	forge := `SELECT pg_logical_emit_message(false, 'synchro', convert_to('M', 'UTF8') || synchro._siphash(decode($1, 'hex'), '\x00000000' || convert_to('M', 'UTF8') || '\x0102030405060708') || '\x0102030405060708')`
	pgtest.Poll(t, settle, "ignored message of the retired key", func() bool {
		c.exec(forge, secret)
		c.exec("UPDATE app.item SET n = n + 1 WHERE id = 1")
		c.materialized()
		return c.value("SELECT ignored_messages > 0 FROM synchro.progress") == "true"
	})
	c.equal()
}

func run(t testing.TB, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
}

// sqlStateOf is the SQLSTATE of an error of the server.
func sqlStateOf(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}
