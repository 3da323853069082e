package shim

import (
	"slices"
	"testing"
)

func woken(w *waiter) bool {
	select {
	case <-w.woken:
		return true
	default:
		return false
	}
}

func TestAnnouncementWakesWhoWaitsForIt(t *testing.T) {
	n := newNews()
	mine, other, both := n.wait(0, []int64{1}), n.wait(0, []int64{2}), n.wait(0, []int64{1, 2})
	n.announce(parseAnnouncement("0/1;1,7"))
	if !woken(mine) || woken(other) || !woken(both) {
		t.Error("an announcement of 1 must wake exactly those that wait for 1")
	}
	n.announce(parseAnnouncement("0/2;"))
	if woken(mine) || woken(other) {
		t.Error("an announcement of nothing woke somebody")
	}
	n.announce(parseAnnouncement("0/3;*"))
	if !woken(mine) || !woken(other) {
		t.Error("an announcement of everything did not wake everybody")
	}
}

// The database was asked before, and the request waits after the announcement.
func TestAnnouncementBeforeTheWaitIsNotLost(t *testing.T) {
	n := newNews()
	n.announce(announcement{5})
	mark := n.mark()
	if woken(n.wait(mark, []int64{5})) {
		t.Error("woken by what was announced before the mark")
	}
	n.announce(announcement{4, 5})
	n.announce(announcement{6})
	if !woken(n.wait(mark, []int64{5})) || woken(n.wait(mark, []int64{7})) || woken(n.wait(n.mark(), []int64{5})) {
		t.Error("announcements between mark and wait count, no others")
	}
	for range remembered {
		n.announce(announcement{6})
	}
	if !woken(n.wait(mark, []int64{7})) {
		t.Error("announcements that are forgotten must count as meant")
	}
	if woken(n.wait(mark+2, []int64{7})) || !woken(n.wait(mark+2, []int64{6})) {
		t.Error("as many as are remembered still count exactly")
	}
}

func TestWaitersAreForgotten(t *testing.T) {
	n := newNews()
	a, b := n.wait(0, []int64{1, 2}), n.wait(0, []int64{2})
	n.leave(a)
	if len(n.by) != 1 || len(n.waiters) != 1 {
		t.Errorf("%d numbers, %d waiters left", len(n.by), len(n.waiters))
	}
	n.leave(b)
	if len(n.by) != 0 || len(n.waiters) != 0 {
		t.Error("something is left of waiters that went")
	}
}

func TestAnnouncementsThatAreNotUnderstoodConcernEverybody(t *testing.T) {
	for payload, want := range map[string]announcement{
		"0/1;3,1,-2": {-2, 1, 3}, "0/1;": {}, "0/1;*": nil, "": nil, "garbage": nil, "0/1;1,x": nil, "0/1;1,": nil,
	} {
		if got := parseAnnouncement(payload); !slices.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%q: %v, want %v", payload, got, want)
		}
	}
}
