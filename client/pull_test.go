package client

import (
	"errors"
	"sync/atomic"
	"testing"
)

func TestEachScopeIsChecked(t *testing.T) {
	scopes := make([]*scope, 40)
	for i := range scopes {
		scopes[i] = newScope("s", nil)
	}
	for n := range scopes {
		var count atomic.Int64
		if err := each(scopes[:n], func(*scope) error { count.Add(1); return nil }); err != nil || int(count.Load()) != n {
			t.Errorf("%d scopes: %d were seen, error %v", n, count.Load(), err)
		}
		if err := each(scopes, func(s *scope) error {
			if s == scopes[n] {
				return ErrIntegrity
			}
			return nil
		}); !errors.Is(err, ErrIntegrity) {
			t.Errorf("scope %d: got %v", n, err)
		}
	}
}
