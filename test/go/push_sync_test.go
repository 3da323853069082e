package systest

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"

	"synchro/canonical"
	"synchro/client"
	"synchro/internal/pgtest"
)

// noteColumns are the wire values of note fields by column name.
type noteColumns map[string]string

// mutation makes a mutation of app.note by human names, as a device that knows the manifest would.
func mutation(d *client.Session, op, id, base string, columns noteColumns) canonical.Mutation {
	tables := d.Manifest().Tables
	note := slices.IndexFunc(tables, func(t canonical.TableDef) bool { return t.Name == "note" })
	return tableMutation(&tables[note], op, `"`+id+`"`, base, columns)
}

// tableMutation makes a mutation of any table.
func tableMutation(table *canonical.TableDef, op, key, base string, columns noteColumns) canonical.Mutation {
	m := canonical.Mutation{TableID: table.TableID, Op: op, BaseVersion: base,
		Key: canonical.Value{FieldID: table.PrimaryKeyFieldID, JSON: []byte(key)}}
	for _, f := range table.Fields {
		if value, ok := columns[f.Name]; ok {
			m.Columns = append(m.Columns, canonical.Value{FieldID: f.FieldID, JSON: []byte(value)})
		}
	}
	return m
}

func TestPushedNoteComesBackByPull(t *testing.T) {
	a := startApp(t, pgtest.Config{})
	ada := a.synced("ada", "ada-1")
	id := uuid.NewString()
	answer, err := ada.Push(context.Background(), []canonical.Mutation{
		mutation(ada, "insert", id, "", noteColumns{"owner": `"ada"`, "body": `"hello"`}),
	}, false)
	if err != nil || len(answer.Accepted) != 1 {
		t.Fatalf("push: %+v %v", answer, err)
	}
	a.wantRows(ada, "user:ada", 1)
}
