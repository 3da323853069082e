package systest

import (
	"context"
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"synchro/canonical"
	"synchro/internal/pgtest"
)

// TestStrictJSONAgrees feeds damaged JSON to both implementations: they accept the same texts and form the same canonical text.
func TestStrictJSONAgrees(t *testing.T) {
	t.Parallel()
	conn := pgtest.StartWithExtension(t, pgtest.Config{NoWorker: true}).Connect(t, "", "")
	execSQL(t, conn, `CREATE FUNCTION pg_temp.form(p_json text) RETURNS text LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM synchro._json_strict(p_json);
			RETURN synchro._jcs(p_json::json);
		EXCEPTION WHEN SQLSTATE 'SY001' THEN
			RETURN NULL;
		END $$`)
	const seed = 1
	texts := damagedJSON(rand.New(rand.NewPCG(seed, seed)), 6000)
	rows, err := conn.Query(context.Background(), "SELECT j, pg_temp.form(j) FROM unnest($1::text[]) j", texts)
	if err != nil {
		t.Fatal(err)
	}
	var text string
	var form *string
	accepted, refused := 0, 0
	if _, err := pgx.ForEachRow(rows, []any{&text, &form}, func() error {
		want, err := canonical.Canonicalize([]byte(text))
		switch {
		case (err == nil) != (form != nil):
			t.Errorf("%q: Go says %v, C accepts: %t", text, err, form != nil)
		case form == nil:
			refused++
		case *form != string(want):
			t.Errorf("%q:\n C  %s\n Go %s", text, *form, want)
		default:
			accepted++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if accepted < 100 || refused < 100 {
		t.Errorf("the texts test little: %d accepted, %d refused", accepted, refused)
	}
}

// damagedJSON makes random documents and replaces, removes or repeats pieces of most of them. Texts that the server can't hold are left out.
func damagedJSON(r *rand.Rand, n int) []string {
	pieces := []string{"{", "}", "[", "]", ",", ":", `"`, `\`, `\u0000`, `\ud800`, `\udc00`, `\ufdd0`, "0", "-", "1e", "1e400", "01", ".5", "null", "tru", " ", "\n", "\x01", "\uFFFE", `"a":1,`, "é", `\/`, "1E23", "9007199254740993"}
	var texts []string
	for len(texts) < n {
		text := randomJSON(r, 3)
		for range r.IntN(3) {
			at := r.IntN(len(text) + 1)
			end := min(len(text), at+r.IntN(3))
			text = text[:at] + pieces[r.IntN(len(pieces))] + text[end:]
		}
		if utf8.ValidString(text) {
			texts = append(texts, text)
		}
	}
	return texts
}
