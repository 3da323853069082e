package systest

import (
	"context"
	"net/http"
	"strconv"
	"testing"

	"github.com/google/uuid"

	"synchro/canonical"
	"synchro/client"
	"synchro/internal/pgtest"
	"synchro/protocol"
)

// checkpoints is the durable position of a client in all its scopes.
const checkpoints = `SELECT string_agg(concat_ws(' ', s.scope_id, s.ack_kind, s.ack_lsn, s.ack_event, s.ack_effect), ',' ORDER BY s.scope_id)
	FROM synchro.client_scope s JOIN synchro.client c USING (client_no) WHERE c.client_id = 'ada-1'`

// A push commits without the worker. Until its rows are materialized its client reads nothing, so that it never sees less
// than it wrote; others are not held up. Afterwards the rows arrive once.
func TestPushWhileCaptureStandsStill(t *testing.T) {
	t.Parallel()
	a := startApp(t, pgtest.Config{})
	a.exec(counted)
	ada, tablet := a.synced("ada", "ada-1"), a.synced("ada", "ada-2")
	a.sync(ada)
	thaw := a.freeze()
	before, sessions := a.value(checkpoints), a.value("SELECT count(*) FROM synchro.rebuild_session")

	pushed, err := ada.Push(context.Background(), []canonical.Mutation{
		mutation(ada, "insert", noteID(1), "", noteColumns{"owner": `"ada"`, "body": `"one"`}),
		mutation(ada, "insert", noteID(2), "", noteColumns{"owner": `"ada"`, "body": `"two"`}),
	}, false)
	if err != nil || len(pushed.Accepted) != 2 {
		t.Fatalf("push: %+v %v", pushed, err)
	}
	// The chain of one's own writes goes on from the versions that the outcomes told.
	if pushed, err = ada.Push(context.Background(), []canonical.Mutation{
		mutation(ada, "update", noteID(1), pushed.Accepted[0].Row.ServerVersion, noteColumns{"body": `"changed"`}),
		mutation(ada, "delete", noteID(2), pushed.Accepted[1].Row.ServerVersion, nil),
	}, false); err != nil || len(pushed.Accepted) != 2 {
		t.Fatalf("second push: %+v %v", pushed, err)
	}

	for route, body := range map[string][]byte{
		"pull":    pullBody(t, ada, 1000, map[string]protocol.ScopeCursor{"user:ada": {}}),
		"rebuild": rebuildBody(t, ada, "user:ada", uuid.NewString(), nil, 1000),
	} {
		r := a.post("ada", route, body)
		after, _ := strconv.Atoi(r.header.Get("Retry-After"))
		if r.status != http.StatusServiceUnavailable || r.code() != "capture_pending" || after < 1 {
			t.Errorf("%s: %d %s, Retry-After %q", route, r.status, r.code(), r.header.Get("Retry-After"))
		}
	}
	if after := a.value(checkpoints); after != before {
		t.Errorf("checkpoints moved from %q to %q", before, after)
	}
	a.want("SELECT count(*) FROM synchro.rebuild_session", sessions)
	if pulled, err := tablet.Pull(context.Background(), 0); err != nil || !pulled.Empty() {
		t.Errorf("pull of another device: %+v %v", pulled, err)
	}

	// The core dies with the work undone; the next one does it.
	core := awaitWorking(t, a.Cluster)
	if err := a.Kill(core.CorePID); err != nil {
		t.Fatal(err)
	}
	thaw()
	awaitOther(t, a.Cluster, core)
	a.materialized()
	for _, d := range []*client.Session{ada, tablet} {
		pulled, err := d.Pull(context.Background(), 0)
		if err != nil || pulled.Upserts != 1 {
			t.Errorf("pull of %s: %+v %v", d.ClientID, pulled, err)
		}
		if pulled, err = d.Pull(context.Background(), 0); err != nil || !pulled.Empty() {
			t.Errorf("second pull of %s: %+v %v", d.ClientID, pulled, err)
		}
	}
	a.want("SELECT count(*) FROM app.written", "4")
	pgtest.Poll(t, settle, "removal of the materialized versions", func() bool { return a.value("SELECT count(*) FROM synchro.push_fence") == "0" })
}
