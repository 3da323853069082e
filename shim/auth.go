package shim

import (
	"encoding/json"
	"errors"
	"net/http"
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
}

func newAuthenticator(cfg Config) *authenticator {
	options := []jwt.ParserOption{
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
	return &authenticator{parser: jwt.NewParser(options...), secret: cfg.Secret, subject: cfg.SubjectClaim, leeway: cfg.Leeway}
}

var (
	errNoCredential = errors.New("no bearer credential")
	errNoSubject    = errors.New("credential without a usable subject")
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
	claims := jwt.MapClaims{}
	if _, err := a.parser.ParseWithClaims(token, claims, func(*jwt.Token) (any, error) { return a.secret, nil }); err != nil {
		return identity{}, reason(err)
	}
	if err := a.checkPayload(token); err != nil {
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

// checkPayload looks at what was signed as strictly as at a body: the library's reader would replace text that is no Unicode, so that two
// subjects became one user, and take the last of two members; and the database must be able to hold every claim.
func (a *authenticator) checkPayload(token string) error {
	_, rest, _ := strings.Cut(token, ".")
	segment, _, _ := strings.Cut(rest, ".")
	payload, err := a.parser.DecodeSegment(segment)
	if err != nil {
		return jwt.ErrTokenMalformed
	}
	return ijson.Validate(payload, ijson.DefaultDepth)
}

// reason reduces a parser's error to its kind: the library's text may quote the token.
func reason(err error) error {
	for _, kind := range []error{
		jwt.ErrTokenExpired, jwt.ErrTokenNotValidYet, jwt.ErrTokenUsedBeforeIssued, jwt.ErrTokenSignatureInvalid,
		jwt.ErrTokenInvalidIssuer, jwt.ErrTokenInvalidAudience, jwt.ErrTokenRequiredClaimMissing, jwt.ErrTokenMalformed,
	} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return jwt.ErrTokenUnverifiable
}
