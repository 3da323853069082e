package worker

import (
	"fmt"
	"strings"
)

// Statements that look, before rows are stored, at what of them will change. They take the parameters of the statement that stores and
// return, for rows of which a declared column of some dependency changes: their number among the parameters, the old and the
// new image, and for each dependency of the relation whether it is concerned.

// imaged is the looking statement of another one; nil when nothing depends on the relation.
func (s *statements) imaged(of *statement, sql string) *statement {
	if len(s.rel.impacts) == 0 {
		return nil
	}
	return &statement{name: of.name + "_images", sql: sql}
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
	from, given, columns := s.source(func(i int) bool { return kept != "" && kept[i] != 0 })
	byAttnum := map[int16]string{}
	for i, c := range columns {
		byAttnum[c.attnum] = given[i]
	}
	from = strings.TrimSuffix(strings.Replace(from, ") AS u(", ") WITH ORDINALITY AS u(", 1), ")") + ", ord)"
	return from, func(i int) string {
		c := s.rel.columns[i]
		if v, ok := byAttnum[c.attnum]; ok {
			return v
		}
		return "p." + c.column()
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
