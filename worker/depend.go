package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// dependency says that changes of source rows may change which scopes hold target rows.
type dependency struct {
	target, source *relation
	columns        []captured // of the source: an event that changes none of them impacts nothing
	impact         *statement // (ord, key) of impacted target rows, by old and new images
	pending        bool       // of a rule that is being staged
}

// relset is a set of relations of one registry, by their bit.
type relset []uint64

func (s *relset) add(bit int) {
	for len(*s) <= bit/64 {
		*s = append(*s, 0)
	}
	(*s)[bit/64] |= 1 << (bit % 64)
}

func (s *relset) addAll(o relset) {
	for len(*s) < len(o) {
		*s = append(*s, 0)
	}
	for i := range o {
		(*s)[i] |= o[i]
	}
}

func (s relset) has(bit int) bool { return bit/64 < len(s) && s[bit/64]&(1<<(bit%64)) != 0 }

func (s relset) meets(o relset) bool {
	for i := range min(len(s), len(o)) {
		if s[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

const dependenciesQuery = `
SELECT d.target_rel_no, d.source_rel_no, pg_catalog.array_to_json(d.source_attnums)
  FROM synchro.membership_dependency d WHERE d.generation = $1 ORDER BY d.target_rel_no, d.source_rel_no`

func (g *registry) loadDependencies(ctx context.Context, conn *pgconn.PgConn, gen string) error {
	rows, err := query(ctx, conn, dependenciesQuery, gen)
	if err != nil {
		return err
	}
	for _, r := range rows {
		var attnums []int16
		if err := json.Unmarshal(r[2], &attnums); err != nil {
			return fmt.Errorf("columns of a dependency: %w", err)
		}
		if err := g.depend(int32(r.int64(0)), int32(r.int64(1)), attnums); err != nil {
			return err
		}
	}
	g.linkDependencies()
	return nil
}

// depend adds a dependency.
func (g *registry) depend(target, source int32, attnums []int16) error {
	d := &dependency{target: g.byNo[target], source: g.byNo[source]}
	if d.target == nil || d.source == nil || d.target.kind != kindSynced {
		return fmt.Errorf("a dependency of relation %d on relation %d, which the generation does not hold", target, source)
	}
	for _, c := range d.source.columns {
		if slices.Contains(attnums, c.attnum) {
			d.columns = append(d.columns, c)
		}
	}
	if len(d.columns) != len(attnums) || len(attnums) == 0 {
		return fmt.Errorf("a dependency on relation %d names a column that is not captured", source)
	}
	d.impact = &statement{fmt.Sprintf("g%d_i%d_%d", g.generation, target, source),
		fmt.Sprintf("SELECT ord, key FROM synchro._evaluate_impact(%d, %d, %d, $1::jsonb[], $2::jsonb[])", g.generation, target, source)}
	d.target.dependsOn = append(d.target.dependsOn, d)
	d.source.impacts = append(d.source.impacts, d)
	return nil
}

// linkDependencies works out what evaluations read. The membership function of a target reads the row itself and the projections of its
// sources; an impact function reads those of the target and of the target's sources.
func (g *registry) linkDependencies() {
	for i, rel := range g.ordered() {
		rel.bit = i
	}
	for _, rel := range g.byNo {
		for _, d := range rel.dependsOn {
			rel.members.add(d.source.bit)
		}
	}
	for _, rel := range g.byNo {
		rel.reads = slices.Clone(rel.members)
		for _, d := range rel.impacts {
			rel.reads.add(d.target.bit)
			rel.reads.addAll(d.target.members)
		}
	}
}

// footprint is what a transaction writes, and what the evaluations that follow from it read beyond the rows that it changes.
type footprint struct{ writes, reads relset }

func (f *footprint) add(rel *relation) {
	if f.writes.has(rel.bit) {
		return
	}
	f.writes.add(rel.bit)
	f.reads.addAll(rel.reads)
}

func (f *footprint) join(o footprint) {
	f.writes.addAll(o.writes)
	f.reads.addAll(o.reads)
}

// disturbs tells whether one transaction's evaluations may read what the other has written: evaluated together at the end of both, they
// could give other results than one after the other. Two that impact the same target always disturb each other.
func (f footprint) disturbs(o footprint) bool {
	return f.writes.meets(o.reads) || o.writes.meets(f.reads)
}

// late are the relations whose changed rows must not be evaluated before everything that the transaction wrote is stored.
func (f footprint) late(reg *registry) (late relset) {
	for _, rel := range reg.byNo {
		if f.writes.has(rel.bit) && rel.members.meets(f.writes) {
			late.add(rel.bit)
		}
	}
	return late
}
