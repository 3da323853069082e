package protocol

import (
	"fmt"
	"strings"
	"testing"
)

func batch(mutations ...string) string {
	return `{"client_id":"c","client_generation":1,"batch_id":"` + testUUID + `","schema":{"version":1,"hash":"` + testHash +
		`"},"mutations":[` + strings.Join(mutations, ",") + `]}`
}

func mutation(n int, rest string) string {
	return fmt.Sprintf(`{"mutation_id":"00000000-0000-4000-8000-%012d","table":"t","pk":{"f":"k%d"},
		"authored_schema":{"version":1,"hash":"%s"},"client_version":"2024-02-29T12:34:56.123456Z",%s}`, n, n, testHash, rest)
}

func TestMatrixOfOperations(t *testing.T) {
	for _, op := range []string{"insert", "update", "delete", "upsert", ""} {
		for base, baseMember := range map[string]string{"base": `,"base_version":"v"`, "no base": "",
			"null base": `,"base_version":null`, "empty base": `,"base_version":""`} {
			for columns, columnsMember := range map[string]string{"columns": `,"columns":{"g":null}`, "empty columns": `,"columns":{}`,
				"no columns": "", "null columns": `,"columns":null`} {
				valid := op == "insert" && base == "no base" && (columns == "columns" || columns == "empty columns") ||
					op == "update" && base == "base" && columns == "columns" ||
					op == "delete" && base == "base" && columns == "no columns"
				t.Run(op+"/"+base+"/"+columns, func(t *testing.T) {
					body := batch(mutation(1, `"op":"`+op+`"`+baseMember+columnsMember))
					if valid {
						if _, err := DecodePush([]byte(body)); err != nil {
							t.Error(err)
						}
						return
					}
					mustRefuse(t, exchanges[1].decode, body, ErrInvalidRequest)
				})
			}
		}
	}
}

func TestNumberOfMutations(t *testing.T) {
	many := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = mutation(i+1, `"op":"delete","base_version":"v"`)
		}
		return batch(all...)
	}
	if _, err := DecodePush([]byte(many(1000))); err != nil {
		t.Error(err)
	}
	mustRefuse(t, exchanges[1].decode, many(1001), ErrInvalidRequest)
	mustRefuse(t, exchanges[1].decode, many(0), ErrInvalidRequest)
}

func TestNumberOfColumns(t *testing.T) {
	wide := func(n int) string {
		columns := make([]string, n)
		for i := range columns {
			columns[i] = fmt.Sprintf(`"c%d":%d`, i, i)
		}
		return batch(mutation(1, `"op":"insert","columns":{`+strings.Join(columns, ",")+`}`))
	}
	if _, err := DecodePush([]byte(wide(256))); err != nil {
		t.Error(err)
	}
	mustRefuse(t, exchanges[1].decode, wide(257), ErrInvalidRequest)
}

// The limit on a mutation is one on its normalized form, octet by octet: not on how it is spelled.
func TestMutationSize(t *testing.T) {
	const head, tail = `["mutation-v1","00000000-0000-4000-8000-000000000001","t",["f","k1"],["1","` + testHash + `"],"insert",[0],"2024-02-29T12:34:56.123456Z",[1,[["g","`, `"]]]]`
	room := 65536 - len(head) - len(tail)
	for name, c := range map[string]struct {
		unit string // as it is written
		size int    // in RFC 8785
	}{"plain": {"x", 1}, "escaped for nothing": {`\u0078`, 1}, "escaped": {`\"`, 2}, "two octets": {`\u00e9`, 2}, "control": {`\u0001`, 6}} {
		sized := func(more int) string {
			n := room / c.size
			text := strings.Repeat(c.unit, n) + strings.Repeat("y", room-n*c.size+more)
			return batch(mutation(1, `"op":"insert","columns":{"g":"`+text+`"}`))
		}
		if _, err := DecodePush([]byte(sized(0))); err != nil {
			t.Errorf("%s, at the limit: %v", name, err)
		}
		mustRefuse(t, exchanges[1].decode, sized(1), ErrInvalidRequest)
	}
}

func TestPushBodySize(t *testing.T) {
	base := batch(mutation(1, `"op":"delete","base_version":"v"`))
	sized := func(n int) string { return base + strings.Repeat(" ", n-len(base)) }
	if _, err := DecodePush([]byte(sized(MaxPushBody))); err != nil {
		t.Error(err)
	}
	mustRefuse(t, exchanges[1].decode, sized(MaxPushBody+1), ErrInvalidRequest)
}

func TestRepeatedMutationIsRefused(t *testing.T) {
	m := mutation(1, `"op":"delete","base_version":"v"`)
	mustRefuse(t, exchanges[1].decode, batch(m, m), ErrInvalidRequest)
}

func TestAtomicGroup(t *testing.T) {
	atomic := func(flag string, mutations ...string) string {
		return strings.Replace(batch(mutations...), `{`, `{"atomic":`+flag+`,`, 1)
	}
	first, second := mutation(1, `"op":"delete","base_version":"v"`), mutation(2, `"op":"delete","base_version":"v"`)
	if q, err := DecodePush([]byte(atomic("true", first, second))); err != nil || !q.Atomic {
		t.Errorf("two rows: %v", err)
	}
	mustRefuse(t, exchanges[1].decode, atomic("false", first), ErrInvalidRequest)
	mustRefuse(t, exchanges[1].decode, atomic("null", first), ErrInvalidRequest)
	mustRefuse(t, exchanges[1].decode, atomic("true", first, strings.Replace(second, `"k2"`, `"k\u0031"`, 1)), ErrInvalidRequest)
}

func TestClientVersionForm(t *testing.T) {
	for _, text := range []string{"2024-02-29T12:34:56Z", "2024-02-29T12:34:56.1234567Z", "2024-02-29T12:34:56.123456+00:00",
		"2023-02-29T12:34:56.123456Z", "2024-02-29 12:34:56.123456Z", "2024-02-29T24:00:00.000000Z"} {
		t.Run(text, func(t *testing.T) {
			body := batch(strings.Replace(mutation(1, `"op":"delete","base_version":"v"`), "2024-02-29T12:34:56.123456Z", text, 1))
			mustRefuse(t, exchanges[1].decode, body, ErrInvalidRequest)
		})
	}
}

func TestKeyHasExactlyOneField(t *testing.T) {
	for _, key := range []string{`{}`, `{"f":1,"g":2}`, `[]`, `"k"`, `null`, `{"":1}`} {
		t.Run(key, func(t *testing.T) {
			body := batch(strings.Replace(mutation(1, `"op":"delete","base_version":"v"`), `{"f":"k1"}`, key, 1))
			mustRefuse(t, exchanges[1].decode, body, ErrInvalidRequest)
		})
	}
}

func TestEncodedBatchIsTheSameBatch(t *testing.T) {
	body := batch(mutation(1, `"op":"insert","columns":{}`), mutation(2, `"op":"update","base_version":"v","columns":{"g":1.50,"a":[9007199254740993]}`),
		mutation(3, `"op":"delete","base_version":"v"`))
	first, err := DecodePush([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := first.Encode()
	if err != nil {
		t.Fatal(err)
	}
	second, err := DecodePush(encoded)
	if err != nil {
		t.Fatal(err)
	}
	a, errA := first.Fingerprint("u")
	b, errB := second.Fingerprint("u")
	if errA != nil || errB != nil || a != b {
		t.Errorf("fingerprints differ: %x %v, %x %v", a, errA, b, errB)
	}
	if !strings.Contains(string(encoded), "9007199254740993") || !strings.Contains(string(encoded), "1.50") {
		t.Error("a number changed its spelling")
	}
}
