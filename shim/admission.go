package shim

import "sync"

// minShare is what a user may have in flight even where little is in flight altogether.
const minShare = 2

// admission bounds what is in hand at once: all of it, and each user's share. It counts requests that are served, requests that are
// held, and octets of large answers; each is there for as long as a client reads or writes, at the client's speed. Without a share
// one slow or hostile client would be served alone.
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
func (a *admission) enter(user string) bool { return a.take(user, 1) }
func (a *admission) leave(user string)      { a.give(user, 1) }

// take is enter for n slots at once. Who has none gets them even if they are more than a share, or than there are: what is too large
// to be served beside others is served alone.
func (a *admission) take(user string, n int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if (a.total > 0 && a.total+n > a.limit) || (a.users[user] > 0 && a.users[user]+n > a.share) {
		return false
	}
	a.total += n
	a.users[user] += n
	return true
}

func (a *admission) give(user string, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.total -= n
	if a.users[user] -= n; a.users[user] == 0 {
		delete(a.users, user)
	}
}
