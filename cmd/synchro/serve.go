package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"synchro/shim"
)

type serveCommand struct {
	DatabaseURL     string        `required:"" env:"SYNCHRO_DATABASE_URL" placeholder:"URL" help:"Connection URL of a login that is a member of synchro_adapter."`
	Listen          string        `default:"127.0.0.1:8080" env:"SYNCHRO_LISTEN" help:"Address of the public listener."`
	OperatorListen  string        `env:"SYNCHRO_OPERATOR_LISTEN" placeholder:"ADDRESS" help:"Address of the operator listener (metrics); never expose it to clients. Not served when empty."`
	JWTSecret       string        `env:"SYNCHRO_JWT_SECRET" placeholder:"TEXT" help:"HS256 secret: the octets of the text, at least 32. Prefer the environment or --jwt-secret-file, arguments are visible to everybody."`
	JWTSecretFile   string        `env:"SYNCHRO_JWT_SECRET_FILE" type:"existingfile" placeholder:"FILE" help:"File with the HS256 secret; one newline at its end does not count."`
	SubjectClaim    string        `default:"sub" env:"SYNCHRO_SUBJECT_CLAIM" help:"Claim that names the user."`
	Issuer          string        `env:"SYNCHRO_ISSUER" help:"Required issuer of tokens; any when empty."`
	Audience        string        `env:"SYNCHRO_AUDIENCE" help:"Required audience of tokens; any when empty."`
	Leeway          time.Duration `default:"2s" env:"SYNCHRO_LEEWAY" help:"Clock skew allowed for exp, nbf and iat."`
	PoolSize        int           `default:"16" env:"SYNCHRO_POOL_SIZE" help:"Database connections at most."`
	MaxInFlight     int           `default:"256" env:"SYNCHRO_MAX_IN_FLIGHT" help:"Requests served at once, a quarter of them for one user; more are answered 429."`
	MaxAnswerMemory int           `default:"512" env:"SYNCHRO_MAX_ANSWER_MEMORY" placeholder:"MIB" help:"Mebioctets of large answers that clients have not read yet, a quarter of them for one user; more are answered 429."`
	ListenURL       string        `env:"SYNCHRO_LISTEN_URL" placeholder:"URL" help:"Connection URL for the one connection that listens for news, where --database-url leads through a pooler of transactions. --database-url when empty."`
	MaxWaiting      int           `default:"20000" env:"SYNCHRO_MAX_WAITING" help:"Requests held at once because their clients prefer to wait for news, a quarter of them for one user; more are answered at once."`
	MaxWait         time.Duration `default:"60s" env:"SYNCHRO_MAX_WAIT" help:"Longest time that a request is held, 1s to 60s. The idle timeout of a proxy in front must be longer."`
	RecheckInterval time.Duration `default:"60s" env:"SYNCHRO_RECHECK_INTERVAL" help:"A held request asks the database again after this time without news, in case some was lost."`
	RequestTimeout  time.Duration `default:"30s" env:"SYNCHRO_REQUEST_TIMEOUT" help:"Time for one database call."`
	ReadTimeout     time.Duration `default:"15s" env:"SYNCHRO_READ_TIMEOUT" help:"Time to read one request."`
	WriteTimeout    time.Duration `default:"30s" env:"SYNCHRO_WRITE_TIMEOUT" help:"Time to write one response."`
	IdleTimeout     time.Duration `default:"120s" env:"SYNCHRO_IDLE_TIMEOUT" help:"Time a kept-alive connection may idle; longer than that of a load balancer in front."`
}

// ballastSize is what nothing is ever written to, so that it takes no memory. The collector runs when the heap has doubled; without it
// that would be every few dozen requests, because so little is alive between them.
const ballastSize = 16 << 20

func (c *serveCommand) Run(ctx context.Context) error {
	secret, err := c.secret()
	if err != nil {
		return err
	}
	ballast := make([]byte, ballastSize)
	defer runtime.KeepAlive(ballast)
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	server, err := shim.New(ctx, shim.Config{
		DatabaseURL: c.DatabaseURL, PoolSize: c.PoolSize, Secret: secret, SubjectClaim: c.SubjectClaim,
		Issuer: c.Issuer, Audience: c.Audience, Leeway: c.Leeway, MaxInFlight: c.MaxInFlight,
		MaxAnswerOctets: c.MaxAnswerMemory << 20, ListenURL: c.ListenURL, MaxWaiting: c.MaxWaiting, MaxWait: c.MaxWait, RecheckInterval: c.RecheckInterval, RequestTimeout: c.RequestTimeout,
		ReadTimeout: c.ReadTimeout, WriteTimeout: c.WriteTimeout, IdleTimeout: c.IdleTimeout, Log: log,
	})
	if err != nil {
		return err
	}
	defer server.Close()
	public, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	var operator net.Listener
	if c.OperatorListen != "" {
		if operator, err = net.Listen("tcp", c.OperatorListen); err != nil {
			return err
		}
	}
	log.Info("serving", "listen", public.Addr().String())
	err = server.Run(ctx, public, operator)
	log.Info("stopped")
	return err
}

// secret takes exactly one of the two sources.
func (c *serveCommand) secret() ([]byte, error) {
	switch {
	case c.JWTSecret != "" && c.JWTSecretFile != "":
		return nil, errors.New("give the token secret once: by value or by file")
	case c.JWTSecretFile != "":
		data, err := os.ReadFile(c.JWTSecretFile)
		return []byte(strings.TrimSuffix(string(data), "\n")), err
	case c.JWTSecret != "":
		return []byte(c.JWTSecret), nil
	}
	return nil, errors.New("a token secret is required: SYNCHRO_JWT_SECRET or --jwt-secret-file")
}
