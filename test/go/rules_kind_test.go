package systest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"
)

// teamTable makes the rule under which app.team is synced; its rows are members of scopes of their own.
const teamTable = `
CREATE FUNCTION app.team_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'team:' || t.owner FROM synchro_projection.team t WHERE t.id = p_row_key AND t.owner IS NOT NULL; END;
REVOKE EXECUTE ON FUNCTION app.team_scopes FROM PUBLIC;
GRANT EXECUTE ON FUNCTION app.team_scopes TO synchro_worker`

const (
	teamSynced   = "SELECT synchro.synchro_register_table('app.team', 'app.team_scopes', p_push_policy => 'read_only')"
	teamCaptured = "SELECT synchro.synchro_unregister_table('app.team'); SELECT synchro.synchro_register_capture_dependency('app.team', '{id}', '{owner,lead}')"
)

// teamEntries compares the entries of app.team with what its rule says; synced: it is a table that clients know.
func (c *core) teamEntries(synced bool) {
	c.t.Helper()
	rel := c.value("SELECT rel_no FROM synchro.relation WHERE physical_relation = 'team'")
	c.teamsEqual()
	c.same("entries of teams", fmt.Sprintf(`SELECT s.scope_id COLLATE "C", e.key, e.server_version FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no)
		WHERE e.rel_no = %s AND e.state <> 'x'`, rel),
		fmt.Sprintf(`SELECT 'team:' || t.owner COLLATE "C", synchro._key_bytes('int64', t.id::text), p.server_version FROM app.team t JOIN synchro_data.r_%s p ON p.c1 = t.id WHERE t.owner IS NOT NULL AND %t`, rel, synced))
	c.same("scopes of teams", "SELECT c1, s FROM synchro_data.r_"+rel+", unnest(scopes) s",
		"SELECT synchro._key_text('int64', key)::bigint, scope_no FROM synchro.scope_entry WHERE state <> 'x' AND rel_no = "+rel)
	kind := "d"
	if synced {
		kind = "s"
	}
	c.poll("triggers", `SELECT split_part(encode(tgargs, 'escape'), '\000', 2) FROM pg_trigger WHERE tgrelid = 'app.team'::regclass AND tgname = 'synchro_fence'`, kind)
}

// A capture dependency becomes a table that clients know, and the reverse, in one step: alone, with a changed rule of the table that depends on
// it, and behind a pending one. Its identities stay, the rules that read it go on, and no scope is touched that holds none of its rows.
func TestCaptureDependencyBecomesATableAndBack(t *testing.T) {
	for name, way := range map[string]struct{ before, with string }{
		"alone":                 {},
		"with a changed rule":   {with: "; " + ruleChange("app.led_scopes", ", p_max_scope_fanout => %d")},
		"behind a pending rule": {before: ruleChange("app.led_scopes", ", p_max_scope_fanout => %d")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newRules(t)
			c.exec(teams)
			c.exec(teamTable)
			c.exec("INSERT INTO app.team VALUES (100, 'u3', 'l100')") // nobody writes it
			c.exec("BEGIN; " + ruleChange("app.led_scopes", "") + "; " + fmt.Sprintf(dependOnTeams, 1000) + "COMMIT")
			c.rule = "app.led_scopes"
			c.newest()
			c.equal()
			ids := "SELECT relation_id || ' ' || (SELECT string_agg(field_id::text, ' ' ORDER BY attnum) FROM synchro.captured_column c WHERE c.rel_no = l.rel_no) FROM synchro.relation l WHERE physical_relation = 'team'"
			before, tableID := c.value(ids), ""
			others := "SELECT string_agg(scope_id || ' ' || membership_generation, ', ' ORDER BY scope_id) FROM synchro.scope WHERE scope_id NOT LIKE 'team:%'"
			rng := rand.New(rand.NewPCG(33, 3))
			bound := 8
			for round := range 3 {
				synced := round%2 == 0
				c.released()
				c.limits.BackfillBatchSize = 3
				untouched := c.value(others)
				version := c.value("SELECT schema_version FROM synchro.progress")
				if way.before != "" {
					bound++
					c.exec(fmt.Sprintf(way.before, bound))
				}
				step := teamCaptured
				if synced {
					step = teamSynced
				}
				with := way.with
				if with != "" {
					bound++
					with = fmt.Sprintf(with, bound)
				}
				c.exec("BEGIN; UPDATE app.team SET lead = 'own' WHERE id = 1; DELETE FROM app.team WHERE id = 3; " + step + with +
					"; INSERT INTO app.team VALUES (3, 'u1', 'l3') ; UPDATE app.team SET owner = 'u2' WHERE id IN (1, 2); COMMIT")
				for range 5 {
					if err := teamWork(t.Context(), c.db, rng); err != nil {
						t.Fatal(err)
					}
				}
				c.during("staged", func(db *pgx.Conn, n int64) error {
					if n > 8 {
						return nil
					}
					return teamWork(context.Background(), db, rng)
				})
				c.start()
				c.newest()
				c.cfg.Fail = nil
				c.equal()
				c.teamEntries(synced)
				for range 5 {
					if err := teamWork(t.Context(), c.db, rng); err != nil {
						t.Fatal(err)
					}
				}
				c.exec("INSERT INTO app.team VALUES (3, 'u1', 'l3') ON CONFLICT (id) DO UPDATE SET lead = 'again'")
				c.equal()
				c.teamEntries(synced)
				c.want(ids, before)
				if id := c.value("SELECT table_id FROM synchro.relation WHERE physical_relation = 'team'"); tableID == "" {
					tableID = id
				} else if id != tableID {
					t.Errorf("the table id changed")
				}
				// Rows of items may enter new scopes meanwhile; those that were there have kept their generation.
				c.want(fmt.Sprintf("SELECT count(*) FROM synchro.scope WHERE membership_generation > 1 AND scope_id NOT LIKE 'lead:%%' AND scope_id NOT LIKE 'team:%%' AND position(scope_id || ' ' || membership_generation in '%s') = 0", untouched), "0")
				class := "class_4"
				if synced {
					class = "class_3"
				}
				c.want("SELECT string_agg(transition_class, ',') FROM synchro.manifest WHERE schema_version > "+version, class)
				c.want(fmt.Sprintf(`SELECT m.body::jsonb @> '{"tables":[{"table_id":"%s"}]}' FROM synchro.progress p JOIN synchro.manifest m USING (schema_version)`, tableID), fmt.Sprint(synced))
				if synced {
					c.want("SELECT string_agg(DISTINCT rtrim(s.scope_id, '0123456789'), ' ') FROM synchro.scope s WHERE s.affected_version > "+version, "team:u")
				}
				c.poll("end of the stages", stages, "0")
				c.want("SELECT count(*) FROM synchro.quarantine", "0")
			}
		})
	}
}

// What is synced does not become a mere dependency by one call too many: a migration may be run again.
func TestSyncedTableIsNotTakenAwayByTheWay(t *testing.T) {
	t.Parallel()
	c := newRules(t)
	_, err := c.db.Exec(t.Context(), "SELECT synchro.synchro_register_capture_dependency('app.item', '{id}', '{owner}')")
	if sqlStateOf(err) != "SY117" {
		t.Errorf("a synced table as a dependency: %v", err)
	}
}
