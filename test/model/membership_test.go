package model

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"synchro/internal/pgtest"
)

// schemas numbers the random schemas of this process.
var schemas atomic.Int64

// membership is a run: a random schema with random rules under random transactions. After some of them, what is materialized must
// be what the very rules say of the source tables.
type membership struct {
	*stack
	t       *rapid.T
	schema  *schema
	told    *finding
	sent    int // transactions
	changed int // rules
}

func (m *membership) must(err error) {
	m.t.Helper()
	if err != nil {
		m.fail("%v", err)
	}
}

func (m *membership) fail(format string, args ...any) {
	m.t.Helper()
	m.told.reason = fmt.Sprintf(format, args...)
	m.t.Fatal(m.told.reason)
}

// Random schemas of up to four related tables, under random transactions.
func TestRandomMembership(t *testing.T) {
	s := startEmpty(t, "synchro.batch_max_rows = 100")
	transactions, changes := 0, 0
	seeds(t, 25*time.Second, func(rt *rapid.T) {
		m := &membership{stack: s, t: rt, schema: drawSchema(rt, fmt.Sprintf("m%d", schemas.Add(1))), told: &finding{}}
		m.play(forgetsNothing, true)
		transactions += m.sent
		changes += m.changed
	})
	t.Logf("%d transactions, %d changed rules", transactions, changes)
}

// play registers the schema with rows in it, and keeps it busy.
func (m *membership) play(mistake wrong, faults bool) {
	s := m.schema
	m.must(m.exec(s.create()))
	for range 10 {
		m.must(m.exec(m.transaction()))
	}
	m.must(m.exec("BEGIN;" + s.register(mistake) + "COMMIT"))
	m.compare("the registration")
	for round := range 20 + uniform(m.t, "rounds", 40) {
		if faults && chance(m.t, "kill", 60) {
			core, _, err := m.core()
			m.must(err)
			m.must(m.Kill(core))
		}
		if faults && chance(m.t, "change", 12) {
			m.changeRule()
		}
		if chance(m.t, "at once", 6) {
			m.atOnce()
		}
		for range 1 + uniform(m.t, "transactions", 8) {
			m.must(m.exec(m.transaction()))
		}
		m.compare(fmt.Sprintf("round %d", round))
	}
	m.must(m.exec("BEGIN;" + s.unregister() + "COMMIT"))
	m.materialized("the end")
	m.must(m.exec("DROP SCHEMA " + s.name + " CASCADE"))
}

// changeRule registers another rule for a table, and perhaps other columns of tables, and others to be synced, in one transaction or several, and
// writes while all that is on its way into force.
func (m *membership) changeRule() {
	m.changed++
	var synced []*table
	for _, tab := range m.schema.tables {
		if tab.synced {
			synced = append(synced, tab)
		}
	}
	steps := []string{m.schema.change(m.t, one(m.t, "changed", synced...))}
	if chance(m.t, "widen", 2) {
		steps = append(steps, m.schema.widen(one(m.t, "widened", m.schema.tables...)))
	}
	if tab := one(m.t, "turned", m.schema.tables...); chance(m.t, "turn", 2) && (!tab.synced || len(synced) > 1) {
		steps = append(steps, m.schema.turn(m.t, tab))
	}
	end := ";"
	if chance(m.t, "apart", 2) {
		end = "; COMMIT; BEGIN;"
	}
	m.must(m.exec("BEGIN;" + strings.Join(steps, end) + "COMMIT"))
	for range uniform(m.t, "meanwhile", 6) {
		m.must(m.exec(m.transaction()))
	}
	if chance(m.t, "compact", 2) { // with it go the rules before the one that is still in force
		m.must(m.exec("SELECT synchro.synchro_compact()"))
	}
	m.must(pgtest.WaitFor(m.t.Context(), settle, "changed rule in force", func() (done bool, err error) {
		var rejected bool
		err = m.db.QueryRow(m.t.Context(), `SELECT p.registry_generation = (SELECT max(g.generation) FROM synchro.registry_generation g) AND NOT EXISTS (SELECT FROM synchro.backfill),
			EXISTS (SELECT FROM synchro.backfill b WHERE b.state = 'rejected') FROM synchro.progress p`).Scan(&done, &rejected)
		if rejected {
			m.fail("a changed rule was rejected: %s", m.Health(m.t.Context()))
		}
		return done, err
	}))
}

// atOnce commits two transactions in an order that nobody knows.
func (m *membership) atOnce() {
	texts := []string{m.transaction(), m.transaction()}
	errs := make([]error, len(texts))
	var wg sync.WaitGroup
	for i, text := range texts {
		wg.Go(func() {
			conn, err := m.Conn(context.Background(), "", "")
			if err == nil {
				_, err = conn.Exec(context.Background(), text)
				_ = conn.Close(context.Background())
			}
			errs[i] = err
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil && !strings.Contains(err.Error(), "40P01") {
			m.must(err)
		}
	}
}

// transaction draws one.
func (m *membership) transaction() string {
	t, s := m.t, m.schema
	number := func(label string, n int) string { return fmt.Sprint(1 + uniform(t, label, n)) }
	orNull := func(label, value string) string {
		if chance(t, label+" null", 5) {
			return "NULL"
		}
		return value
	}
	m.sent++
	m.told.steps++
	var b strings.Builder
	b.WriteString("BEGIN;")
	statement := func() {
		i := uniform(t, "table", len(s.tables))
		p := s.tables[i].parent
		name := fmt.Sprintf("%s.t%d", s.name, i)
		id := s.key(i, number("id", 12))
		owner, grp := orNull("owner", number("owner", 5)), orNull("grp", number("grp", 4))
		parent := orNull("parent", s.key(p, number("parent", 12)))
		flag := one(t, "flag", "true", "true", "false")
		where := one(t, "where", "id = "+id, "id = "+id, "id = "+id, "grp IS NOT DISTINCT FROM "+grp, "parent IS NOT DISTINCT FROM "+parent, "owner IS NOT DISTINCT FROM "+owner)
		put := fmt.Sprintf("INSERT INTO %s VALUES (%s, %s, %s, %s, %s) ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, grp = excluded.grp, parent = excluded.parent, flag = excluded.flag;",
			name, id, owner, grp, parent, flag)
		switch one(t, "statement", "put", "put", "put", "put", "owner", "grp", "parent", "flag", "delete", "again", "all", "many", "swap", "clear", "more") {
		case "put":
			b.WriteString(put)
		case "owner":
			fmt.Fprintf(&b, "UPDATE %s SET owner = %s WHERE %s;", name, owner, where)
		case "grp":
			fmt.Fprintf(&b, "UPDATE %s SET grp = %s WHERE %s;", name, grp, where)
		case "parent":
			fmt.Fprintf(&b, "UPDATE %s SET parent = %s WHERE %s;", name, parent, where)
		case "flag":
			fmt.Fprintf(&b, "UPDATE %s SET flag = NOT flag WHERE %s;", name, where)
		case "delete":
			fmt.Fprintf(&b, "DELETE FROM %s WHERE %s;", name, where)
		case "again":
			fmt.Fprintf(&b, "DELETE FROM %s WHERE id = %s; %s", name, id, put)
		case "all":
			fmt.Fprintf(&b, "UPDATE %s SET owner = owner %% 5 + 1;", name)
		case "many":
			if chance(t, "bulk", 6) {
				fmt.Fprintf(&b, "INSERT INTO %s SELECT %s, i %% 5 + 1, i %% 4 + 1, %s, i %% 3 > 0 FROM generate_series(101, 100 + %d) i ON CONFLICT (id) DO UPDATE SET grp = excluded.grp, owner = 1;",
					name, s.key(i, "i"), s.key(p, "(i % 12 + 1)"), 20+uniform(t, "rows", 60))
			}
		case "more":
			if n := s.tables[i].more; n > 0 {
				fmt.Fprintf(&b, "UPDATE %s SET m%d = m%[2]d + 1 WHERE %s;", name, 1+uniform(t, "column", n), where)
			}
		case "swap":
			fmt.Fprintf(&b, "UPDATE %s SET owner = grp, grp = owner %% 4 + 1 WHERE %s;", name, where)
		case "clear":
			if chance(t, "really", 8) {
				fmt.Fprintf(&b, "DELETE FROM %s;", name)
			}
		}
	}
	for range 1 + uniform(t, "statements", 4) {
		if chance(t, "savepoint", 6) {
			b.WriteString("SAVEPOINT s;")
			statement()
			b.WriteString(one(t, "then", "ROLLBACK TO s;", "ROLLBACK TO s; RELEASE s;", "RELEASE s;"))
			continue
		}
		statement()
	}
	b.WriteString(one(t, "end", "COMMIT", "COMMIT", "COMMIT", "COMMIT", "COMMIT", "COMMIT", "COMMIT", "ROLLBACK"))
	return b.String()
}

// materialized waits for all that is committed.
func (m *membership) materialized(after string) {
	m.t.Helper()
	ctx := context.Background()
	var lsn string
	m.must(m.db.QueryRow(ctx, "SELECT synchro._emit_marker()::text").Scan(&lsn))
	for end := time.Now().Add(settle); ; {
		var done, blocked bool
		m.must(m.db.QueryRow(ctx, "SELECT synchro._await_progress($1::text::pg_lsn, 500), EXISTS (SELECT FROM synchro.quarantine WHERE resolved_at IS NULL)", lsn).Scan(&done, &blocked))
		if done {
			break
		}
		if blocked || time.Now().After(end) {
			m.fail("not materialized after %s; health: %s", after, m.Health(ctx))
		}
	}
}

// compare holds every synced table's stored scopes against its rule over the source tables.
func (m *membership) compare(after string) {
	m.t.Helper()
	began := time.Now()
	m.materialized(after)
	waited := time.Since(began)
	defer func() { m.t.Logf("%s: waited %s, compared %s", after, waited, time.Since(began)-waited) }()
	ctx := context.Background()
	for _, tab := range m.schema.tables {
		m.compareRows(after, tab)
		stored := fmt.Sprintf(`SELECT synchro._key_text('%s', e.key) COLLATE "C" AS id, s.scope_id COLLATE "C" AS scope FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no)
			WHERE e.state <> 'x' AND e.rel_no = (SELECT l.rel_no FROM synchro.relation l WHERE l.relation_oid = '%s.t%d'::regclass)`, keyTypes[tab.key].wire, m.schema.name, tab.n)
		meant := fmt.Sprintf(`SELECT DISTINCT o.id::text COLLATE "C" AS id, r.scope COLLATE "C" FROM %s.t%d o CROSS JOIN LATERAL (%s) AS r (scope)`, m.schema.name, tab.n, m.schema.rule(tab.n, false, "o.id"))
		if !tab.synced {
			meant = "SELECT '' COLLATE \"C\", '' COLLATE \"C\" WHERE false"
		}
		var extra, missing string
		m.must(m.db.QueryRow(ctx, fmt.Sprintf(`SELECT (SELECT coalesce(string_agg(d::text, ' '), '') FROM ((%s) EXCEPT (%s)) d), (SELECT coalesce(string_agg(d::text, ' '), '') FROM ((%[2]s) EXCEPT (%[1]s)) d)`,
			stored, meant)).Scan(&extra, &missing))
		if extra != "" || missing != "" {
			m.fail("after %s, %d transactions: t%d has wrongly %s, and lacks %s; rule:\n%s", after, m.sent, tab.n, extra, missing, m.schema.rule(tab.n, false, "o.id"))
		}
	}
}

// compareRows holds the projection of a table against the table.
func (m *membership) compareRows(after string, tab *table) {
	m.t.Helper()
	var projection, columns string
	m.must(m.db.QueryRow(context.Background(), `SELECT 'synchro_data.r_' || l.rel_no, (SELECT string_agg('c' || a.attnum, ', ' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = l.relation_oid AND a.attnum > 0)
		FROM synchro.relation l WHERE l.relation_oid = $1::text::regclass`, fmt.Sprintf("%s.t%d", m.schema.name, tab.n)).Scan(&projection, &columns))
	stored, meant := fmt.Sprintf("SELECT %s FROM %s", columns, projection), fmt.Sprintf("SELECT %s FROM %s.t%d", strings.Join(tab.columns(), ", "), m.schema.name, tab.n)
	var different int
	m.must(m.db.QueryRow(context.Background(), fmt.Sprintf("SELECT (SELECT count(*) FROM ((%s) EXCEPT ALL (%s)) d) + (SELECT count(*) FROM ((%[2]s) EXCEPT ALL (%[1]s)) d)", stored, meant)).Scan(&different))
	if different > 0 {
		m.fail("after %s, %d transactions: %d rows of t%d are not as in the table", after, m.sent, different, tab.n)
	}
}

// What an author of rules may get wrong is refused at registration; and where it is not looked at there, the comparison finds it.
func TestWrongRulesAreFound(t *testing.T) {
	s := startEmpty(t)
	run := func(mistake wrong) finding {
		return hunt(40, func(rt *rapid.T, f *finding) {
			m := &membership{stack: s, t: rt, schema: drawSchema(rt, fmt.Sprintf("m%d", schemas.Add(1))), told: f}
			if m.schema.can(mistake) {
				m.play(mistake, false)
			}
		})
	}
	mistakes := []wrong{ignoresOld, ignoresNew, noSelfImpact, undeclared, misspelt}
	for _, mistake := range mistakes {
		if found := run(mistake); !strings.HasPrefix(found.reason, "ERROR: ") {
			t.Errorf("%s: not refused, but: %s", mistake, found.reason)
		}
	}
	if err := s.exec(unchecked); err != nil {
		t.Fatal(err)
	}
	for _, mistake := range mistakes {
		t.Run(string(mistake), func(t *testing.T) {
			found := run(mistake)
			if !strings.HasPrefix(found.reason, "after ") {
				t.Fatalf("not found in %d transactions; %s", found.steps, found.reason)
			}
			t.Logf("found after %d transactions: %.300s", found.steps, found.reason)
		})
	}
}

// unchecked takes away what registration looks at in functions.
const unchecked = `
CREATE OR REPLACE FUNCTION synchro._check_function(p_function oid, p_kind text, p_owner oid, p_key_type oid) RETURNS text LANGUAGE sql STABLE AS 'SELECT NULL::text';
CREATE OR REPLACE FUNCTION synchro._check_function_reads(p_function oid, p_kind text, p_target synchro.registration, p_relation_id uuid) RETURNS void
  LANGUAGE sql STABLE AS 'SELECT';
CREATE OR REPLACE FUNCTION synchro._check_images(p_dependency synchro.membership_dependency) RETURNS void LANGUAGE sql STABLE AS 'SELECT'`

// can tells whether the schema has a place for the mistake.
func (s *schema) can(mistake wrong) bool {
	for _, tab := range s.tables {
		if tab.synced {
			for _, d := range s.dependencies(tab.n) {
				if (mistake == noSelfImpact) == (d.source == tab.n) {
					return true
				}
			}
		}
	}
	return false
}
