package main

import (
	"context"
	"net/http"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"synchro/client"
	"synchro/internal/pgtest"
)

const secret = "a secret of the bench, long enough for HS256"

func newClient(serve *pgtest.Serve, user string) *client.Client {
	token := func(context.Context) (string, error) {
		claims := jwt.MapClaims{"sub": user, "exp": time.Now().Add(time.Hour).Unix()}
		return jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(secret))
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 16, DisableCompression: true}
	return &client.Client{URL: serve.URL, Token: token, HTTP: &http.Client{Transport: transport},
		Retry: client.Retry{Attempts: 20, Base: 50 * time.Millisecond, Max: time.Second}}
}

// newSession makes a fresh client of the shim.
func newSession(serve *pgtest.Serve, user, id string) *client.Session {
	return client.NewSession(newClient(serve, user), id, "bench", "1.0.0")
}

func (s *stage) serve(ctx context.Context) (*pgtest.Serve, error) {
	return s.Serve(ctx, pgtest.ServeConfig{JWTSecret: secret})
}

func servedStage(ctx context.Context) (*stage, *pgtest.Serve, error) {
	s, err := newStage(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := s.table(ctx, "item", true); err != nil {
		s.close()
		return nil, nil, err
	}
	serve, err := s.serve(ctx)
	if err != nil {
		s.close()
		return nil, nil, err
	}
	return s, serve, nil
}
