package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

const (
	testHash = "a97280b716fe0f8a9553ba7c3b31b00dd03f7c7aacf0ff01a703d73182f3df31"
	testUUID = "00000000-0000-4000-8000-000000000010"
)

// exchange is one request with a sound body and its decoder.
type exchange struct {
	name   string
	sound  string
	decode func([]byte) (raw []byte, err error)
}

var exchanges = []exchange{
	{"connect", `{"client_id":"c","client_generation":1,"platform":"linux","app_version":"1.0.0","protocol_version":3,
		"schema":{"version":1,"hash":"` + testHash + `"},"scope_set_version":2,"known_scopes":{"user:u":{"cursor":null}}}`,
		func(b []byte) ([]byte, error) { return rawOf(DecodeConnect(b)) }},
	{"push", `{"client_id":"c","client_generation":1,"batch_id":"` + testUUID + `","schema":{"version":1,"hash":"` + testHash + `"},
		"mutations":[{"mutation_id":"00000000-0000-4000-8000-000000000001","table":"t","pk":{"f":"k"},
		"authored_schema":{"version":1,"hash":"` + testHash + `"},"op":"update","base_version":"v",
		"client_version":"2024-02-29T12:34:56.123456Z","columns":{"g":1.50}}]}`,
		func(b []byte) ([]byte, error) { return rawOf(DecodePush(b)) }},
	{"pull", `{"client_id":"c","client_generation":1,"schema":{"version":1,"hash":"` + testHash + `"},"scope_set_version":0,
		"scopes":{"user:u":{"cursor":"x"},"shared:s":{"cursor":null}},"limit":1000}`,
		func(b []byte) ([]byte, error) { return rawOf(DecodePull(b)) }},
	{"rebuild", `{"client_id":"c","client_generation":1,"schema":{"version":1,"hash":"` + testHash + `"},"scope":"user:u",
		"rebuild_id":"` + testUUID + `","cursor":null,"limit":1}`,
		func(b []byte) ([]byte, error) { return rawOf(DecodeRebuild(b)) }},
}

func rawOf[T *ConnectRequest | *PushRequest | *PullRequest | *RebuildRequest](q T, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	switch q := any(q).(type) {
	case *ConnectRequest:
		return q.Raw, nil
	case *PushRequest:
		return q.Raw, nil
	case *PullRequest:
		return q.Raw, nil
	case *RebuildRequest:
		return q.Raw, nil
	}
	panic("unreachable")
}

// mustRefuse wants the wire code for a body.
func mustRefuse(t *testing.T, decode func([]byte) ([]byte, error), body, code string) {
	t.Helper()
	_, err := decode([]byte(body))
	var e *Error
	if !errors.As(err, &e) || e.Code.Name != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

func TestSoundRequestKeepsItsBytes(t *testing.T) {
	for _, x := range exchanges {
		t.Run(x.name, func(t *testing.T) {
			raw, err := x.decode([]byte(x.sound))
			if err != nil {
				t.Fatal(err)
			}
			if string(raw) != x.sound {
				t.Error("the bytes for the database differ from those received")
			}
		})
	}
}

// eachMember calls visit with every top-level member of a sound body.
func eachMember(t *testing.T, x exchange, visit func(name string, members map[string]json.RawMessage)) {
	t.Helper()
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(x.sound), &members); err != nil {
		t.Fatal(err)
	}
	for name := range members {
		copied := map[string]json.RawMessage{}
		for n, v := range members {
			copied[n] = v
		}
		visit(name, copied)
	}
}

func encode(t *testing.T, members map[string]json.RawMessage) string {
	t.Helper()
	body, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestMissingMemberIsRefused(t *testing.T) {
	for _, x := range exchanges {
		eachMember(t, x, func(name string, members map[string]json.RawMessage) {
			if name == "client_generation" {
				return
			}
			t.Run(x.name+"/"+name, func(t *testing.T) {
				delete(members, name)
				mustRefuse(t, x.decode, encode(t, members), ErrInvalidRequest)
			})
		})
	}
}

func TestMissingGenerationIsLeftToTheDatabase(t *testing.T) {
	for _, x := range exchanges {
		t.Run(x.name, func(t *testing.T) {
			if _, err := x.decode([]byte(strings.Replace(x.sound, `"client_generation":1,`, "", 1))); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWrongTypeIsRefused(t *testing.T) {
	for _, x := range exchanges {
		eachMember(t, x, func(name string, members map[string]json.RawMessage) {
			original := string(members[name])
			for _, wrong := range []string{`true`, `null`, `[]`, `{}`, `7.5`, `""`, `"7"`, `[{}]`} {
				if x.name == "connect" && name == "schema" {
					continue // has an error of its own, from the database
				}
				if wrong == original || wrong == `{}` && (name == "known_scopes" || name == "scopes") ||
					wrong == `null` && name == "cursor" || wrong == `"7"` && original[0] == '"' && name != "batch_id" && name != "rebuild_id" ||
					wrong == `"7"` && name == "cursor" {
					continue
				}
				t.Run(x.name+"/"+name+"/"+wrong, func(t *testing.T) {
					members[name] = json.RawMessage(wrong)
					mustRefuse(t, x.decode, encode(t, members), ErrInvalidRequest)
				})
			}
		})
	}
}

func TestUnknownMemberIsRefused(t *testing.T) {
	for _, x := range exchanges {
		t.Run(x.name, func(t *testing.T) {
			mustRefuse(t, x.decode, strings.Replace(x.sound, `{`, `{"user_id":"u",`, 1), ErrInvalidRequest)
		})
	}
}

func TestDuplicateMemberIsRefused(t *testing.T) {
	for _, x := range exchanges {
		for place, body := range map[string]string{
			"envelope":        strings.Replace(x.sound, `{`, `{"client_id":"c",`, 1),
			"spelled as \\u":  strings.Replace(x.sound, `{`, `{"client\u005fid":"c",`, 1),
			"inside a member": strings.Replace(x.sound, `"version":1,`, `"version":1,"version":1,`, 1),
		} {
			t.Run(x.name+"/"+place, func(t *testing.T) { mustRefuse(t, x.decode, body, ErrInvalidRequest) })
		}
	}
	for place, body := range map[string]string{
		"columns":       strings.Replace(exchanges[1].sound, `"columns":{`, `"columns":{"g":2,`, 1),
		"column value":  strings.Replace(exchanges[1].sound, `1.50`, `{"a":1,"a":2}`, 1),
		"primary key":   strings.Replace(exchanges[1].sound, `"pk":{`, `"pk":{"f":"k",`, 1),
		"client scopes": strings.Replace(exchanges[1].sound, `"op":`, `"op":"update","op":`, 1),
	} {
		t.Run("push/"+place, func(t *testing.T) { mustRefuse(t, exchanges[1].decode, body, ErrInvalidRequest) })
	}
}

func TestMalformedDocumentIsRefused(t *testing.T) {
	for _, x := range exchanges {
		for what, body := range map[string]string{
			"empty":              "",
			"blank":              "  ",
			"not an object":      "[" + x.sound + "]",
			"cut":                x.sound[:len(x.sound)-1],
			"trailing":           x.sound + "{}",
			"comma at the end":   strings.Replace(x.sound, "}}", "},}", 1) + ",",
			"byte order mark":    "\ufeff" + x.sound,
			"invalid UTF-8":      strings.Replace(x.sound, `"c"`, "\"\xff\"", 1),
			"overlong UTF-8":     strings.Replace(x.sound, `"c"`, "\"\xc0\xaf\"", 1),
			"encoded surrogate":  strings.Replace(x.sound, `"c"`, "\"\xed\xa0\x80\"", 1),
			"lone surrogate":     strings.Replace(x.sound, `"c"`, `"\ud800"`, 1),
			"noncharacter":       strings.Replace(x.sound, `"c"`, `"\uffff"`, 1),
			"U+0000":             strings.Replace(x.sound, `"c"`, `"\u0000"`, 1),
			"raw control":        strings.Replace(x.sound, `"c"`, "\"\n\"", 1),
			"comment":            "/**/" + x.sound,
			"number beyond":      strings.Replace(x.sound, `"client_generation":1`, `"client_generation":1e400`, 1),
			"integer beyond":     strings.Replace(x.sound, `"client_generation":1`, `"client_generation":9007199254740992`, 1),
			"integer fraction":   strings.Replace(x.sound, `"client_generation":1`, `"client_generation":1.0`, 1),
			"integer exponent":   strings.Replace(x.sound, `"client_generation":1`, `"client_generation":1e0`, 1),
			"integer minus zero": strings.Replace(x.sound, `"client_generation":1`, `"client_generation":-0`, 1),
			"generation zero":    strings.Replace(x.sound, `"client_generation":1`, `"client_generation":0`, 1),
			"generation null":    strings.Replace(x.sound, `"client_generation":1`, `"client_generation":null`, 1),
		} {
			t.Run(x.name+"/"+what, func(t *testing.T) { mustRefuse(t, x.decode, body, ErrInvalidRequest) })
		}
	}
}

func TestNestingIsBounded(t *testing.T) {
	nest := func(n int) string {
		return strings.Replace(exchanges[1].sound, "1.50", strings.Repeat("[", n)+strings.Repeat("]", n), 1)
	}
	const around = 4 // envelope, mutations, mutation, columns
	if _, err := DecodePush([]byte(nest(MaxDepth - around))); err != nil {
		t.Errorf("at the bound: %v", err)
	}
	mustRefuse(t, exchanges[1].decode, nest(MaxDepth-around+1), ErrInvalidRequest)
	mustRefuse(t, exchanges[2].decode, strings.Repeat("[", 1<<20), ErrInvalidRequest)
}

func TestUUIDForm(t *testing.T) {
	for what, id := range map[string]string{
		"upper case":    "00000000-0000-4000-8000-00000000000A",
		"nil":           "00000000-0000-0000-0000-000000000000",
		"no hyphens":    "00000000000040008000000000000010",
		"braces":        "{00000000-0000-4000-8000-000000000010}",
		"wrong hyphens": "0000000-00000-4000-8000-000000000010",
		"not hex":       "00000000-0000-4000-8000-00000000001g",
	} {
		for _, x := range []exchange{exchanges[1], exchanges[3]} {
			t.Run(x.name+"/"+what, func(t *testing.T) {
				mustRefuse(t, x.decode, strings.Replace(x.sound, testUUID, id, 1), ErrInvalidRequest)
			})
		}
	}
}

func TestPageLimit(t *testing.T) {
	for _, limit := range []string{"0", "-1", "1001", "1.0", "1e2", `"10"`, "null", "9007199254740993"} {
		for _, x := range exchanges[2:] {
			t.Run(x.name+"/"+limit, func(t *testing.T) {
				cut := strings.LastIndex(x.sound, ":")
				mustRefuse(t, x.decode, x.sound[:cut+1]+limit+"}", ErrInvalidRequest)
			})
		}
	}
}

func TestSchemaReference(t *testing.T) {
	for what, ref := range map[string]string{
		"upper case hash": `{"version":1,"hash":"` + strings.ToUpper(testHash) + `"}`,
		"short hash":      `{"version":1,"hash":"abc"}`,
		"version zero":    `{"version":0,"hash":"` + testHash + `"}`,
		"fresh sentinel":  `{"version":0,"hash":""}`,
		"more members":    `{"version":1,"hash":"` + testHash + `","x":1}`,
	} {
		for _, x := range exchanges[1:] {
			t.Run(x.name+"/"+what, func(t *testing.T) {
				body := strings.Replace(x.sound, `"schema":{"version":1,"hash":"`+testHash+`"}`, `"schema":`+ref, 1)
				mustRefuse(t, x.decode, body, ErrInvalidRequest)
			})
		}
	}
}

func TestConnectLeavesTheSchemaReferenceToTheDatabase(t *testing.T) {
	for _, ref := range []string{`null`, `"x"`, `{}`, `{"version":-1,"hash":"x"}`, `{"version":1.5,"hash":""}`} {
		body := strings.Replace(exchanges[0].sound, `{"version":1,"hash":"`+testHash+`"}`, ref, 1)
		if q, err := DecodeConnect([]byte(body)); err != nil || string(q.Raw) != body {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

func TestConnectTakesTheFreshSentinel(t *testing.T) {
	body := strings.Replace(exchanges[0].sound, `{"version":1,"hash":"`+testHash+`"}`, `{"version":0,"hash":""}`, 1)
	if _, err := DecodeConnect([]byte(body)); err != nil {
		t.Error(err)
	}
}

func TestOtherProtocolVersionIsAnsweredBeforeTheShape(t *testing.T) {
	body := `{"protocol_version":4,"something_new":true}`
	_, err := DecodeConnect([]byte(body))
	var e *Error
	if !errors.As(err, &e) || e.Code.Name != ErrUpgradeRequired {
		t.Fatalf("got %v", err)
	}
	want := `{"error":{"code":"upgrade_required","message":"this server speaks another protocol version",` +
		`"retryable":false,"required_protocol_version":3,"received_protocol_version":4}}`
	if got := string(e.Body()); got != want {
		t.Errorf("body %s", got)
	}
}

func TestEmptySeedReceiptsAreRefused(t *testing.T) {
	for _, member := range []string{`"seed_receipts":{}`, `"seed_receipts":{"s":""}`, `"seed_receipts":{"s":null}`, `"schema_reset":1`} {
		mustRefuse(t, exchanges[0].decode, strings.Replace(exchanges[0].sound, "{", "{"+member+",", 1), ErrInvalidRequest)
	}
}

func TestScopeCursorForm(t *testing.T) {
	for _, scopes := range []string{`{"":{"cursor":null}}`, `{"s":null}`, `{"s":{}}`, `{"s":{"cursor":1}}`,
		`{"s":{"cursor":""}}`, `{"s":{"cursor":null,"x":1}}`, `{"s\u0000":{"cursor":null}}`, `{"s":{"cursor":null},"s":{"cursor":null}}`} {
		t.Run(scopes, func(t *testing.T) {
			body := strings.Replace(exchanges[2].sound, `{"user:u":{"cursor":"x"},"shared:s":{"cursor":null}}`, scopes, 1)
			mustRefuse(t, exchanges[2].decode, body, ErrInvalidRequest)
		})
	}
}

func TestReadBodyStopsAtTheLimit(t *testing.T) {
	if body, err := ReadBody(strings.NewReader("12345"), 5, 5); err != nil || string(body) != "12345" {
		t.Errorf("at the limit: %q, %v", body, err)
	}
	endless := &counter{}
	if _, err := ReadBody(endless, 1000, 1<<40); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if endless.n > 64<<10 {
		t.Errorf("%d octets were read for a limit of 1000", endless.n)
	}
}

type counter struct{ n int }

func (c *counter) Read(p []byte) (int, error) { c.n += len(p); return len(p), nil }

func TestReadBodyReportsABrokenConnection(t *testing.T) {
	_, err := ReadBody(io.MultiReader(strings.NewReader("x"), brokenReader{}), 10, -1)
	var e *Error
	if !errors.Is(err, io.ErrUnexpectedEOF) || !errors.As(err, &e) || !e.Code.Retryable {
		t.Errorf("got %v", err)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestRefusalNeverRepeatsTheRequest(t *testing.T) {
	const secret = "hunter2secret"
	for _, x := range exchanges {
		for _, body := range []string{
			strings.Replace(x.sound, `{`, `{"`+secret+`":1,`, 1),
			strings.Replace(x.sound, `"c"`, `"`+secret+`\ud800"`, 1),
			strings.Replace(x.sound, testHash, secret, 1),
			strings.Replace(x.sound, testUUID, secret, 1),
		} {
			if _, err := x.decode([]byte(body)); err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %v", x.name, err)
			}
		}
	}
}

func FuzzConnect(f *testing.F) { fuzzExchange(f, exchanges[0]) }
func FuzzPush(f *testing.F)    { fuzzExchange(f, exchanges[1]) }
func FuzzPull(f *testing.F)    { fuzzExchange(f, exchanges[2]) }
func FuzzRebuild(f *testing.F) { fuzzExchange(f, exchanges[3]) }

// fuzzExchange: no panic, only wire errors, and nothing accepted that a plain
// decoder finds malformed.
func fuzzExchange(f *testing.F, x exchange) {
	f.Add([]byte(x.sound))
	f.Add([]byte(strings.ReplaceAll(x.sound, `"`, `\"`)))
	f.Add([]byte(`{"protocol_version":4}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		raw, err := x.decode(body)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || !json.Valid(e.Body()) {
				t.Fatalf("not a wire error: %v", err)
			}
			return
		}
		if !json.Valid(body) || !bytes.Equal(raw, body) {
			t.Fatal(fmt.Sprintf("accepted %q", body))
		}
	})
}
