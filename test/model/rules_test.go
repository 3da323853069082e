package model

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// keyTypes are types of primary keys: what the wire calls them, and how the number n becomes a key.
var keyTypes = []struct{ sql, wire, of string }{
	{"int", "int", "%s"},
	{"bigint", "int64", "(%s + 5000000000)"},
	{"text", "string", "('k' || %s)"},
	{"uuid", "string", "('00000000-0000-4000-8000-' || lpad((%s)::text, 12, '0'))::uuid"},
}

// table is one of a random schema. Every table has the columns id, owner, grp, flag, and parent, which refers to one table.
type table struct {
	n        int
	key      int // in keyTypes
	parent   int
	synced   bool
	version  int // of its rule
	more     int // columns that have joined: m1, m2, ...
	branches []branch
}

// branch is a part of a membership rule: a query of scope ids for the row with the key {k}; {0} to {3} are the tables.
type branch struct {
	query   string
	impacts []impact
}

// impact says which rows of the target a changed row of a table affects, given its images {old} and {new}: what {each} is
// evaluated for. columns are what the rule reads of it.
type impact struct {
	source  int
	columns []string
	query   string
}

// schema is a random one.
type schema struct {
	name   string
	tables []*table
}

func drawSchema(t *rapid.T, name string) *schema {
	s := &schema{name: name}
	n := 2 + uniform(t, "tables", 3)
	for i := range n {
		s.tables = append(s.tables, &table{n: i, key: uniform(t, "key", len(keyTypes)), parent: uniform(t, "parent", n)})
	}
	for i, tab := range s.tables {
		tab.synced = i == 0 || chance(t, "synced", 3)
		if !tab.synced {
			continue
		}
		s.drawRule(t, tab)
	}
	return s
}

// drawRule gives a table a rule.
func (s *schema) drawRule(t *rapid.T, tab *table) {
	tab.branches = nil
	for range 1 + uniform(t, "branches", 3) {
		kind := one(t, "branch", "self", "parent", "grandparent", "group", "shared", "count", "absent")
		if b, ok := s.branch(kind, tab.n, uniform(t, "other", len(s.tables)), chance(t, "flag", 2)); ok {
			tab.branches = append(tab.branches, b)
		}
	}
	if len(tab.branches) == 0 {
		b, _ := s.branch("self", tab.n, 0, false)
		tab.branches = append(tab.branches, b)
	}
}

// key is the key of a table with a number, as SQL.
func (s *schema) key(table int, number string) string {
	return fmt.Sprintf(keyTypes[s.tables[table].key].of, number)
}

// parentKey is a cast of an image's text to the key of the table that it refers to.
func (s *schema) cast(table int, image, column string) string {
	return fmt.Sprintf("({%s} ->> '%s')::%s", image, column, keyTypes[s.tables[table].key].sql)
}

// branch makes a branch of a rule of table i; m is another table (or the same), flag adds a condition.
func (s *schema) branch(kind string, i, m int, flag bool) (b branch, ok bool) {
	and := func(alias string) string {
		if flag {
			return " AND " + alias + ".flag"
		}
		return ""
	}
	scope := func(prefix string, number int, of string) string {
		return fmt.Sprintf("'%s-%s%d:' || %s", s.name, prefix, number, of)
	}
	p := s.tables[i].parent
	g := s.tables[p].parent
	byID := func(table int) string { return s.cast(table, "each", "id") }
	switch kind {
	case "self":
		return branch{query: fmt.Sprintf("SELECT %s FROM {%d} t WHERE t.id = {k} AND t.owner IS NOT NULL%s", scope("o", i, "t.owner"), i, and("t"))}, true
	case "parent":
		return branch{
			query: fmt.Sprintf("SELECT %s FROM {%d} t JOIN {%d} p ON p.id = t.parent WHERE t.id = {k} AND p.owner IS NOT NULL%s", scope("p", p, "p.owner"), i, p, and("p")),
			impacts: []impact{{p, []string{"id", "owner", "flag"},
				fmt.Sprintf("SELECT t.id::text FROM {%d} t WHERE t.parent = %s", i, byID(p))}},
		}, true
	case "grandparent":
		return branch{
			query: fmt.Sprintf("SELECT %s FROM {%d} t JOIN {%d} p ON p.id = t.parent JOIN {%d} g ON g.id = p.parent WHERE t.id = {k} AND g.owner IS NOT NULL%s",
				scope("g", g, "g.owner"), i, p, g, and("g")),
			impacts: []impact{
				{p, []string{"id", "parent"}, fmt.Sprintf("SELECT t.id::text FROM {%d} t WHERE t.parent = %s", i, byID(p))},
				{g, []string{"id", "owner", "flag"}, fmt.Sprintf("SELECT t.id::text FROM {%d} t JOIN {%d} p ON p.id = t.parent WHERE p.parent = %s", i, p, byID(g))},
			},
		}, true
	case "group":
		return branch{
			query:   fmt.Sprintf("SELECT %s FROM {%d} t JOIN {%d} m ON m.grp = t.grp WHERE t.id = {k} AND m.owner IS NOT NULL%s", scope("m", m, "m.owner"), i, m, and("m")),
			impacts: []impact{{m, []string{"grp", "owner", "flag"}, fmt.Sprintf("SELECT t.id::text FROM {%d} t WHERE t.grp = ({each} ->> 'grp')::int", i)}},
		}, true
	case "shared":
		if s.tables[m].parent != i {
			return branch{}, false
		}
		return branch{
			query: fmt.Sprintf("SELECT %s FROM {%d} t JOIN {%d} m ON m.parent = t.id WHERE t.id = {k} AND m.owner IS NOT NULL%s", scope("s", m, "m.owner"), i, m, and("m")),
			// keys as the row has them, whether or not there are such rows
			impacts: []impact{{m, []string{"parent", "owner", "flag"}, "SELECT {each} ->> 'parent' WHERE ({each} ->> 'parent') IS NOT NULL"}},
		}, true
	case "count":
		return branch{
			query: fmt.Sprintf("SELECT %s FROM {%d} t WHERE t.id = {k} AND t.grp IS NOT NULL",
				scope("c", m, fmt.Sprintf("(SELECT count(*) FROM {%d} m WHERE m.grp = t.grp%s)", m, and("m"))), i),
			impacts: []impact{{m, []string{"grp", "flag"}, fmt.Sprintf("SELECT t.id::text FROM {%d} t WHERE t.grp = ({each} ->> 'grp')::int", i)}},
		}, true
	default:
		return branch{
			query: fmt.Sprintf("SELECT %s FROM {%d} t WHERE t.id = {k} AND t.owner IS NOT NULL AND NOT EXISTS (SELECT FROM {%d} m WHERE m.grp = t.grp%s)",
				scope("x", m, "t.owner"), i, m, and("m")),
			impacts: []impact{{m, []string{"grp", "flag"}, fmt.Sprintf("SELECT t.id::text FROM {%d} t WHERE t.grp = ({each} ->> 'grp')::int", i)}},
		}, true
	}
}

// rule is the membership rule of a table, over its projections or over the sources.
func (s *schema) rule(i int, projected bool, key string) string {
	var queries []string
	for _, b := range s.tables[i].branches {
		queries = append(queries, b.query)
	}
	return s.resolve(strings.Join(queries, "\n  UNION ALL "), projected, key)
}

func (s *schema) resolve(query string, projected bool, key string) string {
	pairs := []string{"{k}", key}
	for _, tab := range s.tables {
		name := fmt.Sprintf("%s.t%d", s.name, tab.n)
		if projected {
			name = fmt.Sprintf("synchro_projection.%s_t%d", s.name, tab.n)
		}
		pairs = append(pairs, fmt.Sprintf("{%d}", tab.n), name)
	}
	return strings.NewReplacer(pairs...).Replace(query)
}

// dependency is what is declared of a source for a target.
type dependency struct {
	source  int
	columns []string
	queries []string
}

func (s *schema) dependencies(i int) (out []*dependency) {
	for _, b := range s.tables[i].branches {
		for _, im := range b.impacts {
			at := slices.IndexFunc(out, func(d *dependency) bool { return d.source == im.source })
			if at < 0 {
				at, out = len(out), append(out, &dependency{source: im.source})
			}
			for _, column := range im.columns {
				if !slices.Contains(out[at].columns, column) {
					out[at].columns = append(out[at].columns, column)
				}
			}
			if !slices.Contains(out[at].queries, im.query) {
				out[at].queries = append(out[at].queries, im.query)
			}
		}
	}
	return out
}

// wrong is a mistake of whoever wrote the rules.
type wrong string

const (
	ignoresOld     wrong = "impact functions ignore the old image"
	ignoresNew     wrong = "impact functions ignore the new image"
	noSelfImpact   wrong = "rows are not affected by their siblings"
	undeclared     wrong = "a column that the rule reads is not declared"
	misspelt       wrong = "impact functions misspell columns of the old image"
	forgetsNothing wrong = ""
)

// create is the SQL that makes the tables.
func (s *schema) create() string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE SCHEMA %s; GRANT USAGE ON SCHEMA %[1]s TO synchro_owner, synchro_worker;\n", s.name)
	for _, tab := range s.tables {
		fmt.Fprintf(&b, "CREATE TABLE %s.t%d (id %s PRIMARY KEY, owner int, grp int, parent %s, flag boolean NOT NULL DEFAULT true);\n",
			s.name, tab.n, keyTypes[tab.key].sql, keyTypes[s.tables[tab.parent].key].sql)
		fmt.Fprintf(&b, "GRANT SELECT ON %s.t%d TO synchro_owner, synchro_worker;\n", s.name, tab.n)
	}
	return b.String()
}

// register is the SQL of one registration of everything.
func (s *schema) register(mistake wrong) string {
	var views, functions, calls strings.Builder
	for _, tab := range s.tables {
		name := fmt.Sprintf("%s.t%d", s.name, tab.n)
		fmt.Fprintf(&views, "SELECT synchro.synchro_prepare_projection_view('%s', '%s_t%d', '{id,owner,grp,parent,flag}');\n", name, s.name, tab.n)
		if !tab.synced {
			calls.WriteString(s.capture(tab))
			continue
		}
		made, called := s.registerRule(tab, mistake)
		functions.WriteString(made)
		calls.WriteString(called)
	}
	return views.String() + functions.String() + calls.String()
}

// registerRule is the SQL that makes the functions of a synced table's rule, and that which registers them.
func (s *schema) registerRule(tab *table, mistake wrong) (string, string) {
	var functions, calls strings.Builder
	name, version := fmt.Sprintf("%s.t%d", s.name, tab.n), fmt.Sprintf("v%d", tab.version)
	fmt.Fprintf(&functions, `CREATE FUNCTION %s_scopes_%s(p_row_key %s) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC
  %s;
END;
REVOKE EXECUTE ON FUNCTION %[1]s_scopes_%[2]s FROM PUBLIC; GRANT EXECUTE ON FUNCTION %[1]s_scopes_%[2]s TO synchro_worker;
`, name, version, keyTypes[tab.key].sql, s.rule(tab.n, true, "p_row_key"))
	fmt.Fprintf(&calls, "SELECT synchro.synchro_register_table('%s', '%[1]s_scopes_%s', 'multi_scope', p_max_scope_fanout => 200, p_push_policy => 'read_only');\n", name, version)
	for _, d := range s.dependencies(tab.n) {
		if mistake == noSelfImpact && d.source == tab.n {
			continue
		}
		columns := d.columns
		if mistake == undeclared {
			columns = slices.DeleteFunc(slices.Clone(columns), func(c string) bool { return c == "owner" || c == "flag" || c == "grp" })
			if len(columns) == 0 {
				columns = []string{"id"}
			}
		}
		impactName := fmt.Sprintf("%s_from_t%d_%s", name, d.source, version)
		functions.WriteString("DO $do$ BEGIN EXECUTE format($f$" + s.impactFunction(impactName, tab, d, mistake) + "$f$, synchro.synchro_table_id('" + name + "')); END $do$;\n")
		fmt.Fprintf(&functions, "REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC; GRANT EXECUTE ON FUNCTION %[1]s TO synchro_worker;\n", impactName)
		fmt.Fprintf(&calls, "SELECT synchro.synchro_register_membership_dependency('%s.t%d', '%s', '%s', '{%s}', 1000);\n", s.name, d.source, name, impactName, strings.Join(columns, ","))
	}
	return functions.String(), calls.String()
}

// capture is the SQL that registers a table for capture only.
func (s *schema) capture(tab *table) string {
	return fmt.Sprintf("SELECT synchro.synchro_register_capture_dependency('%s.t%d', '{id}', '{%s}');\n", s.name, tab.n, strings.Join(tab.columns()[1:], ","))
}

// columns of the table.
func (tab *table) columns() []string {
	columns := []string{"id", "owner", "grp", "parent", "flag"}
	for i := range tab.more {
		columns = append(columns, fmt.Sprintf("m%d", i+1))
	}
	return columns
}

// widen is the SQL by which a column with values joins a table and its registration.
func (s *schema) widen(tab *table) string {
	tab.more++
	sql := fmt.Sprintf("ALTER TABLE %s.t%d ADD m%d int DEFAULT %[3]d;\n", s.name, tab.n, tab.more)
	if !tab.synced {
		return sql + s.capture(tab)
	}
	_, calls := s.registerRule(tab, forgetsNothing)
	return sql + calls
}

// turn is the SQL that makes a captured table a synced one, or the reverse.
func (s *schema) turn(t *rapid.T, tab *table) string {
	if tab.synced = !tab.synced; !tab.synced {
		return fmt.Sprintf("SELECT synchro.synchro_unregister_table('%s.t%d');\n", s.name, tab.n) + s.capture(tab)
	}
	tab.version++
	s.drawRule(t, tab)
	functions, calls := s.registerRule(tab, forgetsNothing)
	return functions + calls
}

// change draws another rule for a synced table, and is the SQL that registers it.
func (s *schema) change(t *rapid.T, tab *table) string {
	before := s.dependencies(tab.n)
	tab.version++
	s.drawRule(t, tab)
	functions, calls := s.registerRule(tab, forgetsNothing)
	now := s.dependencies(tab.n)
	for _, was := range before {
		if !slices.ContainsFunc(now, func(d *dependency) bool { return d.source == was.source }) {
			calls += fmt.Sprintf("SELECT synchro.synchro_unregister_membership_dependency('%s.t%d', '%s.t%d');\n", s.name, was.source, s.name, tab.n)
		}
	}
	return functions + calls
}

// impactFunction takes the table's id as a format argument.
func (s *schema) impactFunction(name string, target *table, d *dependency, mistake wrong) string {
	images := []string{"p_old_row", "p_new_row"}
	switch mistake {
	case ignoresOld:
		images = images[1:]
	case ignoresNew:
		images = images[:1]
	}
	var keys []string
	for _, query := range d.queries {
		for _, image := range images {
			key := strings.ReplaceAll(s.resolve(query, true, ""), "{each}", image)
			if mistake == misspelt {
				key = strings.ReplaceAll(key, "p_old_row ->> '", "p_old_row ->> 'x")
			}
			keys = append(keys, key)
		}
	}
	return fmt.Sprintf(`CREATE FUNCTION %s(p_old_row jsonb, p_new_row jsonb) RETURNS SETOF synchro.synchro_row_ref LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC
  SELECT %%1$L, '%s', k.key FROM (%s) AS k (key);
END`, name, keyTypes[target.key].wire, strings.Join(keys, "\n    UNION ALL "))
}

// unregister is the SQL that takes everything out.
func (s *schema) unregister() string {
	var b strings.Builder
	for _, tab := range s.tables {
		what := "capture_dependency"
		if tab.synced {
			what = "table"
		}
		fmt.Fprintf(&b, "SELECT synchro.synchro_unregister_%s('%s.t%d');\n", what, s.name, tab.n)
	}
	return b.String()
}
