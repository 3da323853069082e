package canonical

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
)

func testManifest() *Manifest {
	id := func(s string) *string { return &s }
	n := func(i int64) *int64 { return &i }
	return &Manifest{SchemaVersion: 1, TransitionClass: Initial, CompatibilityFloor: 1, Tables: []TableDef{
		{TableID: "t2", RelationID: "r2", Name: "two", Composition: MultiScope, PrimaryKeyFieldID: "k",
			Fields: []FieldDef{{FieldID: "k", Name: "k", Type: "int"}}},
		{TableID: "t1", RelationID: "r1", Name: "one", Composition: SingleScope, PrimaryKeyFieldID: "k",
			Lifecycle: Lifecycle{DeletedAtFieldID: id("d")},
			Fields: []FieldDef{{FieldID: "k", Name: "k", Type: "string"}, {FieldID: "d", Name: "d", Type: "datetime", Nullable: true},
				{FieldID: "n", Name: "n", Type: "decimal", Precision: n(6), Scale: n(2)}},
			Indexes: []IndexDef{{IndexID: "i2", Name: "b", FieldIDs: []string{"n", "d"}}, {IndexID: "i1", Name: "a", FieldIDs: []string{"d"}, Unique: true}}},
	}}
}

func TestManifestHashIgnoresTheOrderOfCollections(t *testing.T) {
	a, b := testManifest(), testManifest()
	slices.Reverse(b.Tables)
	slices.Reverse(b.Tables[0].Fields)
	slices.Reverse(b.Tables[0].Indexes)
	hashA, errA := a.Hash()
	hashB, errB := b.Hash()
	if errA != nil || errB != nil || hashA != hashB {
		t.Errorf("%x %v, %x %v", hashA, errA, hashB, errB)
	}
	b.Tables[0].Indexes[0].FieldIDs, b.Tables[0].Indexes[1].FieldIDs = []string{"d"}, []string{"d", "n"}
	if hashB, _ = b.Hash(); hashA == hashB {
		t.Error("the order of an index's fields does not matter")
	}
}

func TestManifestBodyIsReadBack(t *testing.T) {
	m := testManifest()
	if err := m.Seal(); err != nil {
		t.Fatal(err)
	}
	body, err := m.Body()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseManifest(body)
	if err != nil || back.Ref() != m.Ref() {
		t.Fatalf("%+v, %v", back, err)
	}
	again, err := back.Body()
	if err != nil || string(again) != string(body) {
		t.Errorf("%s, %v", again, err)
	}
}

func TestManifestWithoutTables(t *testing.T) {
	m := &Manifest{SchemaVersion: 1, TransitionClass: Initial, CompatibilityFloor: 1}
	if err := m.Seal(); err != nil {
		t.Fatal(err)
	}
	body, err := m.Body()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseManifest(body); err != nil {
		t.Error(err)
	}
}

func TestManifestRules(t *testing.T) {
	zero, one, huge := int64(0), int64(1), int64(1001)
	unknown := "unknown"
	for what, bend := range map[string]func(m *Manifest){
		"unknown composition":    func(m *Manifest) { m.Tables[0].Composition = "any" },
		"table id twice":         func(m *Manifest) { m.Tables[0].TableID = "t1" },
		"relation id twice":      func(m *Manifest) { m.Tables[0].RelationID = "r1" },
		"table name twice":       func(m *Manifest) { m.Tables[0].Name = "one" },
		"empty table id":         func(m *Manifest) { m.Tables[0].TableID = "" },
		"U+0000 in a name":       func(m *Manifest) { m.Tables[0].Name = "a\x00" },
		"invalid UTF-8":          func(m *Manifest) { m.Tables[0].Name = "a\xff" },
		"field id twice":         func(m *Manifest) { m.Tables[1].Fields[2].FieldID = "d" },
		"field name twice":       func(m *Manifest) { m.Tables[1].Fields[2].Name = "d" },
		"unknown type":           func(m *Manifest) { m.Tables[1].Fields[2].Type = "text" },
		"empty type":             func(m *Manifest) { m.Tables[1].Fields[1].Type = "" },
		"no primary key":         func(m *Manifest) { m.Tables[1].PrimaryKeyFieldID = "x" },
		"nullable primary key":   func(m *Manifest) { m.Tables[1].Fields[0].Nullable = true },
		"writable primary key":   func(m *Manifest) { m.Tables[1].Fields[0].Writable = true },
		"decimal primary key":    func(m *Manifest) { m.Tables[1].PrimaryKeyFieldID = "n" },
		"unknown lifecycle":      func(m *Manifest) { m.Tables[1].Lifecycle.CreatedAtFieldID = &unknown },
		"scale alone":            func(m *Manifest) { m.Tables[1].Fields[2].Precision = nil },
		"precision alone":        func(m *Manifest) { m.Tables[1].Fields[2].Scale = nil },
		"precision zero":         func(m *Manifest) { m.Tables[1].Fields[2].Precision = &zero },
		"precision beyond":       func(m *Manifest) { m.Tables[1].Fields[2].Precision = &huge },
		"precision of a string":  func(m *Manifest) { m.Tables[1].Fields[0].Precision, m.Tables[1].Fields[0].Scale = &one, &zero },
		"index without fields":   func(m *Manifest) { m.Tables[1].Indexes[0].FieldIDs = nil },
		"index of unknown field": func(m *Manifest) { m.Tables[1].Indexes[0].FieldIDs = []string{"x"} },
		"index id twice":         func(m *Manifest) { m.Tables[1].Indexes[0].IndexID = "i1" },
		"index name twice":       func(m *Manifest) { m.Tables[1].Indexes[0].Name = "a" },
		"version zero":           func(m *Manifest) { m.SchemaVersion, m.CompatibilityFloor = 0, 0 },
		"unknown class": func(m *Manifest) {
			m.SchemaVersion, m.CompatibilityFloor, m.TransitionClass = 2, 2, "class_1"
			m.ParentSchema = &SchemaRef{1, HexDigest([HashSize]byte{})}
		},
		"initial with a parent": func(m *Manifest) {
			m.SchemaVersion, m.CompatibilityFloor, m.ParentSchema = 2, 2, &SchemaRef{1, HexDigest([HashSize]byte{})}
		},
		"parent of a later version": func(m *Manifest) {
			m.TransitionClass, m.ParentSchema = Class3, &SchemaRef{2, HexDigest([HashSize]byte{})}
		},
	} {
		t.Run(what, func(t *testing.T) {
			m := testManifest()
			bend(m)
			if err := m.Seal(); !errors.Is(err, ErrManifest) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestManifestMembersAreExact(t *testing.T) {
	m := testManifest()
	if err := m.Seal(); err != nil {
		t.Fatal(err)
	}
	sound, err := m.Body()
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	for what, bend := range map[string]func(){
		"member missing":       func() { delete(body, "tables") },
		"member unknown":       func() { body["extra"] = 1 },
		"table member missing": func() { delete(body["tables"].([]any)[0].(map[string]any), "indexes") },
		"field member unknown": func() {
			body["tables"].([]any)[0].(map[string]any)["fields"].([]any)[0].(map[string]any)["default"] = nil
		},
		"hash differs":     func() { body["schema_hash"] = HexDigest([HashSize]byte{}) },
		"hash missing":     func() { body["schema_hash"] = "" },
		"version a string": func() { body["schema_version"] = "1" },
		"tables null":      func() { body["tables"] = nil },
	} {
		t.Run(what, func(t *testing.T) {
			if err := json.Unmarshal(sound, &body); err != nil {
				t.Fatal(err)
			}
			bend()
			bent, _ := json.Marshal(body)
			if _, err := ParseManifest(bent); !errors.Is(err, ErrManifest) {
				t.Errorf("got %v", err)
			}
			body = nil
		})
	}
}

func TestLineage(t *testing.T) {
	parent := testManifest()
	if err := parent.Seal(); err != nil {
		t.Fatal(err)
	}
	ref := parent.Ref()
	child := testManifest()
	child.SchemaVersion, child.ParentSchema, child.TransitionClass = 2, &ref, Class2
	if err := child.CheckParent(parent); err != nil {
		t.Error(err)
	}
	for what, bend := range map[string]func(m *Manifest){
		"no parent":              func(m *Manifest) { m.ParentSchema = nil },
		"other hash":             func(m *Manifest) { m.ParentSchema = &SchemaRef{1, HexDigest([HashSize]byte{})} },
		"other version":          func(m *Manifest) { m.ParentSchema = &SchemaRef{7, ref.Hash} },
		"floor is not passed on": func(m *Manifest) { m.CompatibilityFloor = 2 },
	} {
		t.Run(what, func(t *testing.T) {
			m := *child
			bend(&m)
			if err := m.CheckParent(parent); !errors.Is(err, ErrManifest) {
				t.Errorf("got %v", err)
			}
		})
	}
}
