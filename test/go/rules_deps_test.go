package systest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"
)

// teams is a table that a new rule of app.item reads: an item is in the scope of the lead of the team that its owner names.
const teams = `
CREATE TABLE app.team (id bigint PRIMARY KEY, owner text, lead text);
INSERT INTO app.team SELECT g, 'u' || g % 4, 'l' || g FROM generate_series(1, 6) g;
GRANT SELECT ON app.team TO synchro_owner, synchro_worker;
SELECT synchro.synchro_prepare_projection_view('app.team', 'team', '{id,owner,lead}');
CREATE FUNCTION app.led_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC
  SELECT 'lead:' || t.lead FROM synchro_projection.item i JOIN synchro_projection.team t ON t.owner = i.owner WHERE i.id = p_row_key AND t.lead IS NOT NULL
  UNION ALL SELECT 'user:' || i.owner FROM synchro_projection.item i WHERE i.id = p_row_key AND i.owner IS NOT NULL;
END;
DO $do$
BEGIN
  EXECUTE format($f$CREATE FUNCTION app.item_of_team(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE
    SET search_path = pg_catalog, synchro
  BEGIN ATOMIC
    SELECT %L, 'int64', i.id::text FROM synchro_projection.item i WHERE i.owner = p_old_row->>'owner'
    UNION ALL SELECT %L, 'int64', i.id::text FROM synchro_projection.item i WHERE i.owner = p_new_row->>'owner';
  END$f$, synchro.synchro_table_id('app.item'), synchro.synchro_table_id('app.item'));
END $do$;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA app FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA app TO synchro_worker`

const dependOnTeams = `SELECT synchro.synchro_register_capture_dependency('app.team', '{id}', '{owner,lead}');
SELECT synchro.synchro_register_membership_dependency('app.team', 'app.item', 'app.item_of_team', '{owner,lead}', %d);`

// work writes teams and items.
func teamWork(ctx context.Context, db *pgx.Conn, rng *rand.Rand) error {
	if err := randomWork(ctx, db, rng, 1); err != nil {
		return err
	}
	_, err := db.Exec(ctx, []string{
		fmt.Sprintf("UPDATE app.team SET owner = nullif('u%d', 'u0') WHERE id = %d", rng.IntN(4), 1+rng.IntN(6)),
		fmt.Sprintf("UPDATE app.team SET lead = 'l%d' WHERE id = %d", rng.IntN(9), 1+rng.IntN(6)),
		fmt.Sprintf("DELETE FROM app.team WHERE id = %d", 1+rng.IntN(6)),
		fmt.Sprintf("INSERT INTO app.team VALUES (%d, 'u%d', 'l%d') ON CONFLICT (id) DO NOTHING", 1+rng.IntN(6), rng.IntN(4), rng.IntN(9)),
	}[rng.IntN(4)])
	return err
}

// A rule that begins to read another table, and then ceases to, beside transactions that write both.
func TestDependenciesThatComeAndGo(t *testing.T) {
	for _, point := range []string{"", "switch", "impacted"} {
		t.Run("failing at "+point, func(t *testing.T) {
			c := newRules(t)
			c.exec(teams)
			c.released()
			c.limits.BackfillBatchSize = 4
			rng := rand.New(rand.NewPCG(3, 23))
			db := c.Connect(t, "", "")
			writes, fails := 0, 0
			c.cfg.Fail = func(at string) error {
				if at == "staged" && writes < 25 {
					writes++
					if err := teamWork(context.Background(), db, rng); err != nil {
						return err
					}
				}
				if at == point && fails < 12 {
					if fails++; fails%3 != 0 {
						return errInjected
					}
				}
				return nil
			}
			c.exec("BEGIN; " + ruleChange("app.led_scopes", "") + "; " + fmt.Sprintf(dependOnTeams, 1000) + "COMMIT")
			for range 5 {
				if err := teamWork(context.Background(), c.db, rng); err != nil {
					t.Fatal(err)
				}
			}
			c.start()
			c.newest()
			c.rule = "app.led_scopes"
			c.equal()
			c.teamsEqual()
			c.want("SELECT count(*) > 0 FROM synchro.scope WHERE scope_id LIKE 'lead:%' AND membership_generation = 2", "true")
			// A bound that is changed stages, and moves nothing.
			before := c.value(memberships)
			c.exec(fmt.Sprintf(dependOnTeams, 900))
			c.newest()
			c.equal()
			c.want(memberships, before)
			for range 5 {
				if err := teamWork(context.Background(), c.db, rng); err != nil {
					t.Fatal(err)
				}
			}
			c.equal()
			writes = 0
			c.exec("BEGIN; " + ruleChange("app.moved_scopes", "") + `; SELECT synchro.synchro_unregister_membership_dependency('app.team', 'app.item');
  SELECT synchro.synchro_unregister_capture_dependency('app.team'); COMMIT`)
			c.newest()
			c.rule = "app.moved_scopes"
			c.equal()
			c.want("SELECT count(*) FROM synchro.scope_entry e JOIN synchro.scope s USING (scope_no) WHERE s.scope_id LIKE 'lead:%' AND e.state <> 'x'", "0")
			c.poll("sweep", "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'app.team'::regclass AND tgname LIKE 'synchro%'", "0")
			c.want("SELECT count(*) FROM synchro.quarantine", "0")
		})
	}
}

func (c *core) teamsEqual() {
	c.t.Helper()
	rel := c.value("SELECT rel_no FROM synchro.relation WHERE physical_relation = 'team'")
	c.same("teams", "SELECT c1, c2, c3 FROM synchro_data.r_"+rel, "SELECT id, owner, lead FROM app.team")
}

// An impact that fails under the pending rule rejects it; the rule in force does not know of the dependency, and goes on.
func TestImpactThatFailsIsRejected(t *testing.T) {
	c := newRules(t)
	c.exec(teams)
	c.released()
	c.limits.BackfillBatchSize = 4
	c.exec("INSERT INTO app.item (id, owner) SELECT g, 'u1' FROM generate_series(100, 160) g")
	c.exec("BEGIN; " + ruleChange("app.led_scopes", "") + "; " + fmt.Sprintf(dependOnTeams, 10) + "COMMIT")
	c.exec("UPDATE app.team SET lead = 'x' WHERE id = 1")
	c.start()
	c.poll("rejection", "SELECT state || ' ' || reason FROM synchro.backfill", "rejected scope_evaluation_failed")
	c.equal()
	c.want("SELECT count(*) FROM synchro.quarantine", "0")
}
