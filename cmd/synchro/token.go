package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

type tokenCommand struct {
	User      string        `required:"" help:"User id that the token speaks for (claim sub)."`
	JWTSecret string        `required:"" env:"SYNCHRO_JWT_SECRET" placeholder:"TEXT" help:"HS256 secret of the server."`
	Lifetime  time.Duration `default:"1h" help:"How long the token is valid."`
	Claims    string        `placeholder:"JSON" help:"Further claims, a JSON object."`
}

func (c *tokenCommand) Run() error {
	token, err := signToken(c.User, c.JWTSecret, c.Lifetime, c.Claims)
	if err != nil {
		return err
	}
	fmt.Println(token)
	return nil
}

// signToken makes an HS256 token; extra is a JSON object of further claims, or empty.
func signToken(user, secret string, lifetime time.Duration, extra string) (string, error) {
	if user == "" || lifetime <= 0 {
		return "", errors.New("a token needs a user and a positive lifetime")
	}
	claims := jwt.MapClaims{}
	if extra != "" {
		if err := json.Unmarshal([]byte(extra), &claims); err != nil {
			return "", errors.New("the claims are not a JSON object")
		}
	}
	now := time.Now()
	maps.Copy(claims, jwt.MapClaims{"sub": user, "iat": now.Unix(), "exp": now.Add(lifetime).Unix()})
	return jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(secret))
}
