package systest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"synchro/canonical"
	"synchro/internal/pgtest"
)

// words makes a foreign key that a batch can break, settled as late as it can be.
const words = `
CREATE TABLE app.word (word text PRIMARY KEY);
INSERT INTO app.word VALUES ('counter'), ('new');
ALTER TABLE app.note ADD CONSTRAINT note_word FOREIGN KEY (body) REFERENCES app.word DEFERRABLE INITIALLY DEFERRED;`

// violations are columns that break a rule of app.note, and what the outcome says of it.
var violations = []struct {
	columns noteColumns
	message string
}{
	{noteColumns{"n": "-1"}, "a check constraint is violated: note_n_check"},
	{noteColumns{"body": "null"}, "a required value is missing: body"},
	{noteColumns{"body": `"nothing"`}, "a foreign key constraint is violated: note_word"},
	{noteColumns{"n": `"one"`}, "a value is not a canonical value of its field: n"},
	{noteColumns{"n": "2147483648"}, "a value is not a canonical value of its field: n"},
}

// While others write the same rows, a mutation that breaks a constraint, or whose value is none of its column, fails alone: what
// stands beside it in its batch is applied, and of the broken one nothing stays.
func TestViolationsFailAlone(t *testing.T) {
	t.Parallel()
	const devices, steps, direct = 2, 12, 30
	a := startApp(t, pgtest.Config{})
	a.exec(words)
	a.exec("INSERT INTO app.note (id, owner, body) VALUES ($1, 'ada', 'counter')", noteID(0))
	var wg sync.WaitGroup
	var applied, inserted, broken atomic.Int64
	var last *counters
	for i := range devices {
		d := a.synced("ada", fmt.Sprintf("ada-%d", i))
		c := newCounters(d, 1)
		last = c
		wg.Go(func() {
			for range steps {
				if err := c.stepAmongViolations(&applied, &inserted, &broken); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writer := a.Connect(t, "", "")
	wg.Go(func() {
		for range direct {
			if _, err := writer.Exec(context.Background(), "UPDATE app.note SET n = n + 1 WHERE id = $1", noteID(0)); err != nil {
				t.Errorf("direct write: %v", err)
			}
		}
	})
	wg.Wait()
	// alone at last: the first step learns what the row is now, if it must, the second is applied
	alone := applied.Load()
	for range 2 {
		if err := last.stepAmongViolations(&applied, &inserted, &broken); err != nil {
			t.Error(err)
		}
	}
	if applied.Load() == alone || broken.Load() == 0 {
		t.Errorf("%d steps applied, %d updates broke a rule", applied.Load(), broken.Load())
	}
	if inserted.Load() != devices*steps+2 {
		t.Errorf("%d rows were inserted", inserted.Load())
	}
	a.want("SELECT n FROM app.note WHERE id = '"+noteID(0)+"'", fmt.Sprint(applied.Load()+direct))
	a.want("SELECT count(*) FROM app.note WHERE body = 'new' AND n = 0", fmt.Sprint(inserted.Load()))
	a.want("SELECT count(*) FROM app.note", fmt.Sprint(inserted.Load()+1))
	a.wantRows(a.synced("ada", "ada-last"), "user:ada", int(inserted.Load())+1)
}

// stepAmongViolations counts the row up and inserts one, in a batch where both stand among an insert and an update for each violation.
func (c *counters) stepAmongViolations(applied, inserted, broken *atomic.Int64) error {
	base := c.version[0]
	if base == "" {
		base = "unknown"
	}
	var batch []canonical.Mutation
	for _, v := range violations {
		columns := noteColumns{"owner": `"ada"`, "body": `"new"`}
		for name, value := range v.columns {
			columns[name] = value
		}
		batch = append(batch, mutation(c.device, "insert", uuid.NewString(), "", columns), mutation(c.device, "update", noteID(0), base, v.columns))
	}
	batch = append(batch, mutation(c.device, "update", noteID(0), base, noteColumns{"n": fmt.Sprint(c.n[0] + 1)}),
		mutation(c.device, "insert", uuid.NewString(), "", noteColumns{"owner": `"ada"`, "body": `"new"`}))
	for i := range batch {
		batch[i].ID = uuid.NewString()
	}
	answer, err := c.device.Push(context.Background(), batch, false)
	if err != nil {
		return err
	}
	place := map[string]int{}
	for i, m := range batch {
		place[m.ID] = i
	}
	for _, o := range answer.Accepted {
		switch place[o.MutationID] - 2*len(violations) {
		case 0:
			applied.Add(1)
		case 1:
			inserted.Add(1)
			continue
		default:
			return fmt.Errorf("a mutation that breaks a rule was applied: %s", violations[place[o.MutationID]/2].message)
		}
		if err := c.learn(o); err != nil {
			return err
		}
	}
	for _, o := range answer.Rejected {
		i := place[o.MutationID]
		if o.Code == "version_conflict" && batch[i].Op == "update" && !strings.Contains(violationOf(i), "canonical") {
			if err := c.learn(o); err != nil { // somebody else was faster
				return err
			}
			continue
		}
		if o.Code != "validation_failed" || o.Message != violationOf(i) {
			return fmt.Errorf("mutation %d: %s: %s", i, o.Code, o.Message)
		}
		if batch[i].Op == "update" && !strings.Contains(o.Message, "canonical") {
			broken.Add(1)
		}
	}
	return nil
}

// violationOf is what is to be said of the mutation at that place of such a batch; empty: nothing.
func violationOf(i int) string {
	if i/2 < len(violations) {
		return violations[i/2].message
	}
	return ""
}
