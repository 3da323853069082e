package shim

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/klauspost/compress/zstd"
)

const testSecret = "0123456789abcdef0123456789abcdef"

// fakeDatabase answers by function and remembers what it was asked.
type fakeDatabase struct {
	answer func() (answer, error)
	mu     sync.Mutex
	health atomic.Bool
	asked  atomic.Int32
	calls  atomic.Int32
	user   string
	claims string
	body   string
	route  string
}

func (f *fakeDatabase) call(_ context.Context, ep *endpoint, who identity, body []byte) (answer, error) {
	f.mu.Lock()
	f.user, f.claims, f.body, f.route = who.user, string(who.claims), string(body), ep.name
	f.mu.Unlock()
	defer f.calls.Add(1)
	return f.answer()
}
func (f *fakeDatabase) ready(context.Context) (bool, error) {
	f.asked.Add(1)
	return f.health.Load(), nil
}
func (f *fakeDatabase) close()                                                    {}
func (f *fakeDatabase) listen(context.Context, func(), func(string), func(error)) {}

func testConfig(log io.Writer) Config {
	return Config{
		DatabaseURL: "unused", PoolSize: 1, Secret: []byte(testSecret), SubjectClaim: "sub", Leeway: time.Second, MaxInFlight: 2,
		MaxWaiting: 100, MaxAnswerOctets: 1 << 30, MaxWait: time.Minute, RecheckInterval: time.Minute,
		RequestTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, IdleTimeout: 5 * time.Second,
		Log: slog.New(slog.NewTextHandler(log, nil)),
	}
}

func token(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(testSecret))
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func validToken(t *testing.T) string {
	return token(t, jwt.MapClaims{"sub": "alice", "exp": time.Now().Add(time.Hour).Unix()})
}

const pullBody = `{"client_id":"c","client_generation":1,"schema":{"version":1,"hash":"` +
	`aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},"scope_set_version":1,"scopes":{},"limit":100}`

// post sends a pull with the given changes to the request.
func post(t *testing.T, handler http.Handler, body string, change func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/sync/pull", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+validToken(t))
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

func testServer(t *testing.T, db *fakeDatabase) (*Server, http.Handler, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	s := newServer(testConfig(&log), db)
	h, err := s.Public()
	if err != nil {
		t.Fatal(err)
	}
	return s, h, &log
}

func answers(status int, body string) *fakeDatabase {
	return &fakeDatabase{answer: func() (answer, error) { return answer{status: status, body: body}, nil }}
}

// Policies compare claims: of two tenants with neighbouring numbers, neither may become the other.
func TestForwardsLargeNumbersOfClaims(t *testing.T) {
	db := answers(200, `{}`)
	_, h, _ := testServer(t, db)
	signed := token(t, jwt.MapClaims{"sub": "alice", "exp": time.Now().Add(time.Hour).Unix(), "tenant": json.Number("9007199254740993")})
	w := post(t, h, pullBody, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+signed) })
	if w.Code != 200 || !strings.Contains(db.claims, `"tenant":9007199254740993`) {
		t.Errorf("answer %d, claims %s", w.Code, db.claims)
	}
}

func TestForwardsBodyAndAnswerUnchanged(t *testing.T) {
	db := answers(200, `{"a": 1.0 ,"b":9007199254740993}`)
	_, h, _ := testServer(t, db)
	spaced := strings.Replace(pullBody, `"limit":100`, `"limit" : 100 `, 1)
	w := post(t, h, spaced, nil)
	if w.Code != 200 || w.Body.String() != `{"a": 1.0 ,"b":9007199254740993}` {
		t.Errorf("answer %d %q", w.Code, w.Body.String())
	}
	if db.user != "alice" || db.body != spaced || db.route != "pull" {
		t.Errorf("database got user %q, route %q, body %q", db.user, db.route, db.body)
	}
	if got := w.Header().Get("X-Accel-Buffering"); got != "no" {
		t.Errorf("X-Accel-Buffering %q", got)
	}
}

func TestCredential(t *testing.T) {
	hour := time.Now().Add(time.Hour).Unix()
	cases := map[string]struct {
		header string
		status int
	}{
		"none":              {"", 401},
		"basic":             {"Basic YTpi", 401},
		"garbage":           {"Bearer x.y.z", 401},
		"no expiry":         {"Bearer " + token(t, jwt.MapClaims{"sub": "alice"}), 401},
		"expired":           {"Bearer " + token(t, jwt.MapClaims{"sub": "alice", "exp": time.Now().Add(-time.Minute).Unix()}), 401},
		"expired in leeway": {"Bearer " + token(t, jwt.MapClaims{"sub": "alice", "exp": time.Now().Unix()}), 200},
		"issued later":      {"Bearer " + token(t, jwt.MapClaims{"sub": "alice", "exp": hour, "iat": hour}), 401},
		"no subject":        {"Bearer " + token(t, jwt.MapClaims{"exp": hour}), 401},
		"empty subject":     {"Bearer " + token(t, jwt.MapClaims{"sub": "", "exp": hour}), 401},
		"number subject":    {"Bearer " + token(t, jwt.MapClaims{"sub": 7, "exp": hour}), 401},
		"long subject":      {"Bearer " + token(t, jwt.MapClaims{"sub": strings.Repeat("x", 256), "exp": hour}), 401},
		"longest subject":   {"Bearer " + token(t, jwt.MapClaims{"sub": strings.Repeat("x", 255), "exp": hour}), 200},
		"lower case scheme": {"bearer " + validToken(t), 200},
	}
	none, err := jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims{"sub": "alice", "exp": hour}).SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	other, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": "alice", "exp": hour}).SignedString([]byte("another secret of enough octets.."))
	if err != nil {
		t.Fatal(err)
	}
	cases["unsigned"] = struct {
		header string
		status int
	}{"Bearer " + none, 401}
	cases["other secret"] = struct {
		header string
		status int
	}{"Bearer " + other, 401}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, h, log := testServer(t, answers(200, "{}"))
			w := post(t, h, pullBody, func(r *http.Request) {
				r.Header.Del("Authorization")
				if c.header != "" {
					r.Header.Set("Authorization", c.header)
				}
			})
			if w.Code != c.status {
				t.Errorf("status %d, want %d", w.Code, c.status)
			}
			if c.status == 401 && !strings.Contains(w.Body.String(), `"code":"auth_required"`) {
				t.Errorf("body %s", w.Body)
			}
			if strings.Contains(log.String(), "alice") || len(c.header) > 20 && strings.Contains(log.String(), c.header[len(c.header)-10:]) {
				t.Errorf("the log shows a credential: %s", log)
			}
		})
	}
}

// What is signed is exact: no two subjects are one user, and every claim is one that the database can hold.
func TestClaimsAreExact(t *testing.T) {
	expires := fmt.Sprint(time.Now().Add(time.Hour).Unix())
	for payload, status := range map[string]int{
		`{"sub":"alice","exp":EXP,"x":{"y":[1e300,"é"]}}`: 200,
		`{"sub":"\ud800","exp":EXP}`:                      401,
		`{"sub":"al\udfffice","exp":EXP}`:                 401,
		"{\"sub\":\"\xff\",\"exp\":EXP}":                  401,
		`{"sub":"\ufdd0","exp":EXP}`:                      401,
		`{"sub":"bob","sub":"alice","exp":EXP}`:           401,
		`{"sub":"bob","s\u0075b":"alice","exp":EXP}`:      401,
		`{"sub":"alice","exp":EXP,"x":"a\u0000"}`:         401,
		`{"sub":"alice","exp":EXP,"x":1e999999}`:          401,
		`{"sub":"alice","exp":EXP,"x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`: 401,
		`{"sub":"alice","exp":EXP,"x":1e-1000}`:                                                       200,
		`{"sub":"alice","exp":EXP,"x":[{"y":1e-99999}]}`:                                              401, // no jsonb holds it
		`{"sub":"alice","exp":EXP,"x":0e-99999}`:                                                      401,
		`{"sub":"alice","exp":EXP,"x":1.` + strings.Repeat("0", 20000) + `1}`:                         401,
		`{"sub":"alice","exp":EXP,"x":1e-99999999999999999999}`:                                       401,
		`{"sub":"alice","exp":9007199254740991}`:                                                      200,
		`{"sub":"alice","exp":9007199254740993}`:                                                      401,
		`{"sub":"alice","exp":1e300}`:                                                                 401,
		`{"sub":"alice","exp":"EXP"}`:                                                                 401,
		`{"sub":"alice","exp":null}`:                                                                  401,
		`{"sub":"alice","exp":EXP,"nbf":1e300}`:                                                       401, // not yet, and never the past that it overflows to
		`{"sub":"alice","exp":EXP,"iat":1e300}`:                                                       401,
		`{"sub":"alice","exp":EXP,"nbf":-1e300}`:                                                      401,
		`{"sub":"alice","exp":EXP,"nbf":"1"}`:                                                         401,
		`{"sub":null,"exp":EXP}`:                                                                      401,
		`{"sub":["alice"],"exp":EXP}`:                                                                 401,
		`["alice"]`:                                                                                   401,
		"\ufeff" + `{"sub":"alice","exp":EXP}`:                                                        401,
		`{"sub":"alice","exp":EXP}{}`:                                                                 401,
	} {
		if got := statusOf(t, `{"alg":"HS256","typ":"JWT"}`, strings.Replace(payload, "EXP", expires, 1)); got != status {
			t.Errorf("%.60q: status %d, want %d", payload, got, status)
		}
	}
}

// statusOf is the answer to a pull with a token of exactly that header and payload, signed rightly.
func statusOf(t *testing.T, header, payload string) int {
	t.Helper()
	signing := jwt.New(jwt.SigningMethodHS256)
	text := signing.EncodeSegment([]byte(header)) + "." + signing.EncodeSegment([]byte(payload))
	signature, err := jwt.SigningMethodHS256.Sign(text, []byte(testSecret))
	if err != nil {
		t.Fatal(err)
	}
	_, h, _ := testServer(t, answers(200, "{}"))
	return post(t, h, pullBody, func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+text+"."+signing.EncodeSegment(signature))
	}).Code
}

// One algorithm, and nothing in the header that would have to be understood.
func TestHeaderOfACredential(t *testing.T) {
	payload := fmt.Sprintf(`{"sub":"alice","exp":%d}`, time.Now().Add(time.Hour).Unix())
	for header, status := range map[string]int{
		`{"alg":"HS256"}`:                       200,
		`{"alg":"HS256","typ":"at+jwt"}`:        200,
		`{"alg":"HS256","crit":["exp"]}`:        401,
		`{"alg":"HS256","crit":[],"b64":false}`: 401,
		`{"alg":"hs256"}`:                       401,
		`{"alg":"HS384"}`:                       401,
		`{"alg":"HS512"}`:                       401,
		`{"alg":"RS256"}`:                       401,
		`{"alg":"none"}`:                        401,
		`{"alg":["HS256"]}`:                     401,
		`{"alg":""}`:                            401,
		`{}`:                                    401,
		`[]`:                                    401,
		``:                                      401,
	} {
		if got := statusOf(t, header, payload); got != status {
			t.Errorf("%s: status %d, want %d", header, got, status)
		}
	}
}

// Issuer and audience are demanded where they are configured, and the user is the claim that is.
func TestConfiguredClaims(t *testing.T) {
	var log bytes.Buffer
	cfg := testConfig(&log)
	cfg.Issuer, cfg.Audience, cfg.SubjectClaim = "issuer", "audience", "uid"
	db := answers(200, "{}")
	h, err := newServer(cfg, db).Public()
	if err != nil {
		t.Fatal(err)
	}
	good := func() jwt.MapClaims {
		return jwt.MapClaims{"iss": "issuer", "aud": "audience", "uid": "alice", "sub": "bob", "exp": time.Now().Add(time.Hour).Unix()}
	}
	for name, c := range map[string]struct {
		change func(jwt.MapClaims)
		status int
	}{
		"all there":         {func(jwt.MapClaims) {}, 200},
		"one of several":    {func(c jwt.MapClaims) { c["aud"] = []string{"other", "audience"} }, 200},
		"no issuer":         {func(c jwt.MapClaims) { delete(c, "iss") }, 401},
		"another issuer":    {func(c jwt.MapClaims) { c["iss"] = "Issuer" }, 401},
		"no audience":       {func(c jwt.MapClaims) { delete(c, "aud") }, 401},
		"another audience":  {func(c jwt.MapClaims) { c["aud"] = "aud" }, 401},
		"audience a number": {func(c jwt.MapClaims) { c["aud"] = 5 }, 401},
		"no user":           {func(c jwt.MapClaims) { delete(c, "uid") }, 401},
		"not yet":           {func(c jwt.MapClaims) { c["nbf"] = time.Now().Add(time.Minute).Unix() }, 401},
	} {
		claims := good()
		c.change(claims)
		db.user = ""
		signed := token(t, claims)
		w := post(t, h, pullBody, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+signed) })
		if w.Code != c.status || (db.user == "alice") != (c.status == 200) {
			t.Errorf("%s: %d, user %q", name, w.Code, db.user)
		}
	}
}

// Clients come and go; that is no failure of the database.
func TestClientThatWentAwayIsNotLogged(t *testing.T) {
	for gone, logged := range map[bool]bool{true: false, false: true} {
		_, h, log := testServer(t, &fakeDatabase{answer: func() (answer, error) { return answer{}, errors.New("broken") }})
		post(t, h, pullBody, func(r *http.Request) {
			ctx, leave := context.WithCancel(r.Context())
			if gone {
				leave()
			}
			t.Cleanup(leave)
			*r = *r.WithContext(ctx)
		})
		if strings.Contains(log.String(), "database call failed") != logged {
			t.Errorf("gone %t: log %q", gone, log)
		}
	}
}

func TestIntakeRefuses(t *testing.T) {
	never := &fakeDatabase{answer: func() (answer, error) { return answer{}, errors.New("must not be called") }}
	_, h, _ := testServer(t, never)
	for name, c := range map[string]struct {
		body   string
		change func(*http.Request)
	}{
		"other content type": {pullBody, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }},
		"other charset":      {pullBody, func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=latin1") }},
		"no content type":    {pullBody, func(r *http.Request) { r.Header.Del("Content-Type") }},
		"two content types":  {pullBody, func(r *http.Request) { r.Header.Add("Content-Type", "text/plain") }},
		"two charsets":       {pullBody, func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=utf-8; charset=latin1") }},
		"compressed request": {pullBody, func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }},
		"compressed twice":   {pullBody, func(r *http.Request) { r.Header["Content-Encoding"] = []string{"identity", "gzip"} }},
		"empty":              {"", nil},
		"blank":              {" \n", nil},
		"byte order mark":    {"\ufeff" + pullBody, nil},
		"duplicate member":   {strings.Replace(pullBody, `"limit":100`, `"limit":100,"limit":100`, 1), nil},
		"unknown member":     {strings.Replace(pullBody, `"limit":100`, `"limit":100,"user_id":"bob"`, 1), nil},
		"limit zero":         {strings.Replace(pullBody, `"limit":100`, `"limit":0`, 1), nil},
		"limit 1001":         {strings.Replace(pullBody, `"limit":100`, `"limit":1001`, 1), nil},
		"fraction":           {strings.Replace(pullBody, `"limit":100`, `"limit":1.0`, 1), nil},
		"not UTF-8":          {strings.Replace(pullBody, `"c"`, "\"\xff\"", 1), nil},
		"trailing":           {pullBody + "{}", nil},
		"too large":          {pullBody + strings.Repeat(" ", 9<<20), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := post(t, h, c.body, c.change)
			if w.Code != 400 || !strings.Contains(w.Body.String(), `"code":"invalid_request"`) {
				t.Errorf("answer %d %s", w.Code, w.Body)
			}
			if never.body == c.body && c.body != "" {
				t.Error("it reached the database")
			}
		})
	}
}

// A body may have so many octets and not one more, however it is sent.
func TestLargestBody(t *testing.T) {
	sound := map[string]string{"/sync/pull": pullBody, "/sync/push": strings.Replace(strings.Split(pullBody, `,"scope_set`)[0], "{", `{"batch_id":"00000000-0000-4000-8000-000000000010",
		"mutations":[{"mutation_id":"00000000-0000-4000-8000-000000000001","table":"t","pk":{"f":"k"},"authored_schema":{"version":1,"hash":"`+strings.Repeat("a", 64)+`"},"op":"delete",
		"base_version":"v","client_version":"2024-02-29T12:34:56.123456Z"}],`, 1) + "}"}
	for _, ep := range endpoints {
		body, tested := sound[ep.path]
		if !tested {
			continue
		}
		for _, chunked := range []bool{false, true} {
			for more, status := range map[int]int{0: 200, 1: 400} {
				db := answers(200, "{}")
				_, h, _ := testServer(t, db)
				padded := body + strings.Repeat(" ", int(ep.maxBody)-len(body)+more)
				w := post(t, h, padded, func(r *http.Request) {
					r.URL.Path = ep.path
					if chunked {
						r.ContentLength = -1
					}
				})
				if w.Code != status || (db.body == padded) != (status == 200) {
					t.Errorf("%s, %d octets, chunked %t: %d %s", ep.path, len(padded), chunked, w.Code, w.Body)
				}
			}
		}
	}
}

// What says nothing else is taken.
func TestIntakeTakes(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"upper case":        func(r *http.Request) { r.Header.Set("Content-Type", "Application/JSON; Charset=UTF-8") },
		"quoted charset":    func(r *http.Request) { r.Header.Set("Content-Type", `application/json;charset="utf-8"`) },
		"other parameter":   func(r *http.Request) { r.Header.Set("Content-Type", "application/json; profile=x") },
		"identity encoding": func(r *http.Request) { r.Header.Set("Content-Encoding", "Identity") },
	} {
		_, h, _ := testServer(t, answers(200, "{}"))
		if w := post(t, h, " \n"+pullBody+"\t\r\n", change); w.Code != 200 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// Whose client it is, and versions, come before the shape: the database is asked for these alone, and for nothing that it could do.
func TestBindingAndVersionsComeBeforeTheShape(t *testing.T) {
	gates := `{"client_id":"c\ud83d\ude00","protocol_version":3,"app_version":"0.1.0"}`
	for name, c := range map[string]struct {
		body   string
		answer func() (answer, error)
		asked  string
		status int
	}{
		"another user's":     {`{"x":1,` + gates[1:], func() (answer, error) { return answer{status: 401, body: "{}"}, nil }, gates, 401},
		"too old":            {`{"x":1,` + gates[1:], func() (answer, error) { return answer{status: 426, body: "{}"}, nil }, gates, 426},
		"neither":            {`{"x":1,` + gates[1:], func() (answer, error) { return answer{status: 400, body: "{}"}, nil }, gates, 400},
		"never accepted":     {`{"x":1,` + gates[1:], func() (answer, error) { return answer{status: 200, body: "{}"}, nil }, gates, 400},
		"database is away":   {`{"x":1,` + gates[1:], func() (answer, error) { return answer{}, io.ErrUnexpectedEOF }, gates, 400},
		"no client":          {`{"x":1,"app_version":"1"}`, nil, "", 400},
		"client of no name":  {`{"client_id":5}`, nil, "", 400},
		"no object":          {`["client_id"]`, nil, "", 400},
		"malformed":          {`{"x":1,` + gates[1:] + "}", nil, "", 400},
		"two clients":        {`{"client_id":"d",` + gates[1:], nil, "", 400},
		"nested too deeply":  {`{"x":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + "," + gates[1:], nil, "", 400},
		"nested just enough": {`{"x":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + "," + gates[1:], func() (answer, error) { return answer{status: 401, body: "{}"}, nil }, gates, 401},
	} {
		db := &fakeDatabase{answer: c.answer}
		_, h, _ := testServer(t, db)
		if w := post(t, h, c.body, nil); w.Code != c.status || db.body != c.asked {
			t.Errorf("%s: status %d, the database was asked %q", name, w.Code, db.body)
		}
	}
}

func TestDatabaseErrors(t *testing.T) {
	for state, want := range map[string]int{
		"40001": 503, "40P01": 503, "53300": 503, "53100": 503, "55P03": 503, "57014": 503, "57P01": 503, "57P03": 503, "08006": 503,
		"SY013": 503, "SY006": 409, "XX000": 500, "42501": 500, "22023": 500, "25000": 500,
	} {
		t.Run(state, func(t *testing.T) {
			db := &fakeDatabase{answer: func() (answer, error) {
				return answer{}, &pgconn.PgError{Code: state, Message: "secret value", Detail: "secret detail"}
			}}
			_, h, log := testServer(t, db)
			w := post(t, h, pullBody, nil)
			if w.Code != want {
				t.Errorf("status %d, want %d", w.Code, want)
			}
			if (want == 503) != (w.Header().Get("Retry-After") != "") {
				t.Errorf("Retry-After %q with status %d", w.Header().Get("Retry-After"), w.Code)
			}
			if strings.Contains(w.Body.String()+log.String(), "secret") {
				t.Errorf("the server's text came through: %s %s", w.Body, log)
			}
		})
	}
}

func TestLostConnectionIsRetryable(t *testing.T) {
	db := &fakeDatabase{answer: func() (answer, error) { return answer{}, io.ErrUnexpectedEOF }}
	_, h, _ := testServer(t, db)
	if w := post(t, h, pullBody, nil); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("answer %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
}

func TestAdmission(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	db := &fakeDatabase{answer: func() (answer, error) { entered <- struct{}{}; <-leave; return answer{status: 200, body: "{}"}, nil }}
	_, h, _ := testServer(t, db)
	done := make(chan int, 2)
	for range 2 {
		go func() { done <- post(t, h, pullBody, nil).Code }()
		<-entered
	}
	if w := post(t, h, pullBody, nil); w.Code != 429 || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"code":"retry_later"`) {
		t.Errorf("answer over the limit: %d %s", w.Code, w.Body)
	}
	close(leave)
	for range 2 {
		if code := <-done; code != 200 {
			t.Errorf("admitted request answered %d", code)
		}
	}
}

func TestCompression(t *testing.T) {
	big := `{"x":"` + strings.Repeat("synchro ", 1000) + `"}`
	_, h, _ := testServer(t, answers(200, big))
	decode := map[string]func(io.Reader) (io.Reader, error){
		"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"zstd": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
	}
	for encoding, open := range decode {
		w := post(t, h, pullBody, func(r *http.Request) { r.Header.Set("Accept-Encoding", encoding) })
		if got := w.Header().Get("Content-Encoding"); got != encoding {
			t.Fatalf("content encoding %q, want %q", got, encoding)
		}
		r, err := open(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != big {
			t.Errorf("%s: body differs (%v)", encoding, err)
		}
	}
	for accept, want := range map[string]string{
		"": "", "identity": "", "br, deflate": "", "gzip;q=0": "", "gzip;q=0, zstd;q=0": "", "*;q=0": "", "gzip;q=0.000": "",
		"GZIP": "gzip", "gzip;q=0.5, zstd;q=0.1": "gzip", "zstd, gzip;q=0": "zstd", "br, zstd;q=0.1": "zstd",
	} {
		w := post(t, h, pullBody, func(r *http.Request) { r.Header.Set("Accept-Encoding", accept) })
		if got := w.Header().Get("Content-Encoding"); got != want || got == "" && w.Body.String() != big || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("who accepts %q gets %q", accept, got)
		}
	}
	// What would not fit a packet less is not worth it; an error's encoding is the one that it says.
	_, h, _ = testServer(t, answers(400, `{"error":{}}`))
	w := post(t, h, pullBody, func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip, zstd") })
	if w.Header().Get("Content-Encoding") != "" || w.Body.String() != `{"error":{}}` || w.Header().Get("Content-Length") != "12" {
		t.Errorf("a short error: %v %s", w.Header(), w.Body)
	}
}

func TestReady(t *testing.T) {
	db := answers(200, "{}")
	_, h, _ := testServer(t, db)
	get := func() (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ready", nil))
		return w.Code, w.Body.String()
	}
	if code, body := get(); code != 503 || body != `{"ready":false}` {
		t.Errorf("not ready: %d %s", code, body)
	}
	db.health.Store(true)
	deadline := time.Now().Add(5 * time.Second)
	for {
		code, body := get()
		if code == 200 && body == `{"ready":true}` {
			break
		}
		if code != 503 || time.Now().After(deadline) {
			t.Fatalf("ready: %d %s", code, body)
		}
	}
	if asked := db.asked.Load(); asked > 3 {
		t.Errorf("probes asked the database %d times", asked)
	}
}

func TestRoutesTakeTheirMethodOnly(t *testing.T) {
	_, h, _ := testServer(t, &fakeDatabase{})
	for target, allowed := range map[string]string{"/sync/connect": "POST", "/sync/push": "POST", "/sync/pull": "POST", "/sync/rebuild": "POST", "/ready": "GET, HEAD"} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"} {
			if strings.Contains(allowed, method) {
				continue
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
			if w.Code != 405 || w.Header().Get("Allow") != allowed {
				t.Errorf("%s %s: %d, allowed %q", method, target, w.Code, w.Header().Get("Allow"))
			}
		}
	}
	for _, target := range []string{"/", "/sync", "/sync/", "/sync/pull/", "/SYNC/pull", "/sync/schema", "/sync/tables", "/sync/events"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", target, nil))
		if w.Code != 404 {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
}

func TestPublicListenerHasNoOperatorRoutes(t *testing.T) {
	s, h, _ := testServer(t, answers(200, "{}"))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != 404 {
		t.Errorf("/metrics on the public listener: %d", w.Code)
	}
	post(t, h, pullBody, nil)
	w = httptest.NewRecorder()
	s.Operator().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != 200 || !strings.Contains(w.Body.String(), `synchro_requests_total{route="pull",status="200"} 1`) {
		t.Errorf("operator metrics: %d", w.Code)
	}
}

func TestGracefulStopFinishesRunningRequests(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	db := &fakeDatabase{answer: func() (answer, error) { close(entered); <-leave; return answer{status: 200, body: "{}"}, nil }}
	s, _, _ := testServer(t, db)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, listener, nil) }()
	got := make(chan int, 1)
	go func() {
		r, _ := http.NewRequest(http.MethodPost, "http://"+listener.Addr().String()+"/sync/pull", strings.NewReader(pullBody))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+validToken(t))
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			got <- 0
			return
		}
		resp.Body.Close()
		got <- resp.StatusCode
	}()
	<-entered
	stop()
	close(leave)
	if code := <-got; code != 200 {
		t.Errorf("running request answered %d", code)
	}
	if err := <-ended; err != nil {
		t.Errorf("stop: %v", err)
	}
}
