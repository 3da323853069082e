package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"synchro/canonical"
)

// registration is how a table of the application is registered.
type registration struct {
	synced   bool
	columns  string // that clients get, comma-separated
	texts    bool   // n is synced as text
	deleted  string // the deletion column
	readOnly bool
	multi    bool
	rule     int
	loose    bool // the title may be null
}

// shape is the registration of all tables, by name.
type shape map[string]registration

// firstShape is what every run begins with.
var firstShape = shape{
	"task": {synced: true, columns: "id,owner,team,shelf,title,n,rev,deleted_at", deleted: "deleted_at", multi: true},
	"tag":  {synced: true, columns: "id,team,title,rev"},
	"memo": {columns: "id,owner,title,rev", readOnly: true},
}

// with is the shape with another registration of a table.
func (s shape) with(name string, t registration) shape {
	next := shape{}
	for other, is := range s {
		next[other] = is
	}
	next[name] = t
	return next
}

func (t registration) has(column string) bool {
	return slices.Contains(strings.Split(t.columns, ","), column)
}

// joined and left are the table with one column more, and with one less.
func (t registration) joined(column string) registration { t.columns += "," + column; return t }
func (t registration) left(column string) registration {
	t.columns = strings.Join(slices.DeleteFunc(strings.Split(t.columns, ","), func(c string) bool { return c == column }), ",")
	return t
}

// shown is a row of the source as clients get it.
func (t registration) shown(r row) row {
	if r == nil {
		return nil
	}
	out := row{}
	for _, column := range strings.Split(t.columns, ",") {
		out[column] = r[column]
		if out[column] == "" {
			out[column] = "null"
		}
	}
	if t.texts {
		out["n"] = `"` + out["n"] + `"`
	}
	return out
}

// isDeleted tells whether the row is deleted for clients.
func (t registration) isDeleted(r row) bool { return t.deleted != "" && r[t.deleted] != "null" }

// scopes is the rule of the application: which scopes hold a row of the table.
func (t registration) scopes(name string, r row) (out []string) {
	of := map[string]string{"owner": "user:", "team": "team:", "shelf": "shelf:"}
	switch {
	case name == "task" && t.rule == 1:
		delete(of, "shelf")
	case name == "task" && t.rule == 2 && r["n"] != "0", name == "tag" && t.rule == 1 && r["color"] != "null":
		delete(of, "team")
	}
	for column, namespace := range of {
		if value, has := r.text(column); has {
			out = append(out, namespace+value)
		}
	}
	return out
}

// class is what the step between two registrations is for clients: 1 to 4. filled and populated tell of the rows at the registration.
func (s shape) class(next shape, all rows) (class int) {
	for name, is := range s {
		will := next[name]
		c := 1
		switch {
		case !is.synced && !will.synced:
		case is.synced && !will.synced:
			c = 4
		case !is.synced:
			c = 2
			if all.any(name, "id") {
				c = 3
			}
		default:
			if is.readOnly != will.readOnly || is.loose && !will.loose || !is.loose && will.loose {
				c = 2
			}
			for _, column := range strings.Split(will.columns, ",") {
				if !is.has(column) {
					c = 2
					if all.any(name, column) {
						c = 3
					}
				}
			}
			if is.multi != will.multi || is.deleted != will.deleted || is.loose && !will.loose {
				c = 3
			}
			for _, column := range strings.Split(is.columns, ",") {
				if !will.has(column) || is.texts != will.texts {
					c = 4
				}
			}
		}
		class = max(class, c)
	}
	return class
}

// any tells whether some row of a table has a value in a column.
func (all rows) any(name, column string) bool {
	for key, r := range all {
		if strings.HasPrefix(key, name+"/") && r[column] != "" && r[column] != "null" {
			return true
		}
	}
	return false
}

// holders are the scopes that hold rows of a table, deleted ones too.
func (s shape) holders(name string, all rows) map[string]bool {
	out := map[string]bool{}
	for key, r := range all {
		if t := s[name]; t.synced && strings.HasPrefix(key, name+"/") {
			for _, scope := range t.scopes(name, r) {
				out[scope] = true
			}
		}
	}
	return out
}

// moved are the scopes that gain or lose rows of a table with another rule.
func (s shape) moved(next shape, name string, all rows) map[string]bool {
	out := map[string]bool{}
	for key, r := range all {
		if strings.HasPrefix(key, name+"/") {
			was, is := s[name].scopes(name, r), next[name].scopes(name, r)
			for _, scope := range slices.Concat(was, is) {
				if slices.Contains(was, scope) != slices.Contains(is, scope) {
					out[scope] = true
				}
			}
		}
	}
	return out
}

// frame is what every scope holds after one commit, for clients: the live rows, in order.
type frame map[string]string

func (s shape) frame(all rows, deleted bool) frame {
	f := frame{}
	for _, key := range all.keys() {
		name, _, _ := strings.Cut(key, "/")
		t := s[name]
		if !t.synced || t.isDeleted(all[key]) && !deleted {
			continue
		}
		for _, scope := range t.scopes(name, all[key]) {
			f[scope] += key + ": " + t.shown(all[key]).String() + "\n"
		}
	}
	return f
}

// check compares a manifest with the shape.
func (s shape) check(m *canonical.Manifest) error {
	for name, t := range s {
		i := slices.IndexFunc(m.Tables, func(d canonical.TableDef) bool { return d.Name == name })
		if t.synced != (i >= 0) {
			return fmt.Errorf("table %s is in the manifest: %v", name, i >= 0)
		} else if !t.synced {
			continue
		}
		def := &m.Tables[i]
		if (def.Composition == canonical.MultiScope) != t.multi {
			return fmt.Errorf("table %s is %s", name, def.Composition)
		}
		deleted, names := "", []string{}
		for _, f := range def.Fields {
			names = append(names, f.Name)
			if id := def.Lifecycle.DeletedAtFieldID; id != nil && *id == f.FieldID {
				deleted = f.Name
			}
			if f.Writable && t.readOnly || !f.Writable && !t.readOnly && (f.Name == "title" || f.Name == "team") {
				return fmt.Errorf("field %s of %s is writable: %v", f.Name, name, f.Writable)
			}
			if f.Name == "title" && f.Nullable != t.loose || f.Name == "n" && (f.Type == "string") != t.texts {
				return fmt.Errorf("field %s of %s is %s, nullable %v", f.Name, name, f.Type, f.Nullable)
			}
		}
		want := strings.Split(t.columns, ",")
		slices.Sort(names)
		slices.Sort(want)
		if deleted != t.deleted || !slices.Equal(names, want) {
			return fmt.Errorf("table %s has the fields %v, of them %q for deletion", name, names, deleted)
		}
	}
	return nil
}

// catalog is a manifest that clients have met, with the step that led to it.
type catalog struct {
	index    int // in the lineage of the run
	ref      canonical.SchemaRef
	manifest *canonical.Manifest
	tables   map[string]*canonical.Table
	shape    shape
	class    int
	affected map[string]bool
}

func newCatalog(body []byte, s shape) (*catalog, error) {
	m, err := canonical.ParseManifest(body)
	if err != nil {
		return nil, err
	}
	c := &catalog{ref: m.Ref(), manifest: m, shape: s}
	if c.tables, err = m.Prepare(); err != nil {
		return nil, err
	}
	return c, s.check(m)
}

// def is the definition of a table, nil where there is none.
func (c *catalog) def(name string) *canonical.TableDef {
	if i := slices.IndexFunc(c.manifest.Tables, func(t canonical.TableDef) bool { return t.Name == name }); i >= 0 {
		return &c.manifest.Tables[i]
	}
	return nil
}

// field is a field of a table, both by their ids; nil where there is none.
func (c *catalog) field(tableID, fieldID string) *canonical.FieldDef {
	for i := range c.manifest.Tables {
		if t := &c.manifest.Tables[i]; t.TableID == tableID {
			for j := range t.Fields {
				if t.Fields[j].FieldID == fieldID {
					return &t.Fields[j]
				}
			}
		}
	}
	return nil
}

// restate is a held row as it is under another manifest that a client may install without a rebuild: fields that joined are null.
func (c *catalog) restate(h held) (held, error) {
	t := c.tables[h.tableID]
	if t == nil {
		return h, fmt.Errorf("a table of rows that are held is gone")
	}
	var columns map[string]json.RawMessage
	if err := json.Unmarshal(h.columns, &columns); err != nil {
		return h, err
	}
	def := t.Def()
	next := map[string]json.RawMessage{}
	h.row = row{}
	for _, f := range def.Fields {
		value := columns[f.FieldID]
		if value == nil {
			value = json.RawMessage("null")
		}
		next[f.FieldID], h.row[f.Name] = value, string(value)
	}
	var err error
	if h.columns, err = json.Marshal(next); err != nil {
		return h, err
	}
	h.digest, err = t.NewDigester().Row(h.columns, h.version)
	return h, err
}
