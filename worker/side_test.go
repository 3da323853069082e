package worker

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pglogrepl"
)

func numbers(from, to int64) map[int64]struct{} {
	set := map[int64]struct{}{}
	for n := from; n <= to; n++ {
		set[n] = struct{}{}
	}
	return set
}

func TestAnnouncementsAreGathered(t *testing.T) {
	h := newHerald()
	if got := h.take(); got != nil {
		t.Errorf("nothing has happened: %q", got)
	}
	h.add(1, numbers(3, 4))
	h.add(2, map[int64]struct{}{0: {}, -7: {}, 4: {}})
	if got := h.take(); !slices.Equal(got, []string{"0/2;-7,0,3,4"}) {
		t.Errorf("%q", got)
	}
	h.add(3, nil)
	if got := h.take(); !slices.Equal(got, []string{"0/3;"}) {
		t.Errorf("a transaction without scopes: %q", got)
	}
	if got := h.take(); got != nil {
		t.Errorf("said twice: %q", got)
	}
}

// A notification takes less than 8000 octets; what doesn't fit goes into more of them, and nothing is lost.
func TestManyNumbersTakeSeveralNotifications(t *testing.T) {
	h := newHerald()
	from := int64(1_000_000_000_000)
	h.add(pglogrepl.LSN(1<<63+12345), numbers(from, from+notifyScopes-1))
	said := map[int64]struct{}{}
	for _, payload := range h.take() {
		if len(payload) >= 8000 {
			t.Errorf("a payload of %d octets", len(payload))
		}
		_, list, _ := strings.Cut(payload, ";")
		for text := range strings.SplitSeq(list, ",") {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			said[n] = struct{}{}
		}
	}
	if len(said) != notifyScopes {
		t.Errorf("%d of %d numbers were said", len(said), notifyScopes)
	}
}

func TestTooManyNumbersConcernEverybody(t *testing.T) {
	h := newHerald()
	h.add(1, numbers(1, notifyScopes))
	h.add(2, map[int64]struct{}{0: {}})
	h.add(3, numbers(5, 6))
	if got := h.take(); !slices.Equal(got, []string{"0/3;*"}) {
		t.Errorf("%d payloads", len(got))
	}
	h.everything(4)
	h.add(5, numbers(1, 1))
	if got := h.take(); !slices.Equal(got, []string{"0/5;*"}) {
		t.Errorf("%q", got)
	}
	h.add(6, numbers(1, 1))
	if got := h.take(); !slices.Equal(got, []string{"0/6;1"}) {
		t.Errorf("afterwards: %q", got)
	}
}
