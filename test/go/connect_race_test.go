package systest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"synchro/internal/pgtest"
)

// Many who connect for the first time with the same client id at once: it belongs to the one who made it, and everybody is told so,
// nobody to try again.
func TestFirstConnectsOfOneClientAtOnce(t *testing.T) {
	const many = 6 // fewer than the shim's connections
	a := startApp(t, pgtest.Config{})
	body := func(client string) string {
		return fmt.Sprintf(`{"client_id":%q,"platform":"test","app_version":"1.0.0","protocol_version":3,"schema":{"version":0,"hash":""},"scope_set_version":0,"known_scopes":{}}`, client)
	}
	for i, c := range []struct {
		user  func(n int) string
		wants string
	}{
		{func(int) string { return "ada" }, "200"},
		{func(n int) string { return fmt.Sprintf("bob%d", n) }, "401 auth_required"},
	} {
		client := fmt.Sprintf("shared-%d", i)
		first := a.Connect(t, "", "")
		tx, err := first.Begin(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		var status int
		if err := tx.QueryRow(context.Background(), "SELECT status FROM synchro.synchro_connect('ada', $1)", body(client)).Scan(&status); err != nil || status != http.StatusOK {
			t.Fatalf("connect: %d %v", status, err)
		}
		answers := make(chan string, many)
		for n := range many {
			go func() {
				r, err := send(context.Background(), a.serve.URL, c.user(n), "connect", []byte(body(client)))
				if err != nil {
					r.body = err.Error()
				}
				answers <- strings.TrimSpace(fmt.Sprint(r.status, " ", r.code()))
			}()
		}
		err = pgtest.WaitFor(context.Background(), settle, "everybody at the client that is being made", func() (bool, error) {
			return a.value("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'synchro serve' AND wait_event_type = 'Lock'") == fmt.Sprint(many), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(context.Background()); err != nil {
			t.Fatal(err)
		}
		for range many {
			if got := <-answers; got != c.wants {
				t.Errorf("%s: answer %q, want %q", client, got, c.wants)
			}
		}
	}
}
