package model

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"synchro/canonical"
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

// String is the row with its columns in order.
func (r row) String() string {
	var b strings.Builder
	for _, column := range slices.Sorted(maps.Keys(r)) {
		fmt.Fprintf(&b, "%s=%s ", column, r[column])
	}
	return b.String()
}

// keys are the rows, in order.
func (all rows) keys() []string { return slices.Sorted(maps.Keys(all)) }

// source reads all rows, with all columns that there are.
func (s *stack) source() string {
	more := ""
	if s.grown != "" {
		more = fmt.Sprintf(", '%s', %[1]s", s.grown)
	}
	return `
SELECT 'task/' || id, json_build_object('id', id, 'owner', owner, 'team', team, 'shelf', shelf, 'title', title, 'n', n, 'note', note, 'rev', rev::text,
  'deleted_at', to_char(deleted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))::text FROM app.task
UNION ALL SELECT 'tag/' || id, json_build_object('id', id::text, 'team', team, 'title', title, 'color', color, 'rev', rev::text` + more + `)::text FROM app.tag
UNION ALL SELECT 'memo/' || id, json_build_object('id', id, 'owner', owner, 'title', title, 'rev', rev::text)::text FROM app.memo`
}

// look reads the source tables: what is committed now. A change makes a new frame; unsure says that the source may have had other
// states since the last look.
func (w *world) look(unsure bool) {
	seen := rows{}
	query, err := w.db.Query(context.Background(), w.source())
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
		w.remember(key, r)
	}
	w.must(query.Err())
	w.rows = seen

	var purged []string
	w.must(w.db.QueryRow(context.Background(), "SELECT coalesce(array_agg(DISTINCT row), '{}') FROM app.written WHERE op = 'purge'").Scan(&purged))
	w.gone = map[string]bool{}
	for _, key := range purged {
		w.gone[key] = seen[key] == nil
	}
	f := w.now().shape.frame(seen, false)
	if len(w.frames) == 0 || unsure || !maps.Equal(f, w.frames[len(w.frames)-1]) {
		w.frames = append(w.frames, f)
	}
	if unsure {
		w.unsure = len(w.frames) - 1
	}
}

// remember keeps what a state of a row is for clients.
func (w *world) remember(key string, r row) {
	name, _, _ := strings.Cut(key, "/")
	if t := w.now().shape[name]; t.synced {
		for _, scope := range t.scopes(name, r) {
			w.ever[name+" "+scope] = true
		}
		w.contents[w.content(w.now(), key, r.rev())] = t.shown(r).String()
	}
}

// content names a state of a row under a manifest.
func (w *world) content(c *catalog, key, rev string) string {
	return fmt.Sprintf("%d %s@%s", c.index, key, rev)
}

// rev is what names the row's state.
func (r row) rev() string { return strings.Trim(r["rev"], `"`) }

// assigned is the rule of assignment: the scopes of a user, in order.
func (w *world) assigned(user string) []string {
	set := map[string]bool{"shelf:" + w.shelf: true}
	if !w.revoked[user] {
		set["user:"+user] = true
	}
	for grant := range w.grants[user] {
		set[grant] = true
	}
	for team := range w.teamsOf[user] {
		set["team:"+team] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// verdict is what the manifests say of a mutation, before any value or row is looked at: a code, and for schema_incompatible the fields.
func (w *world) verdict(m *mutation) (code string, incompatible []string) {
	name, _, _ := strings.Cut(m.key, "/")
	readOnly, unknown := false, false
	for i, field := range slices.Concat([]string{m.wire.Key.FieldID}, m.fields()) {
		var was *canonical.FieldDef
		is := w.now().field(m.wire.TableID, field)
		if m.authored != nil {
			was = m.authored.field(m.wire.TableID, field)
		}
		switch {
		case m.authored == nil, was != nil && (is == nil || is.Type != was.Type), i > 0 && was != nil && was.Writable && !is.Writable:
			incompatible = append(incompatible, field)
		case i > 0 && (was == nil || is == nil):
			unknown = true
		case i > 0 && !is.Writable:
			readOnly = true
		}
	}
	slices.Sort(incompatible)
	switch t := w.now().shape[name]; {
	case incompatible != nil:
		return "schema_incompatible", incompatible
	case !t.synced:
		return "table_not_synced", nil
	case t.readOnly:
		return "policy_rejected", nil
	case unknown, readOnly:
		return "validation_failed", nil
	}
	return "", nil
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
	if code, _ := w.verdict(m); code != "" {
		return []string{code}, nil
	}
	is := all[m.key]
	name, id, _ := strings.Cut(m.key, "/")
	table := w.now().shape[name]
	deleted := is != nil && table.isDeleted(is)
	next := row{}
	if m.op == "insert" {
		next = row{"id": `"` + id + `"`, "owner": "null", "team": "null", "shelf": "null", "title": "null", "n": "0", "note": "null", "deleted_at": "null"}
		if name == "tag" {
			next = row{"id": `"` + id + `"`, "team": "null", "title": "null", "color": "null"}
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
		case deleted:
			return []string{"row_deleted"}, nil
		case is.rev() != m.rev:
			return []string{"version_conflict"}, nil
		case table.deleted == "":
			return []string{""}, nil
		}
		next[table.deleted] = "?"
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
		case deleted:
			return []string{"row_deleted"}, nil
		case is.rev() != m.rev:
			return []string{"version_conflict"}, nil
		}
	} else {
		conflict := ""
		switch {
		case is == nil && w.gone[m.key]:
			conflict = "row_deleted"
		case is != nil && !mayWrite(m.key, is, m.user):
			conflict = "policy_rejected"
		case is != nil && deleted:
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
	gone := w.gone
	w.gone = maps.Clone(gone)
	defer func() { w.gone = gone }()
	if b.atomic { // what can't be executed at all fails the group before anything is tried
		for i, m := range b.mutations {
			if code, _ := w.verdict(m); code != "" {
				return b.rejected(i, expectation{codes: []string{code}}), maps.Clone(w.rows)
			}
		}
	}
	after = maps.Clone(w.rows)
	for i, m := range b.mutations {
		if m.outcome != nil {
			want = append(want, expectation{})
			continue
		}
		codes, left := w.predict(after, m)
		if !slices.Contains(codes, "") {
			failed := expectation{codes, after[m.key]}
			if b.atomic {
				return b.rejected(i, failed), maps.Clone(w.rows)
			}
			want = append(want, failed)
			continue
		}
		want = append(want, expectation{codes, left})
		if left == nil {
			delete(after, m.key)
			w.gone[m.key] = true
		} else {
			after[m.key] = left
		}
	}
	return want, after
}

// rejected is what becomes of an atomic group that one mutation fails.
func (b *batch) rejected(failed int, because expectation) []expectation {
	want := make([]expectation, len(b.mutations))
	for i := range want {
		want[i] = expectation{codes: []string{"atomic_batch_rejected"}}
	}
	want[failed] = because
	return want
}
