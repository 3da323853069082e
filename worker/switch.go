package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pglogrepl"
)

// crossing is the way from the live edges to the staged ones, inside the database transaction of the activation.
type crossing struct {
	a       *applier
	at      pglogrepl.LSN
	ordinal int64
	found   map[int32]map[int64]struct{} // scopes that the new rule of a relation affects
}

// cross makes the staged generation the active one. Only rows whose scopes differ are touched.
func (a *applier) cross(ctx context.Context, w *work) (*registry, error) {
	f := a.fill
	if f == nil || !f.complete || f.generation != w.act.generation {
		return a.active, nil // told again, or of a generation that was rejected
	}
	c := &crossing{a: a, at: w.commit.commitLSN, ordinal: w.act.ordinal, found: map[int32]map[int64]struct{}{}}
	old := a.active
	err := a.install(ctx, w, f.next, renewal{}, func(ctx context.Context, rel, before *relation) error {
		if f.byNo[rel.no] == nil {
			return nil
		}
		return c.enter(ctx, rel, before)
	})
	if err != nil {
		return nil, err
	}
	if err := c.recompose(ctx, old, f.next); err != nil {
		return nil, err
	}
	if err := c.invalidate(ctx, f.next); err != nil {
		return nil, err
	}
	for _, sql := range []string{"DELETE FROM synchro.staged_membership", "DELETE FROM synchro.backfill WHERE generation = " + itoa(f.generation)} {
		if _, err := query(ctx, a.conn, sql); err != nil {
			return nil, err
		}
	}
	if err := a.cfg.failAt("switch"); err != nil {
		return nil, err
	}
	a.fill, err = loadBackfill(ctx, a.conn, f.next)
	return f.next, err
}

// enter brings the entries of a relation from its live edges to the staged ones. With another deletion column every entry may mean something else.
func (c *crossing) enter(ctx context.Context, rel, before *relation) error {
	a := c.a
	all := before != nil && before.kind == kindSynced && before.deleted != rel.deleted
	r, err := one(ctx, a.conn, fmt.Sprintf("SELECT (SELECT count(*) FROM %s) = (SELECT count(scopes) FROM synchro.staged_membership WHERE rel_no = %d)",
		rel.sql.table(), rel.no))
	if err != nil {
		return err
	}
	if r.text(0) != "t" {
		return &failure{relNo: rel.no, err: errStage}
	}
	// The plan of this one statement is made for the sizes of today.
	for _, sql := range []string{
		"SELECT set_config(s, 'on', true) FROM unnest(ARRAY['enable_hashjoin', 'enable_mergejoin', 'enable_seqscan']) s",
		fmt.Sprintf(`DECLARE crossing NO SCROLL CURSOR FOR SELECT %s, s.scopes
  FROM %s p LEFT JOIN synchro.staged_membership s ON s.rel_no = %d AND s.key = (%[1]s) COLLATE "C"
 WHERE %[5]t OR s.scopes IS DISTINCT FROM p.scopes ORDER BY synchro._key_bytes('%[4]s', %[1]s)`, rel.sql.keyText(), rel.sql.table(), rel.no, rel.pkType, all),
		"SELECT set_config(s, 'off', true) FROM unnest(ARRAY['enable_hashjoin', 'enable_mergejoin', 'enable_seqscan']) s",
	} {
		if _, err := query(ctx, a.conn, sql); err != nil {
			return err
		}
	}
	fetch := fmt.Sprintf("FETCH %d FROM crossing", a.cfg.Limits().BatchMaxRows)
	for {
		rows, err := query(ctx, a.conn, fetch)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}
		if err := c.write(ctx, rel, rows, all); err != nil {
			return err
		}
	}
	_, err = query(ctx, a.conn, "CLOSE crossing")
	return err
}

// write writes the entries of rows whose scopes differ: those that they enter and those that they leave, with all those where they stay.
func (c *crossing) write(ctx context.Context, rel *relation, rows []row, all bool) error {
	a := c.a
	ch := &changes{rel: rel, keys: array{elem: oidText}, rows: make([]rowChange, len(rows))}
	for i, r := range rows {
		if r[1] == nil {
			return &failure{relNo: rel.no, err: errStage}
		}
		ch.rows[i] = rowChange{lsn: c.at, ordinal: c.ordinal, key: addKey(&ch.keys, r[0]), impacted: !all}
	}
	read := call{statement: rel.sql.read, relNo: rel.no, expect: 1, params: [][]byte{ch.keys.param()}, binary: binaryColumn, onRow: ch.readAgain}
	if err := a.pipeline.run(ctx, []call{read}); err != nil {
		return err
	}
	if len(ch.there) != len(rows) {
		return &failure{relNo: rel.no, err: errCount}
	}
	found := c.found[rel.no]
	if found == nil {
		found = map[int64]struct{}{}
		c.found[rel.no] = found
	}
	for i := range ch.rows {
		r := &ch.rows[i]
		var err error
		if r.now, err = parseList(rows[i].text(1)); err != nil {
			return err
		}
		for _, scope := range slices.Concat(r.old, r.now) {
			if slices.Contains(r.old, scope) != slices.Contains(r.now, scope) {
				found[scope] = struct{}{}
			}
		}
	}
	calls, err := a.settle(ctx, []*changes{ch}, c.at, numberPosition)
	if err != nil {
		return err
	}
	return a.pipeline.run(ctx, calls)
}

// recompose adds every scope that holds rows of a relation whose composition changed, or whose rows were read anew: its rows mean something
// else to clients, or have more in them.
func (c *crossing) recompose(ctx context.Context, old, next *registry) error {
	rows, err := query(ctx, c.a.conn, `SELECT DISTINCT n.rel_no, e.scope_no
  FROM synchro.registration n
  JOIN synchro.registration o ON o.generation = $1::text::int8 AND o.rel_no = n.rel_no AND o.kind = 'synced' AND (o.composition, o.since) <> (n.composition, n.since)
  JOIN synchro.scope_entry e ON e.rel_no = n.rel_no AND e.state <> 'x'
 WHERE n.generation = $2::text::int8 AND n.kind = 'synced'`, itoa(old.generation), itoa(next.generation))
	if err != nil {
		return err
	}
	version, err := c.a.rematerializes(ctx, old, next)
	if err != nil {
		return err
	}
	done := map[int32]bool{}
	for _, r := range rows {
		rel := int32(r.int64(0))
		if c.found[rel] == nil {
			c.found[rel] = map[int64]struct{}{}
		}
		c.found[rel][r.int64(1)] = struct{}{}
		if !done[rel] {
			done[rel] = true
			if err := affect(ctx, c.a.conn, version, next.byNo[rel]); err != nil {
				return err
			}
		}
	}
	return nil
}

// invalidate gives the affected scopes a new membership generation: cursors and rebuilds of the old one end. Relations that are new to
// clients are no change of a rule.
func (c *crossing) invalidate(ctx context.Context, next *registry) error {
	scopes := map[int64]struct{}{}
	for no, found := range c.found {
		if was := c.a.active.byNo[no]; was == nil || was.kind != kindSynced {
			continue
		}
		list := array{elem: oidInt8}
		for scope := range found {
			scopes[scope] = struct{}{}
			list.u64(uint64(scope))
		}
		missing := false
		ask := call{statement: stUndeclared, expect: -1, params: [][]byte{u64Param(uint64(next.generation)), u64Param(uint64(no)), list.param()},
			onRow: func([][]byte) error { missing = true; return nil }}
		if err := c.a.pipeline.run(ctx, []call{ask}); err != nil {
			return err
		}
		if missing {
			return &rejection{reason: reasonAffected, relNo: no, err: errors.New("the rule affects a scope that is not listed")}
		}
	}
	list := array{elem: oidInt8}
	for scope := range scopes {
		list.u64(uint64(scope))
	}
	lsn, generation := lsnParam(c.at), u64Param(uint64(next.generation))
	return c.a.pipeline.run(ctx, []call{
		{statement: stDeclare, expect: -1, params: [][]byte{generation, lsn}},
		{statement: stInvalidate, expect: -1, params: [][]byte{generation, lsn, list.param()}, onRow: func(v [][]byte) error {
			no, err := parseList("{" + string(v[0]) + "}")
			if err == nil {
				c.a.scopes[no[0]] = struct{}{}
			}
			return err
		}},
	})
}

// Statements of a backfill.
var (
	stStaged     = &statement{"staged", "UPDATE synchro.backfill SET staged = staged + $2::int8 WHERE generation = $1::int8"}
	stUndeclared = &statement{"undeclared", `SELECT s.scope_no FROM unnest($3::int8[]) u(scope_no) JOIN synchro.scope s ON s.scope_no = u.scope_no
 WHERE EXISTS (SELECT FROM synchro.declared_scope d WHERE d.generation = $1::int8 AND d.rel_no = $2::int8)
   AND NOT EXISTS (SELECT FROM synchro.declared_scope d WHERE d.generation = $1::int8 AND d.rel_no = $2::int8 AND d.scope_id = s.scope_id) LIMIT 1`}
	stDeclare = &statement{"declare", `INSERT INTO synchro.scope (scope_id, high_lsn)
SELECT DISTINCT d.scope_id, $2::pg_lsn FROM synchro.declared_scope d WHERE d.generation = $1::int8
    ON CONFLICT (scope_id) DO NOTHING`}
	stInvalidate = &statement{"invalidate", `UPDATE synchro.scope s SET membership_generation = synchro._next(s.membership_generation), high_lsn = $2::pg_lsn
 WHERE s.scope_no = ANY ($3::int8[]) OR s.scope_id IN (SELECT d.scope_id FROM synchro.declared_scope d WHERE d.generation = $1::int8)
RETURNING s.scope_no`}
)

// following asks for the keys after one, in the order of the projection's index.
func (s *statements) following(begun bool, limit int) string {
	key, where := s.keyColumn().column(), "$1::text IS NOT NULL"
	if begun {
		where = fmt.Sprintf("p.%s > %s", key, s.key("$1::text"))
	}
	return fmt.Sprintf("SELECT %s FROM %s p WHERE %s ORDER BY p.%s LIMIT %d", s.keyText(), s.table(), where, key, limit)
}

// mark notes that rows have to be evaluated again; keys without a row are passed over.
func (s *statements) mark() *statement {
	return s.named("mark", fmt.Sprintf(`INSERT INTO synchro.staged_membership AS s (rel_no, key)
SELECT DISTINCT %d, %s FROM unnest($1::text[]) AS u(key) JOIN %s p ON p.%s = %s
    ON CONFLICT (rel_no, key) DO UPDATE SET scopes = NULL WHERE s.scopes IS NOT NULL`,
		s.rel.no, s.keyText(), s.table(), s.keyColumn().column(), s.key("u.key")))
}

// unmark forgets rows that are gone.
func (s *statements) unmark() *statement {
	return s.named("unmark", fmt.Sprintf("DELETE FROM synchro.staged_membership s USING unnest($1::text[]) AS u(key) WHERE s.rel_no = %d AND s.key = u.key", s.rel.no))
}

// staged stores what rows were evaluated to.
func (s *statements) staged() *statement {
	return s.named("staged", fmt.Sprintf(`INSERT INTO synchro.staged_membership (rel_no, key, scopes)
SELECT %d, u.key, u.scopes::int8[] FROM unnest($1::text[], $2::text[]) AS u(key, scopes)
    ON CONFLICT (rel_no, key) DO UPDATE SET scopes = excluded.scopes`, s.rel.no))
}

// appendList writes an array literal of int8.
func appendList(b []byte, list []int64) []byte {
	b = append(b, '{')
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return append(b, '}')
}

// parseList reads one.
func parseList(text string) (list []int64, err error) {
	for _, s := range strings.Split(strings.Trim(text, "{}"), ",") {
		if s == "" {
			continue
		}
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, errMalformed
		}
		list = append(list, n)
	}
	return list, nil
}
