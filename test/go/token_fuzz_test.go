package systest

import (
	"context"
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"synchro/internal/pgtest"
)

// opener reads tokens of one purpose in the server.
type opener struct {
	conn *pgx.Conn
	made string // a genuine token
}

func newOpener(t testing.TB) *opener {
	t.Helper()
	c := pgtest.StartWithExtension(t, pgtest.Config{NoWorker: true})
	o := &opener{conn: c.Connect(t, "", "")}
	err := o.conn.QueryRow(context.Background(), `SELECT synchro._token_sign('cursor', '{"v":1,"sg":1,"k":"e","l":"0/10","e":3,"f":0,"s":"user:a"}')`).Scan(&o.made)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// opens says whether the server takes a text for a token; a text that it can't even store is none.
func (o *opener) opens(t testing.TB, token string) bool {
	t.Helper()
	var payload *string
	if err := o.conn.QueryRow(context.Background(), "SELECT synchro._token_open('cursor', $1)::text", token).Scan(&payload); err != nil {
		if strings.ContainsRune(token, 0) || strings.ToValidUTF8(token, "") != token {
			return false
		}
		t.Fatalf("opening a token failed instead of refusing it: %v", err)
	}
	return payload != nil
}

// Every change of a token makes it worthless: bits, cuts, other encodings of the same octets.
func TestChangedTokensAreForged(t *testing.T) {
	o := newOpener(t)
	if !o.opens(t, o.made) {
		t.Fatal("a genuine token is refused")
	}
	r := rand.New(rand.NewPCG(1, 2))
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ "
	changed := []string{"", ".", "..", o.made + ".", o.made + "=", " " + o.made, o.made + o.made, strings.ToUpper(o.made), strings.ReplaceAll(o.made, ".", "..")}
	for i := range len(o.made) {
		other := []byte(o.made)
		for other[i] == o.made[i] {
			other[i] = alphabet[r.IntN(len(alphabet))]
		}
		changed = append(changed, string(other), o.made[:i], o.made[i:])
	}
	for _, token := range changed {
		if token != o.made && o.opens(t, token) {
			t.Fatalf("a changed token is accepted: %q", token)
		}
	}
}

// FuzzToken looks for a text that opens without being the token, or that makes the server fail.
func FuzzToken(f *testing.F) {
	o := newOpener(f)
	parts := strings.Split(o.made, ".")
	f.Add(o.made + "A")
	f.Add(parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{}`)) + "." + parts[len(parts)-1])
	f.Add(strings.Repeat(".", 1000))
	f.Fuzz(func(t *testing.T, token string) {
		if token != o.made && o.opens(t, token) {
			t.Fatalf("opens: %q", token)
		}
	})
}
