package shim

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"synchro/internal/ijson"
)

// maxUserID is the longest user id in octets.
const maxUserID = 255

// identity is who a verified credential speaks for.
type identity struct {
	user    string
	claims  json.RawMessage // the token's verified payload, for policies
	expires time.Time       // the moment from which the credential is refused
}

// authenticator verifies bearer tokens. The user comes from nowhere else.
type authenticator struct {
	parser  *jwt.Parser
	secret  []byte
	subject string
	leeway  time.Duration
	now     func() time.Time
	known   credentials
}

func newAuthenticator(cfg Config) *authenticator {
	a := &authenticator{secret: cfg.Secret, subject: cfg.SubjectClaim, leeway: cfg.Leeway, now: time.Now}
	options := []jwt.ParserOption{
		jwt.WithTimeFunc(func() time.Time { return a.now() }),
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(cfg.Leeway), jwt.WithStrictDecoding(),
		jwt.WithJSONNumber(), // policies see claims: a large number must not become its neighbour
	}
	if cfg.Issuer != "" {
		options = append(options, jwt.WithIssuer(cfg.Issuer))
	}
	if cfg.Audience != "" {
		options = append(options, jwt.WithAudience(cfg.Audience))
	}
	a.parser = jwt.NewParser(options...)
	return a
}

var (
	errNoCredential = errors.New("no bearer credential")
	errNoSubject    = errors.New("credential without a usable subject")
	errClaim        = errors.New("credential with a claim that cannot be used")
	errCritical     = errors.New("credential with an extension that must be understood")
)

// identify returns the caller of a request; any error means 401, its text is for the log and carries no part of the token.
func (a *authenticator) identify(r *http.Request) (identity, error) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return identity{}, errNoCredential
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return identity{}, errNoCredential
	}
	now := a.now()
	if who, ok := a.known.find(token, now); ok {
		return who, nil
	}
	who, err := a.verify(token)
	if err == nil {
		a.known.add(token, who, now)
	}
	return who, err
}

// verify checks a token.
func (a *authenticator) verify(token string) (identity, error) {
	claims := jwt.MapClaims{}
	if _, err := a.parser.ParseWithClaims(token, claims, a.key); err != nil {
		return identity{}, reason(err)
	}
	if err := a.checkPayload(token, claims); err != nil {
		return identity{}, err
	}
	user, ok := claims[a.subject].(string)
	if !ok || user == "" || len(user) > maxUserID || !utf8.ValidString(user) || strings.ContainsRune(user, 0) {
		return identity{}, errNoSubject
	}
	expires, err := claims.GetExpirationTime()
	if err != nil || expires == nil {
		return identity{}, jwt.ErrTokenRequiredClaimMissing
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return identity{}, errNoSubject
	}
	return identity{user: user, claims: payload, expires: expires.Add(a.leeway)}, nil
}

// key is the key of a token. One that says that its reader must understand more than RFC 7515 has is refused: we do not.
func (a *authenticator) key(token *jwt.Token) (any, error) {
	if _, critical := token.Header["crit"]; critical {
		return nil, errCritical
	}
	return a.secret, nil
}

// checkPayload looks at what was signed as strictly as at a body: the library's reader would replace text that is no Unicode, so that two
// subjects became one user, and take the last of two members; it overflows on times that no clock reaches, and what overflows is in the
// past; and the database must be able to hold every claim.
func (a *authenticator) checkPayload(token string, claims jwt.MapClaims) error {
	_, rest, _ := strings.Cut(token, ".")
	segment, _, _ := strings.Cut(rest, ".")
	payload, err := a.parser.DecodeSegment(segment)
	if err != nil {
		return jwt.ErrTokenMalformed
	}
	for _, name := range []string{"exp", "nbf", "iat"} {
		if number, ok := claims[name].(json.Number); ok {
			if seconds, err := number.Float64(); err != nil || seconds < 0 || seconds > ijson.MaxSafe {
				return errClaim
			}
		}
	}
	if !storable(map[string]any(claims)) {
		return errClaim
	}
	return ijson.Validate(payload, ijson.DefaultDepth)
}

// maxDigits bounds a number among the claims: its digits, and its zeros after the point. jsonb holds more, but not all that JSON can write.
const maxDigits = 1000

// storable says whether jsonb can hold all numbers of a value.
func storable(value any) bool {
	switch value := value.(type) {
	case json.Number:
		_, exponent, scaled := strings.Cut(strings.ToLower(string(value)), "e")
		power, err := strconv.Atoi(exponent)
		return len(value) <= maxDigits && (!scaled || err == nil && power >= -maxDigits)
	case map[string]any:
		for _, member := range value {
			if !storable(member) {
				return false
			}
		}
	case []any:
		for _, element := range value {
			if !storable(element) {
				return false
			}
		}
	}
	return true
}

// reason reduces a parser's error to its kind: the library's text may quote the token.
func reason(err error) error {
	for _, kind := range []error{
		jwt.ErrTokenExpired, jwt.ErrTokenNotValidYet, jwt.ErrTokenUsedBeforeIssued, jwt.ErrTokenSignatureInvalid,
		jwt.ErrTokenInvalidIssuer, jwt.ErrTokenInvalidAudience, jwt.ErrTokenRequiredClaimMissing, errCritical, jwt.ErrTokenMalformed,
	} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return jwt.ErrTokenUnverifiable
}
