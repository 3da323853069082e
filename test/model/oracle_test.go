package model

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// row is a row of the source: its columns as they are on the wire, by name.
type row map[string]string

// rows are the rows of all tables, by "table/key".
type rows map[string]row

// text is a column's string, and whether it has one.
func (r row) text(column string) (string, bool) {
	var s *string
	if json.Unmarshal([]byte(r[column]), &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}

func (r row) deleted() bool {
	value, has := r["deleted_at"]
	return has && value != "null"
}

// scopes is the rule of the application: which scopes hold the row.
func (r row) scopes() (out []string) {
	for column, namespace := range map[string]string{"owner": "user:", "team": "team:", "shelf": "shelf:"} {
		if name, has := r.text(column); has {
			out = append(out, namespace+name)
		}
	}
	return out
}

// String is the row with its columns in order.
func (r row) String() string {
	var b strings.Builder
	for _, column := range slices.Sorted(maps.Keys(r)) {
		fmt.Fprintf(&b, "%s=%s ", column, r[column])
	}
	return b.String()
}

// frame is what every scope holds after one commit: the live rows, in order.
type frame map[string]string

func (all rows) frame() frame {
	f := frame{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if r := all[key]; !r.deleted() {
			for _, scope := range r.scopes() {
				f[scope] += key + ": " + r.String() + "\n"
			}
		}
	}
	return f
}

const source = `
SELECT 'task/' || id, json_build_object('id', id, 'owner', owner, 'team', team, 'shelf', shelf, 'title', title, 'n', n, 'rev', rev::text,
  'deleted_at', to_char(deleted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))::text FROM app.task
UNION ALL SELECT 'tag/' || id, json_build_object('id', id::text, 'team', team, 'title', title, 'rev', rev::text)::text FROM app.tag`

// look reads the source tables: what is committed now. A change makes a new frame; unsure says that the source may have had other
// states since the last look.
func (w *world) look(unsure bool) {
	seen := rows{}
	query, err := w.db.Query(context.Background(), source)
	w.must(err)
	for query.Next() {
		var key, text string
		w.must(query.Scan(&key, &text))
		var columns map[string]json.RawMessage
		w.must(json.Unmarshal([]byte(text), &columns))
		r := row{}
		for name, value := range columns {
			r[name] = string(value)
		}
		seen[key] = r
		w.contents[key+"@"+r["rev"]] = r.String()
	}
	w.must(query.Err())
	w.rows = seen

	var purged []string
	w.must(w.db.QueryRow(context.Background(), "SELECT coalesce(array_agg(DISTINCT row), '{}') FROM app.written WHERE op = 'purge'").Scan(&purged))
	w.gone = map[string]bool{}
	for _, key := range purged {
		w.gone[key] = seen[key] == nil
	}
	f := seen.frame()
	if len(w.frames) == 0 || unsure || !maps.Equal(f, w.frames[len(w.frames)-1]) {
		w.frames = append(w.frames, f)
	}
	if unsure {
		w.unsure = len(w.frames) - 1
	}
}

// assigned is the rule of assignment: the scopes of a user, in order.
func (w *world) assigned(user string) []string {
	set := map[string]bool{"shelf:" + w.shelf: true}
	if !w.revoked[user] {
		set["user:"+user] = true
	}
	for grant := range w.grants[user] {
		set[grant] = true
	}
	for team := range w.members[user] {
		set["team:"+team] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// mayWrite is the policy of the application.
func mayWrite(key string, r row, user string) bool {
	owner, _ := r.text("owner")
	_, team := r.text("team")
	return strings.HasPrefix(key, "tag/") || owner == user || team
}

// predict says what must become of a mutation against the given rows: the codes that it may get ("" is applied), and the row that
// it leaves when it is applied (nil: none). Rows that a mutation wrote have the rev "?".
func (w *world) predict(all rows, m *mutation) (codes []string, left row) {
	is := all[m.key]
	table, id, _ := strings.Cut(m.key, "/")
	next := row{}
	if m.op == "insert" {
		next = row{"id": `"` + id + `"`, "owner": "null", "team": "null", "shelf": "null", "title": "null", "n": "0", "deleted_at": "null"}
		if table == "tag" {
			next = row{"id": `"` + id + `"`, "team": "null", "title": "null"}
		}
	} else if is != nil {
		next = maps.Clone(is)
	}
	maps.Copy(next, m.columns)
	next["rev"] = "?"

	if m.op == "delete" {
		switch {
		case is == nil && w.gone[m.key]:
			return []string{"row_deleted"}, nil
		case is == nil || !mayWrite(m.key, is, m.user):
			return []string{"row_not_found"}, nil
		case is.deleted():
			return []string{"row_deleted"}, nil
		case is["rev"] != m.rev:
			return []string{"version_conflict"}, nil
		case table == "tag":
			return []string{""}, nil
		}
		next["deleted_at"] = "?"
		return []string{""}, next
	}
	var defects []string
	if !mayWrite(m.key, next, m.user) {
		defects = append(defects, "policy_rejected")
	}
	if strings.HasPrefix(next["n"], "-") {
		defects = append(defects, "validation_failed")
	}
	if m.op == "update" {
		switch {
		case is == nil && w.gone[m.key]:
			return []string{"row_deleted"}, nil
		case is == nil || !mayWrite(m.key, is, m.user):
			return []string{"row_not_found"}, nil
		case is.deleted():
			return []string{"row_deleted"}, nil
		case is["rev"] != m.rev:
			return []string{"version_conflict"}, nil
		}
	} else {
		conflict := ""
		switch {
		case is == nil && w.gone[m.key]:
			conflict = "row_deleted"
		case is != nil && !mayWrite(m.key, is, m.user):
			conflict = "policy_rejected"
		case is != nil && is.deleted():
			conflict = "row_deleted"
		case is != nil:
			conflict = "row_already_exists"
		}
		if conflict != "" {
			return append(defects, conflict), nil
		}
	}
	if len(defects) > 0 {
		return defects, nil
	}
	return []string{""}, next
}

// expectation is what predict says of one mutation of a batch, and the row's state after its turn.
type expectation struct {
	codes []string
	after row
}

// predictBatch predicts a whole batch and the rows after it. A mutation that has an outcome already keeps it.
func (w *world) predictBatch(b *batch) (want []expectation, after rows) {
	after = maps.Clone(w.rows)
	gone := w.gone
	w.gone = maps.Clone(gone)
	defer func() { w.gone = gone }()
	failed := -1
	for i, m := range b.mutations {
		if m.outcome != nil {
			want = append(want, expectation{})
			continue
		}
		codes, left := w.predict(after, m)
		want = append(want, expectation{codes, left})
		if !slices.Contains(codes, "") {
			want[i].after = after[m.key]
			if b.atomic {
				failed = i
				break
			}
			continue
		}
		if left == nil {
			delete(after, m.key)
			w.gone[m.key] = true
		} else {
			after[m.key] = left
		}
	}
	if failed < 0 {
		return want, after
	}
	for i := range b.mutations {
		if i >= len(want) {
			want = append(want, expectation{})
		}
		if i != failed {
			want[i] = expectation{codes: []string{"atomic_batch_rejected"}}
		}
	}
	return want, maps.Clone(w.rows)
}
