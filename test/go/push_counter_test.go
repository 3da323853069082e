package systest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"synchro/canonical"
	"synchro/client"
	"synchro/internal/pgtest"
	"synchro/protocol"
)

// Devices count up the same rows by compare and swap while the application counts them up directly. Whatever the interleaving, each
// accepted push and each direct write is one step: nothing is lost and nothing is counted twice.
func TestCountersLoseNoStep(t *testing.T) {
	t.Parallel()
	const rows, devices, steps, direct = 3, 3, 25, 40
	a := startApp(t, pgtest.Config{})
	for i := range rows {
		a.exec("INSERT INTO app.note (id, owner, body) VALUES ($1, 'ada', 'counter')", noteID(i))
	}
	var wg sync.WaitGroup
	var applied, conflicts atomic.Int64
	for i := range devices {
		d := a.synced("ada", fmt.Sprintf("ada-%d", i))
		wg.Go(func() {
			counter := newCounters(d, rows)
			for range steps {
				if err := counter.step(&applied, &conflicts); err != nil {
					t.Errorf("push: %v", err)
					return
				}
			}
		})
	}
	writer := a.Connect(t, "", "")
	wg.Go(func() {
		for i := range direct {
			if _, err := writer.Exec(context.Background(), "UPDATE app.note SET n = n + 1 WHERE id = $1", noteID(i%rows)); err != nil {
				t.Errorf("direct write: %v", err)
			}
		}
	})
	wg.Wait()
	a.want("SELECT sum(n) FROM app.note", fmt.Sprint(applied.Load()+direct))
	if applied.Load() == 0 || conflicts.Load() == 0 {
		t.Errorf("%d steps applied, %d conflicts: nothing raced", applied.Load(), conflicts.Load())
	}
	a.wantRows(a.synced("ada", "ada-last"), "user:ada", rows)
}

// counters is what one device believes of every row: it counts from there.
type counters struct {
	device  *client.Session
	version []string
	n       []int
}

func newCounters(d *client.Session, rows int) *counters {
	return &counters{device: d, version: make([]string, rows), n: make([]int, rows)}
}

// step counts every row up in one batch and learns what each row is now, from the accepted ones as from the conflicts.
func (c *counters) step(applied, conflicts *atomic.Int64) error {
	var batch []canonical.Mutation
	for i := range c.version {
		base := c.version[i]
		if base == "" {
			base = "unknown"
		}
		batch = append(batch, mutation(c.device, "update", noteID(i), base, noteColumns{"n": fmt.Sprint(c.n[i] + 1)}))
	}
	answer, err := c.device.Push(context.Background(), batch, false)
	if err != nil {
		return err
	}
	applied.Add(int64(len(answer.Accepted)))
	for _, list := range [][]protocol.Outcome{answer.Accepted, answer.Rejected} {
		for _, o := range list {
			if err := c.learn(o); err != nil {
				return err
			}
			if o.Code == "version_conflict" {
				conflicts.Add(1)
			} else if o.Code != "" {
				return fmt.Errorf("outcome %s", o.Code)
			}
		}
	}
	return nil
}

func (c *counters) learn(o protocol.Outcome) error {
	var id string
	if err := json.Unmarshal(o.Row.Key, &id); err != nil {
		return err
	}
	var columns map[string]json.RawMessage
	if err := json.Unmarshal(o.Row.Columns, &columns); err != nil {
		return err
	}
	for i := range c.version {
		if noteID(i) != id {
			continue
		}
		c.version[i] = o.Row.ServerVersion
		for _, table := range c.device.Manifest().Tables {
			for _, f := range table.Fields {
				if table.Name == "note" && f.Name == "n" {
					return json.Unmarshal(columns[f.FieldID], &c.n[i])
				}
			}
		}
	}
	return fmt.Errorf("an outcome of another row")
}
