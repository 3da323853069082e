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

// A page must be served however large it is, and slow readers must not add up.
func TestWhatIsTooLargeIsServedAlone(t *testing.T) {
	a := newAdmission(100)
	if !a.take("alice", 1000) {
		t.Fatal("nothing else is in hand")
	}
	if a.take("alice", 1) || a.take("bob", 1) {
		t.Error("taken beside what is larger than everything")
	}
	a.give("alice", 1000)
	if !a.take("alice", 20) || a.take("alice", 6) || !a.take("alice", 5) || !a.take("bob", 60) || a.take("carol", 20) {
		t.Error("a share is 25, everything is 100")
	}
	a.give("alice", 25)
	a.give("bob", 60)
	if a.total != 0 || len(a.users) != 0 {
		t.Errorf("%d are left, of %v", a.total, a.users)
	}
}
