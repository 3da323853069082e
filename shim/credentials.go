package shim

import (
	"crypto/sha256"
	"sync"
	"time"
)

// knownCredentials is how many verified credentials a generation holds, and longCredential the octets above which one is not remembered.
const (
	knownCredentials = 2048
	longCredential   = 4096
)

// credentials remembers what was verified: a client presents the same token with every request. Of a token only its hash is kept. The
// secret and the rules do not change while the shim runs, and what depends on the time is judged again each time: a credential is good
// from the moment it was found good until it expires. There are two generations; when the younger one is full, the older one is forgotten.
type credentials struct {
	mu           sync.Mutex
	young, older map[[sha256.Size]byte]credential
}

type credential struct {
	who  identity
	from time.Time
}

func (c *credentials) find(token string, now time.Time) (identity, bool) {
	if len(token) > longCredential {
		return identity{}, false
	}
	key := sha256.Sum256([]byte(token))
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.young[key]
	if !ok {
		if known, ok = c.older[key]; !ok {
			return identity{}, false
		}
		c.keep(key, known)
	}
	return known.who, !now.Before(known.from) && now.Before(known.who.expires)
}

func (c *credentials) add(token string, who identity, now time.Time) {
	if len(token) > longCredential {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(sha256.Sum256([]byte(token)), credential{who, now.Round(0)}) // by the clock on the wall, which the token's times mean
}

func (c *credentials) keep(key [sha256.Size]byte, known credential) {
	if c.young == nil || len(c.young) >= knownCredentials {
		c.older, c.young = c.young, map[[sha256.Size]byte]credential{}
	}
	c.young[key] = known
}
