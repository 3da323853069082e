package rescue

import (
	"errors"
	"strings"
	"testing"
)

func TestPanicBecomesError(t *testing.T) {
	got := make(chan error)
	Go(func() error { panic("secret value") }, func(err error) { got <- err })
	err := <-got
	var p *PanicError
	if !errors.As(err, &p) || p.Type != "string" {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(err.Error(), "secret") {
		t.Fatalf("the value leaks: %v", err)
	}
}

func TestErrorPassesThrough(t *testing.T) {
	want := errors.New("plain")
	if err := Call(func() error { return want }); err != want {
		t.Fatalf("got %v", err)
	}
}
