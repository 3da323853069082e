package shim

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

func TestKnownCredentialsAreJudgedByTheTime(t *testing.T) {
	start := time.Now()
	clock := start
	a := newAuthenticator(testConfig(t.Output()))
	a.now = func() time.Time { return clock }
	signed := token(t, jwt.MapClaims{"sub": "alice", "nbf": start.Unix(), "exp": start.Add(time.Hour).Unix()})
	r := httptest.NewRequest("POST", "/sync/pull", nil)
	r.Header.Set("Authorization", "Bearer "+signed)
	identify := func(after time.Duration) error {
		t.Helper()
		clock = start.Add(after)
		who, err := a.identify(r)
		if err == nil && (who.user != "alice" || string(who.claims) == "") {
			t.Errorf("another identity: %+v", who)
		}
		return err
	}
	if err := identify(0); err != nil {
		t.Fatal(err)
	}
	a.secret = []byte("another secret, which signed nothing so far")
	if err := identify(time.Minute); err != nil {
		t.Errorf("it was verified again: %v", err)
	}
	if identify(2*time.Hour) == nil {
		t.Error("an expired credential is good because it was once")
	}
	if identify(-time.Minute) == nil {
		t.Error("a credential is good before the moment at which it was found good")
	}
	r.Header.Set("Authorization", "Bearer "+signed[:len(signed)-1])
	if identify(0) == nil {
		t.Error("another token is taken for a known one")
	}
}

func TestKnownCredentialsAreFew(t *testing.T) {
	var c credentials
	now := time.Now()
	who := identity{user: "alice", expires: now.Add(time.Hour)}
	c.add("first", who, now)
	for i := range 3 * knownCredentials {
		c.add(fmt.Sprint(i), who, now)
		if _, ok := c.find("first", now); !ok {
			t.Fatal("one that is used was forgotten")
		}
	}
	if n := len(c.young) + len(c.older); n > 2*knownCredentials {
		t.Errorf("%d are remembered", n)
	}
	if _, ok := c.find("0", now); ok {
		t.Error("one that is not used is still remembered")
	}
	long := string(make([]byte, longCredential+1))
	c.add(long, who, now)
	if _, ok := c.find(long, now); ok {
		t.Error("a very long one was remembered")
	}
}
