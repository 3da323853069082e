package shim

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Config is everything that a shim needs to know. The zero value of a limit is refused by New: nothing is defaulted here.
type Config struct {
	DatabaseURL     string        // of a login that is a member of synchro_adapter
	PoolSize        int           // database connections at most
	Secret          []byte        // HS256 key, at least 32 octets
	SubjectClaim    string        // claim that names the user
	Issuer          string        // required "iss"; empty: not checked
	Audience        string        // required "aud"; empty: not checked
	Leeway          time.Duration // clock skew allowed for exp, nbf and iat
	MaxInFlight     int           // requests served at once; more are answered 429 retry_later
	MaxAnswerOctets int           // of large answers that clients have not read yet; more are answered 429 retry_later
	ListenURL       string        // like DatabaseURL, for the connection that listens for news, which needs a session of its own; empty: DatabaseURL
	MaxWaiting      int           // requests held at once because they prefer to wait; more are answered at once
	MaxWait         time.Duration // longest time that one is held
	RecheckInterval time.Duration // a held request asks the database again after this time without news
	RequestTimeout  time.Duration // of one database call
	ReadTimeout     time.Duration // of reading one request
	WriteTimeout    time.Duration // of writing one response
	IdleTimeout     time.Duration // of a kept-alive connection; longer than a load balancer's in front
	Log             *slog.Logger
}

func (c Config) validate() error {
	switch {
	case c.DatabaseURL == "":
		return errors.New("a database URL is required")
	case len(c.Secret) < 32:
		return fmt.Errorf("the token secret has %d octets, it needs at least 32", len(c.Secret))
	case c.SubjectClaim == "":
		return errors.New("the subject claim is empty")
	case c.PoolSize <= 0 || c.MaxInFlight <= 0 || c.MaxWaiting <= 0 || c.MaxAnswerOctets <= 0:
		return errors.New("pool size, requests in flight, requests waiting and octets of answers must be positive")
	case c.MaxWait < time.Second || c.MaxWait > time.Minute:
		return errors.New("the longest wait must be 1 to 60 seconds")
	case c.RecheckInterval <= 0:
		return errors.New("the time after which a held request looks again must be positive")
	case c.RequestTimeout <= 0 || c.ReadTimeout <= 0 || c.WriteTimeout <= 0 || c.IdleTimeout <= 0:
		return errors.New("timeouts must be positive")
	case c.Leeway < 0:
		return errors.New("the leeway must not be negative")
	}
	return nil
}
