package shim

import "testing"

func TestOneUserCannotTakeEverySlot(t *testing.T) {
	a := newAdmission(8)
	taken := 0
	for a.enter("mallory") {
		taken++
	}
	if taken != 2 || !a.enter("alice") {
		t.Errorf("one user took %d of 8 slots", taken)
	}
}

func TestSlotsComeBack(t *testing.T) {
	a := newAdmission(2)
	if !a.enter("alice") || !a.enter("bob") || a.enter("carol") {
		t.Fatal("there are two slots")
	}
	a.leave("alice")
	if !a.enter("carol") || len(a.users) != 2 {
		t.Errorf("a slot did not come back, or a user was not forgotten: %v", a.users)
	}
}
