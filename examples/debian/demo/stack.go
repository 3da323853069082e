package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"synchro/internal/pgtest"
)

// stack is the demo's own server and shim; the development stack of "make up" is left alone.
type stack struct {
	cluster *pgtest.Cluster
	serve   *pgtest.Serve
	secret  string
}

func startStack(ctx context.Context) (*stack, error) {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	cluster, err := pgtest.New(ctx, pgtest.Config{Fsync: true})
	if err != nil {
		return nil, err
	}
	s := &stack{cluster: cluster, secret: hex.EncodeToString(key)}
	if err := s.start(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *stack) start(ctx context.Context) (err error) {
	if err := s.cluster.Start(ctx); err != nil {
		return err
	}
	if err := s.cluster.CreateExtension(ctx); err != nil {
		return fmt.Errorf("create extension: %w", err)
	}
	if s.serve, err = s.cluster.Serve(ctx, pgtest.ServeConfig{JWTSecret: s.secret}); err != nil {
		return err
	}
	return s.cluster.WaitReady(ctx, s.serve, limit)
}

// stop ends and removes everything.
func (s *stack) stop() {
	if s.serve != nil {
		if err := s.serve.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "demo:", err)
		}
	}
	if err := s.cluster.Destroy(); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
}

// token is a credential as the application's login would issue it.
func (s *stack) token(user string) (string, error) {
	now := time.Now()
	claims := jwt.MapClaims{"sub": user, "iat": now.Unix(), "exp": now.Add(10 * time.Minute).Unix()}
	return jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(s.secret))
}
