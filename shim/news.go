package shim

import (
	"slices"
	"strconv"
	"strings"
	"sync"
)

// newsChannel is where the worker announces what it has materialized.
const newsChannel = "synchro_progress"

// remembered is how many announcements are kept for requests that are between their answer and their wait.
const remembered = 1024

// news knows which requests wait for what, and wakes them by what the worker announces. Announcements are hints: one too many
// costs a question to the database, a lost one is made up for by the next look.
type news struct {
	mu      sync.Mutex
	count   uint64                   // announcements so far
	recent  [remembered]announcement // the last ones, by count
	waiters map[*waiter]struct{}
	by      map[int64]map[*waiter]struct{}
}

// announcement lists numbers of wait_on, sorted; nil means everybody.
type announcement []int64

// waiter is one held request.
type waiter struct {
	on    []int64
	woken chan struct{} // has room for one
}

func newNews() *news {
	return &news{waiters: map[*waiter]struct{}{}, by: map[int64]map[*waiter]struct{}{}}
}

// mark is a point in the sequence of announcements: to be taken before the database is asked.
func (n *news) mark() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.count
}

// wait registers a request whose answer was asked for after the mark. It is woken at once when what it waits for was announced since.
func (n *news) wait(mark uint64, on []int64) *waiter {
	w := &waiter{on: on, woken: make(chan struct{}, 1)}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiters[w] = struct{}{}
	for _, number := range on {
		if n.by[number] == nil {
			n.by[number] = map[*waiter]struct{}{}
		}
		n.by[number][w] = struct{}{}
	}
	if n.count-mark > remembered {
		w.wake()
	}
	for i := max(mark, n.count-min(n.count, remembered)); i < n.count; i++ {
		if n.recent[i%remembered].concerns(on) {
			w.wake()
		}
	}
	return w
}

// leave forgets a waiter.
func (n *news) leave(w *waiter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.waiters, w)
	for _, number := range w.on {
		if delete(n.by[number], w); len(n.by[number]) == 0 {
			delete(n.by, number)
		}
	}
}

// announce wakes whoever waits for one of the numbers, with nil everybody.
func (n *news) announce(a announcement) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.recent[n.count%remembered] = a
	n.count++
	if a == nil {
		for w := range n.waiters {
			w.wake()
		}
	}
	for _, number := range a {
		for w := range n.by[number] {
			w.wake()
		}
	}
}

// everybody lists the waiters of now.
func (n *news) everybody() []*waiter {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make([]*waiter, 0, len(n.waiters))
	for w := range n.waiters {
		all = append(all, w)
	}
	return all
}

func (w *waiter) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

func (a announcement) concerns(on []int64) bool {
	if a == nil {
		return true
	}
	return slices.ContainsFunc(on, func(number int64) bool {
		_, found := slices.BinarySearch(a, number)
		return found
	})
}

// parseAnnouncement reads a payload, "position;numbers". What is not understood concerns everybody.
func parseAnnouncement(payload string) announcement {
	_, list, found := strings.Cut(payload, ";")
	if !found {
		return nil
	}
	a := announcement{}
	if list == "" {
		return a
	}
	for text := range strings.SplitSeq(list, ",") {
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil
		}
		a = append(a, number)
	}
	slices.Sort(a)
	return a
}
