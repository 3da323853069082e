package shim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"synchro/internal/ijson"
	"synchro/protocol"
)

// FuzzIntake: the database gets exactly what came, if it is sound, or else no more than what tells whose it is; every answer is one of
// ours.
func FuzzIntake(f *testing.F) {
	for _, body := range []string{pullBody, "", "[]", `{"client_id":"c","x":1}`, `{"client_id":"c","protocol_version":4}`, pullBody + "{}", "\ufeff" + pullBody,
		strings.Replace(pullBody, `"c"`, "\"\xff\"", 1)} {
		for _, kind := range []string{"application/json", "application/json; charset=utf-8", "text/plain", "application/json;", ""} {
			f.Add(2, body, kind, "")
		}
		f.Add(0, body, "application/json", "identity")
		f.Add(1, body, "application/json", "gzip")
	}
	db := answers(200, "{}")
	s := newServer(testConfig(discard{}), db)
	h, err := s.Public()
	if err != nil {
		f.Fatal(err)
	}
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": "alice", "exp": time.Now().Add(time.Hour).Unix()}).SignedString([]byte(testSecret))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, route int, body, kind, encoding string) {
		ep := endpoints[uint(route)%uint(len(endpoints))]
		r := httptest.NewRequest(http.MethodPost, ep.path, strings.NewReader(body))
		r.Header.Set("Content-Type", kind)
		if encoding != "" {
			r.Header.Set("Content-Encoding", encoding)
		}
		r.Header.Set("Authorization", "Bearer "+signed)
		db.body = ""
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		sound := plainJSON(r.Header) && ep.check([]byte(body)) == nil
		asked := body
		if !sound {
			asked = ""
			if plainJSON(r.Header) {
				asked = string(protocol.Gates([]byte(body)))
			}
		}
		if (w.Code == 200) != sound || db.body != asked {
			t.Fatalf("answer %d, the database was asked %q", w.Code, db.body)
		}
		if w.Code != 200 && w.Code != 400 && w.Code != 426 || ijson.Validate(w.Body.Bytes(), 3) != nil {
			t.Fatalf("answer %d %s", w.Code, w.Body)
		}
	})
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// FuzzPreference: a wait is within its bounds, and what is quoted is never one.
func FuzzPreference(f *testing.F) {
	for _, line := range []string{"wait=10", `wait="1\0"`, "a, wait=3;b", `a="b, wait=9", wait=3`, `a="`, "wait", ",,", `\"`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if got := preferredWait(http.Header{"Prefer": {line}}, time.Minute); got < 0 || got > time.Minute {
			t.Fatalf("waits %s", got)
		}
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(line)
		if got := preferredWait(http.Header{"Prefer": {`x="` + quoted + `"; y="` + quoted + `", wait=7`}}, time.Minute); got != 7*time.Second {
			t.Fatalf("quoted, it waits %s", got)
		}
	})
}

// FuzzCredential: whatever is signed, who is identified is a user that the database can hold, by claims that it can hold, for a time.
func FuzzCredential(f *testing.F) {
	for _, payload := range []string{`{"sub":"alice","exp":4102444800}`, `{"sub":"\ud800","exp":4102444800}`, `{"sub":"a","exp":1e300}`, `{"sub":"a","exp":4102444800,"nbf":1e300}`,
		`{"sub":"a","exp":4102444800,"x":[1e-99999,{"y":null}]}`, `{"sub":"a","sub":"b","exp":4102444800}`, `[]`, `null`, `{"exp":"4102444800","sub":"a"}`} {
		f.Add(`{"alg":"HS256"}`, payload)
		f.Add(`{"alg":"HS256","crit":[]}`, payload)
	}
	a := newAuthenticator(testConfig(discard{}))
	f.Fuzz(func(t *testing.T, header, payload string) {
		signing := jwt.New(jwt.SigningMethodHS256)
		text := signing.EncodeSegment([]byte(header)) + "." + signing.EncodeSegment([]byte(payload))
		signature, err := jwt.SigningMethodHS256.Sign(text, []byte(testSecret))
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "/sync/pull", nil)
		r.Header.Set("Authorization", "Bearer "+text+"."+signing.EncodeSegment(signature))
		who, err := a.identify(r)
		if err != nil {
			return
		}
		if who.user == "" || len(who.user) > maxUserID || !utf8.ValidString(who.user) || !who.expires.After(time.Now()) {
			t.Fatalf("%q until %s", who.user, who.expires)
		}
		if err := ijson.Validate([]byte(payload), ijson.DefaultDepth); err != nil {
			t.Fatal(err)
		}
		var claims struct{ Sub string }
		if err := json.Unmarshal(who.claims, &claims); err != nil || ijson.Validate(who.claims, ijson.DefaultDepth) != nil || claims.Sub != who.user {
			t.Fatalf("claims %s: %v", who.claims, err)
		}
		if !strings.Contains(header, "HS256") && !strings.Contains(header, `\u`) {
			t.Fatal(fmt.Sprintf("header %q", header))
		}
	})
}

// FuzzAnnouncement: numbers come sorted, and what is not understood concerns everybody.
func FuzzAnnouncement(f *testing.F) {
	for _, payload := range []string{"0/10;1,2,3", "0/10;*", "0/10;", ";", "", "0/10;3,-1,0", "0/10;1,,2", "0/10;9223372036854775808"} {
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		a := parseAnnouncement(payload)
		if !slices.IsSorted(a) {
			t.Fatalf("%v", a)
		}
		for _, number := range a {
			if !a.concerns([]int64{number}) {
				t.Fatalf("%v does not concern %d", a, number)
			}
		}
		if a == nil && !a.concerns([]int64{7}) {
			t.Fatal("what is not understood concerns nobody")
		}
	})
}
