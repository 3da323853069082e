package shim

import "sync"

// minShare is what a user may have in flight even where little is in flight altogether.
const minShare = 2

// admission bounds the requests that are served at once: all of them, and each user's share of them. A slot is held while a body is
// read and an answer is written, at the client's speed; without a share one slow or hostile client would be served alone.
type admission struct {
	limit, share int

	mu    sync.Mutex
	total int
	users map[string]int
}

func newAdmission(limit int) *admission {
	return &admission{limit: limit, share: max(minShare, limit/4), users: map[string]int{}}
}

// enter takes a slot, which leave gives back. It reports false when there is none for this user.
func (a *admission) enter(user string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.total >= a.limit || a.users[user] >= a.share {
		return false
	}
	a.total++
	a.users[user]++
	return true
}

func (a *admission) leave(user string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.total--
	if a.users[user]--; a.users[user] == 0 {
		delete(a.users, user)
	}
}
