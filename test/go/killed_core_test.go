package systest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"synchro/internal/pgtest"
	"synchro/worker"
)

// steppingCore names the variable that makes this program a core of a process of its own: it says at which point it is, and waits there
// to be told to go on. So it, or the server beneath it, can be killed between any two of its steps.
const steppingCore = "SYNCHRO_STEPPING_CORE"

type steppingConfig struct {
	Conninfo, Database, Slot, Publication string
	Limits                                worker.Limits
}

func stepCore() int {
	var cfg steppingConfig
	if err := json.Unmarshal([]byte(os.Getenv(steppingCore)), &cfg); err != nil {
		return 2
	}
	in := bufio.NewReader(os.Stdin)
	err := worker.Run(context.Background(), worker.Config{
		Conninfo: cfg.Conninfo, Database: cfg.Database, Slot: cfg.Slot, Publication: cfg.Publication, Limits: func() worker.Limits { return cfg.Limits },
		Fail: func(point string) error {
			fmt.Println(point)
			if _, err := in.ReadString('\n'); err != nil {
				os.Exit(3) // whoever watched is gone
			}
			return nil
		},
	}, func(worker.State) {})
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// life is one life of a stepping core.
type life struct {
	cmd    *exec.Cmd
	points chan string // closed when it has ended
	in     io.Writer
}

func (c *core) live() *life {
	c.t.Helper()
	text, err := json.Marshal(steppingConfig{c.cfg.Conninfo, c.cfg.Database, c.cfg.Slot, c.cfg.Publication, c.limits})
	if err != nil {
		c.t.Fatal(err)
	}
	l := &life{cmd: exec.Command(os.Args[0]), points: make(chan string)}
	l.cmd.Env = append(os.Environ(), steppingCore+"="+string(text))
	out, err := l.cmd.StdoutPipe()
	if err == nil {
		l.in, err = l.cmd.StdinPipe()
	}
	if err == nil {
		err = l.cmd.Start()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			l.points <- lines.Text()
		}
		_ = l.cmd.Wait()
		close(l.points)
	}()
	return l
}

// end kills it.
func (l *life) end() {
	_ = l.cmd.Process.Kill()
	for range l.points {
	}
}

// killedEverywhere lets cores live, one after the other, until the newest generation is active and everything is materialized. kill is asked at every point
// with the number of times that a core was there since anything was committed; when it says so, the core that is there dies by SIGKILL, the server first when it
// ends that too. It returns how often a core died at which point.
func (c *core) killedEverywhere(kill func(point string, before, died int) bool, server bool, meanwhile func()) map[string]int {
	c.t.Helper()
	died, before := map[string]int{}, map[string]int{}
	marker := c.value("synchro._emit_marker()")
	for end := time.Now().Add(4 * settle); time.Now().Before(end); {
		l := c.live()
		for alive := true; alive; {
			select {
			case point, ok := <-l.points:
				if alive = ok; !ok {
					time.Sleep(20 * time.Millisecond) // the slot is in use, or the server is on its way
					continue
				}
				at := point + c.value(`SELECT concat(p.commit_lsn, ' ', (SELECT string_agg(b::text, ' ') FROM synchro.backfill b)) FROM synchro.progress p`)
				if !kill(point, before[at], died[point]) {
					fmt.Fprintln(l.in)
					continue
				}
				before[at]++
				died[point]++
				if point == "staged" || point == "committed" {
					meanwhile()
				}
				if server {
					if err := c.Restart(c.t.Context(), pgtest.Immediate); err != nil {
						c.t.Fatal(err)
					}
					c.db = c.Connect(c.t, "", "")
				}
				l.end()
				alive = false
			case <-time.After(20 * time.Millisecond):
				if c.value(fmt.Sprintf(`SELECT p.registry_generation = synchro._newest_generation() AND p.seen_lsn >= '%s' AND NOT EXISTS (SELECT FROM synchro.backfill b WHERE b.state <> 'rejected')
					FROM synchro.progress p`, marker)) == "true" {
					l.end()
					return died
				}
			}
		}
	}
	c.t.Fatalf("the core has not come to an end; it died at %v", died)
	return nil
}

// Whatever dies between two steps, of activations with rows that were read anew, of staged generations of several relations, of dependency work: in the end
// all is as if it was made from the source at once.
func TestKilledBetweenTwoSteps(t *testing.T) {
	points := []string{"apply", "arrived", "committed", "evaluated", "impacted", "installed", "stage", "staged", "stored", "switch"}
	for name, server := range map[string]bool{"core": false, "server": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCore(t, pgtest.Config{Fsync: server, Settings: []string{"wal_writer_delay = '2s'"}})
			c.exec(rules)
			c.exec(secondTable)
			c.exec(teams)
			c.exec(secondRules)
			c.exec(teamTable)
			c.exec("BEGIN; " + ruleChange("app.led_scopes", "") + "; " + fmt.Sprintf(dependOnTeams, 1000) + secondRegistration + "; COMMIT")
			c.start()
			c.streaming()
			c.exec("INSERT INTO app.item (id, owner, shared) SELECT g, 'u' || g % 4, g % 3 = 0 FROM generate_series(1, 12) g")
			c.rule = "app.led_scopes"
			c.exec(levels)
			c.equal()
			c.released()
			c.limits.BackfillBatchSize = 6
			rng := rand.New(rand.NewPCG(34, 4))
			writes := 0
			write := func() {
				if writes++; writes > 9 {
					return
				}
				sql := fmt.Sprintf(`UPDATE app.team SET owner = 'u%d' WHERE id = %d; UPDATE app.item SET level = 'w%d' WHERE id = %d; UPDATE app.item SET owner = 'u%d' WHERE id = %d;
					INSERT INTO app.second VALUES (%[3]d, 'u1')`, rng.IntN(4), 1+rng.IntN(6), writes+10, 1+rng.IntN(12), rng.IntN(4), 1+rng.IntN(12))
				c.exec("BEGIN; " + sql + "; COMMIT")
			}
			c.exec(ruleChange("app.led_scopes", "")) // reads app.item anew
			write()
			c.exec("ALTER TABLE app.item ADD more int DEFAULT 5")
			c.exec("BEGIN; " + ruleChange("app.led_scopes", "") + "; " + secondChange("second_moved") + "; " + teamSynced + "; COMMIT")
			write()
			c.exec("BEGIN; " + ruleChange("app.other_scopes", "") + `; SELECT synchro.synchro_unregister_membership_dependency('app.team', 'app.item'); ` + secondChange("second_scopes") + "; COMMIT")
			write()
			died := c.killedEverywhere(func(_ string, before, died int) bool { return before == 0 && (!server || died < 2) }, server, write)
			if got := slices.Sorted(maps.Keys(died)); !slices.Equal(got, points) {
				t.Errorf("died at %s, want %s", strings.Join(got, " "), strings.Join(points, " "))
			}
			t.Logf("died %v", died)
			c.start()
			c.newest()
			c.rule = "app.other_scopes"
			c.equal()
			c.levelsEqual()
			c.same("the other column", fmt.Sprintf("SELECT c1, %s FROM synchro_data.r_%s", c.column("more"), c.value("SELECT rel_no FROM synchro.relation WHERE physical_relation = 'item'")), "SELECT id, more FROM app.item")
			c.teamEntries(true)
			c.secondIn("user")
			c.poll("end of the stages", stages, "0")
			c.want("SELECT count(*) FROM synchro.quarantine", "0")
		})
	}
}
