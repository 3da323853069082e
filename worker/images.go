package worker

import (
	"fmt"
	"strings"
)

// Statements that look, before rows are stored, at what of them will change. They take the values of the rows as arrays, and return, for
// rows of which a declared column of some dependency changes: their number among the parameters, the old and the
// new image, and for each dependency of the relation whether it is concerned.

// look is one call of such a statement being made up.
type look struct {
	stmt   *statement
	arrays []array
	rows   []int32 // indexes into changes.rows
}

// looks returns the calls that look at rows about to be stored; none when nothing depends on their relation.
func (ch *changes) looks(after *aftermath) (calls []call, err error) {
	if len(ch.rel.impacts) == 0 || len(ch.rows) == 0 {
		return nil, nil
	}
	var looks []*look
	byKind := map[string]*look{}
	in := reader{b: ch.images}
	in.u8()
	in.bytes(2 * int(in.u16()))
	values := make([]column, len(ch.rel.columns))
	kind := make([]byte, 1+len(values))
	for i := range ch.rows {
		kind[0] = in.u8()
		in.bytes(len(ch.rows[i].version) + 4)
		for j := range values {
			values[j], kind[1+j] = column{}, 0
			switch n := in.u32(); n {
			case valueNull:
				values[j].kind = colNull
			case valueKept:
				kind[1+j] = 1
			default:
				values[j].text = in.bytes(int(n))
				in.u8()
			}
		}
		if in.bad {
			return nil, errMalformed
		}
		l := byKind[string(kind)]
		if l == nil {
			l = &look{stmt: ch.rel.sql.look(string(kind))}
			byKind[string(kind)] = l
			looks = append(looks, l)
			for _, kept := range kind[1:] {
				if kept == 0 {
					l.arrays = append(l.arrays, array{elem: oidText})
				}
			}
		}
		l.rows = append(l.rows, int32(i))
		at := 0
		for j, kept := range kind[1:] {
			if kept == 0 {
				l.arrays[at].value(values[j])
				at++
			}
		}
	}
	for _, l := range looks {
		c := call{statement: l.stmt, relNo: ch.rel.no, expect: -1, onRow: after.changed(ch.rel, ch.rows, l.rows)}
		for i := range l.arrays {
			c.params = append(c.params, l.arrays[i].param())
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// look is the statement for rows of a kind: how they are stored, and for each captured column whether it keeps its value.
func (s *statements) look(kind string) *statement {
	st := s.looks[kind]
	if st == nil {
		sql := ""
		switch kind[0] {
		case rowNew:
			sql = s.insertImageSQL()
		case rowAny:
			sql = s.updateImageSQL("")
		default:
			sql = s.updateImageSQL(kind[1:])
		}
		st = s.named(fmt.Sprintf("look%d", len(s.looks)), sql)
		s.looks[kind] = st
	}
	return st
}

// imageSQL is a row as impact functions see it: all captured columns by name.
func imageSQL(columns []captured, value func(i int) string) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = value(i) + " AS " + quoteIdent(c.name)
	}
	return fmt.Sprintf("(SELECT to_jsonb(i) FROM (SELECT %s) i)", strings.Join(list, ", "))
}

// values are expressions of the captured columns: of the new row u, or of the old row p where a column keeps its value.
func (s *statements) values(kept string) (from string, value func(i int) string) {
	var params, names []string
	given := map[int]string{}
	for i, c := range s.rel.columns {
		if kept != "" && kept[i] != 0 {
			continue
		}
		name := fmt.Sprintf("v%d", i)
		params, names = append(params, fmt.Sprintf("$%d::text[]", len(params)+1)), append(names, name)
		if c.storage != "text" {
			name += "::" + c.storage
		}
		given[i] = "u." + name
	}
	from = fmt.Sprintf("unnest(%s) WITH ORDINALITY AS u(%s, ord)", strings.Join(params, ", "), strings.Join(names, ", "))
	return from, func(i int) string {
		if v, ok := given[i]; ok {
			return v
		}
		return "p." + s.rel.columns[i].column()
	}
}

func (s *statements) old(i int) string { return "p." + s.rel.columns[i].column() }

func (s *statements) allConcerned() string {
	return strings.Repeat(", true", len(s.rel.impacts))
}

func (s *statements) insertImageSQL() string {
	from, value := s.values("")
	return fmt.Sprintf("SELECT u.ord, NULL::jsonb, %s%s FROM %s", imageSQL(s.rel.columns, value), s.allConcerned(), from)
}

// updateImageSQL compares octets: what is equal for the type's own comparison (1.0 and 1.00) may still differ for a rule. kept is "" when
// the statement may insert.
func (s *statements) updateImageSQL(kept string) string {
	from, value := s.values(kept)
	key := s.keyColumn()
	var concerned []string
	for _, d := range s.rel.impacts {
		var old, now []string
		for i, c := range s.rel.columns {
			for _, declared := range d.columns {
				if declared.attnum == c.attnum {
					old, now = append(old, s.old(i)), append(now, value(i))
				}
			}
		}
		concerned = append(concerned, fmt.Sprintf("(p.%s IS NULL OR ROW(%s)::record OPERATOR(pg_catalog.*<>) ROW(%s)::record)",
			key.column(), strings.Join(old, ", "), strings.Join(now, ", ")))
	}
	given := ""
	for i, c := range s.rel.columns {
		if c.attnum == key.attnum {
			given = value(i)
		}
	}
	return fmt.Sprintf("SELECT u.ord, CASE WHEN p.%s IS NOT NULL THEN %s END, %s, %s FROM %s LEFT JOIN %s p ON p.%[1]s = %[7]s WHERE %[8]s",
		key.column(), imageSQL(s.rel.columns, s.old), imageSQL(s.rel.columns, value), strings.Join(concerned, ", "), from, s.table(), given,
		strings.Join(concerned, " OR "))
}

func (s *statements) removeImageSQL() string {
	return fmt.Sprintf("SELECT u.ord, %s, NULL::jsonb%s FROM unnest($1::text[]) WITH ORDINALITY AS u(key, ord) JOIN %s p ON p.%s = %s",
		imageSQL(s.rel.columns, s.old), s.allConcerned(), s.table(), s.keyColumn().column(), s.key("u.key"))
}
