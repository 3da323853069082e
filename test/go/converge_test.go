package systest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"synchro/canonical"
	"synchro/client"
	"synchro/internal/pgtest"
)

// turmoil is what goes on while servers come and go.
type turmoil struct {
	a     *app
	stop  chan struct{}
	wg    sync.WaitGroup
	mu    sync.Mutex
	notes []string // what went wrong
	sent  int      // notes that were pushed and changed
	read  int      // times that a device has read what it wrote
}

func (u *turmoil) wrong(format string, args ...any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.notes = append(u.notes, fmt.Sprintf(format, args...))
}

// loop runs work until the end.
func (u *turmoil) loop(work func(i int) bool) {
	u.wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-u.stop:
				return
			default:
				if !work(i) {
					return
				}
			}
		}
	})
}

// write changes the table as an application does; what a restart interrupts is not repeated.
func (u *turmoil) write() {
	var conn *pgx.Conn
	u.loop(func(i int) bool {
		ctx, cancel := context.WithTimeout(context.Background(), settle)
		defer cancel()
		if conn == nil || conn.IsClosed() {
			var err error
			if conn, err = u.a.Conn(ctx, "", ""); err != nil {
				conn = nil
				time.Sleep(20 * time.Millisecond) // the server is on its way
				return true
			}
		}
		id := fmt.Sprintf("md5('w%d')::uuid", rand.N(200))
		owner := []string{"ada", "bob"}[rand.N(2)]
		_, _ = conn.Exec(ctx, []string{
			fmt.Sprintf("INSERT INTO app.note (id, owner, body) VALUES (%s, '%s', 'w') ON CONFLICT (id) DO UPDATE SET n = note.n + 1, owner = '%[2]s'", id, owner),
			fmt.Sprintf("UPDATE app.note SET n = n + 1 WHERE id = %s", id),
			fmt.Sprintf("DELETE FROM app.note WHERE id = %s", id),
			fmt.Sprintf("UPDATE app.note SET deleted_at = CASE WHEN deleted_at IS NULL THEN now() END WHERE id = %s", id),
			fmt.Sprintf("BEGIN; UPDATE app.note SET owner = '%s' WHERE id = %s; SAVEPOINT s; DELETE FROM app.note; ROLLBACK TO s; COMMIT", owner, id),
		}[i%5])
		return true
	})
	u.a.t.Cleanup(func() {
		if conn != nil {
			_ = conn.Close(context.Background())
		}
	})
}

// device pushes a note and changes it, over and over, and syncs after each when it reads too. Every push is executed exactly
// once, whatever is lost.
func (u *turmoil) device(d *client.Session, reads bool) {
	u.loop(func(int) bool {
		ctx := context.Background()
		user := d.ClientID[:3]
		id := uuid.NewString()
		answer, err := d.Push(ctx, []canonical.Mutation{mutation(d, "insert", id, "", noteColumns{"owner": `"` + user + `"`, "body": `"pushed"`})}, false)
		if err != nil || len(answer.Accepted) != 1 {
			u.wrong("push of %s: %+v %v", d.ClientID, answer, err)
			return false
		}
		answer, err = d.Push(ctx, []canonical.Mutation{mutation(d, "update", id, answer.Accepted[0].Row.ServerVersion, noteColumns{"n": "1"})}, false)
		if err != nil || len(answer.Accepted) != 1 {
			u.wrong("second push of %s: %+v %v", d.ClientID, answer, err)
			return false
		}
		if reads {
			if err := d.Sync(ctx); err != nil {
				u.wrong("sync of %s: %v", d.ClientID, err)
				return false
			}
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		u.sent++
		if reads {
			u.read++
		}
		return true
	})
}

// newcomer copies everything again and again, in small pages.
func (u *turmoil) newcomer(user string) {
	u.loop(func(i int) bool {
		d := u.a.device(user, fmt.Sprintf("%s-new-%d", user, i))
		d.PageLimit = 7
		if err := d.Sync(context.Background()); err != nil {
			u.wrong("first sync of %s: %v", d.ClientID, err)
			return false
		}
		return true
	})
}

// Writers, pushing devices and new devices go on while every part is restarted and killed. In the end all devices hold
// what the table says, nothing was executed twice, and nothing was lost.
func TestEverythingConvergesAfterCrashes(t *testing.T) {
	t.Parallel()
	for _, host := range hosts {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			a := startApp(t, pgtest.Config{Settings: []string{"synchro.core_host = " + host}})
			u := &turmoil{a: a, stop: make(chan struct{})}
			ada, bob, quick := a.synced("ada", "ada-1"), a.synced("bob", "bob-1"), a.synced("ada", "ada-2")
			u.write()
			u.device(ada, true)
			u.device(bob, true)
			u.device(quick, false)
			u.newcomer("ada")
			for _, fault := range []func(){
				a.restartShim,
				func() { a.killCore() },
				func() { a.restart(pgtest.Fast) },
				func() { a.killCore() },
				func() { a.killWorker() },
				func() { a.restart(pgtest.Immediate) },
				a.restartShim,
				func() { a.restart(pgtest.Immediate) },
			} {
				u.await()
				fault()
			}
			u.await()
			close(u.stop)
			u.wg.Wait()
			for _, note := range u.notes {
				t.Error(note)
			}
			a.awaitReady()
			a.materialized()
			for _, d := range []*client.Session{ada, bob, quick} {
				a.sync(d)
				user := d.ClientID[:3]
				got := fmt.Sprint(d.Rows("user:" + user))
				if want := a.value("SELECT count(*) FROM app.note WHERE owner = $1 AND deleted_at IS NULL", user); got != want {
					t.Errorf("%s holds %s rows, the table has %s", d.ClientID, got, want)
				}
			}
			a.want("SELECT count(*) FROM app.note WHERE body = 'pushed' AND n = 1", fmt.Sprint(u.sent))
			a.sameAsSource()
			t.Logf("%d notes were pushed", u.sent)
		})
	}
}

// await waits until devices have read new writes: the parts work together again.
func (u *turmoil) await() {
	u.a.t.Helper()
	u.mu.Lock()
	from := u.read
	u.mu.Unlock()
	pgtest.Poll(u.a.t, 2*settle, "devices that read what they wrote", func() bool {
		u.mu.Lock()
		defer u.mu.Unlock()
		return u.read >= from+2 || len(u.notes) > 0
	})
}

func (a *app) killCore() {
	a.t.Helper()
	before := awaitWorking(a.t, a.Cluster)
	pid := before.CorePID
	if pid == before.PID { // in the worker itself: that is a crash of the server
		a.killWorker()
		return
	}
	if err := a.Kill(pid); err != nil {
		a.t.Fatal(err)
	}
	awaitOther(a.t, a.Cluster, before)
}

// killWorker kills a process of the server, which then restarts all of them.
func (a *app) killWorker() {
	a.t.Helper()
	before := awaitWorking(a.t, a.Cluster)
	if err := a.Kill(before.PID); err != nil {
		a.t.Fatal(err)
	}
	awaitStatus(a.t, a.Cluster, "another worker", func(st workerStatus) bool { return st.State == "streaming" && st.PID != before.PID })
	a.db = a.Connect(a.t, "", "")
	a.awaitReady()
}

// sameAsSource compares what is materialized of app.note with the table.
func (a *app) sameAsSource() {
	a.t.Helper()
	rel := a.value("SELECT rel_no FROM synchro.relation WHERE physical_relation = 'note'")
	projected := "SELECT c1, c2, c3, c4, c5, row_xmin::text FROM synchro_data.r_" + rel
	original := "SELECT id, owner, body, n, deleted_at, xmin::text FROM app.note"
	entries := fmt.Sprintf(`SELECT s.scope_id COLLATE "C", synchro._key_text('string', e.key), e.state::text FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no)
		WHERE e.rel_no = %s AND e.state <> 'x'`, rel)
	members := `SELECT ('user:' || owner) COLLATE "C", id::text, CASE WHEN deleted_at IS NULL THEN 'l' ELSE 's' END FROM app.note`
	for _, pair := range [][2]string{{projected, original}, {original, projected}, {entries, members}, {members, entries}} {
		a.want(fmt.Sprintf("SELECT count(*) FROM ((%s) EXCEPT ALL (%s)) d", pair[0], pair[1]), "0")
	}
}
