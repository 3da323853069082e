package canonical

import (
	"fmt"

	"synchro/internal/ijson"
)

// Validate checks every rule of a manifest except its hash.
func (m *Manifest) Validate() error {
	if err := m.checkLineage(); err != nil {
		return err
	}
	var tables, relations, names unique
	for i := range m.Tables {
		t := &m.Tables[i]
		if !tables.add(t.TableID) || !relations.add(t.RelationID) || !names.add(t.Name) {
			return fmt.Errorf("%w: table %d: id, relation id or name is empty, malformed or taken", ErrManifest, i)
		}
		if err := t.validate(); err != nil {
			return fmt.Errorf("%w: table %d: %w", ErrManifest, i, err)
		}
	}
	return nil
}

func (m *Manifest) checkLineage() error {
	var parent *int64
	if m.ParentSchema != nil {
		parent = &m.ParentSchema.Version
		if _, ok := ParseHash(m.ParentSchema.Hash); !ok {
			return fmt.Errorf("%w: malformed parent hash", ErrManifest)
		}
	}
	return CheckLineage(m.SchemaVersion, parent, m.TransitionClass, m.CompatibilityFloor)
}

// CheckLineage checks version, parent and class against the compatibility
// floor: the version of the first manifest of the current run of Class 2 steps.
func CheckLineage(version int64, parent *int64, class string, floor int64) error {
	if version < 1 || version > ijson.MaxSafe {
		return fmt.Errorf("%w: schema version out of range", ErrManifest)
	}
	if (parent == nil) != (class == Initial) {
		return fmt.Errorf("%w: exactly the initial manifest has no parent", ErrManifest)
	}
	if parent != nil && (*parent < 1 || *parent >= version) {
		return fmt.Errorf("%w: parent version is not an earlier one", ErrManifest)
	}
	switch class {
	case Initial, Class3, Class4:
		if floor != version {
			return fmt.Errorf("%w: compatibility floor is not the own version", ErrManifest)
		}
	case Class2:
		if floor < 1 || floor > *parent {
			return fmt.Errorf("%w: compatibility floor is beyond the parent version", ErrManifest)
		}
	default:
		return fmt.Errorf("%w: unknown transition class", ErrManifest)
	}
	return nil
}

// CheckParent checks that m is a legal next step after parent.
func (m *Manifest) CheckParent(parent *Manifest) error {
	if m.ParentSchema == nil || *m.ParentSchema != parent.Ref() {
		return fmt.Errorf("%w: parent reference names another manifest", ErrManifest)
	}
	if m.TransitionClass == Class2 && m.CompatibilityFloor != parent.CompatibilityFloor {
		return fmt.Errorf("%w: a class 2 step must inherit the compatibility floor", ErrManifest)
	}
	return nil
}

func (t *TableDef) validate() error {
	if t.Composition != SingleScope && t.Composition != MultiScope {
		return fmt.Errorf("unknown composition")
	}
	var ids, names unique
	for i := range t.Fields {
		f := &t.Fields[i]
		if !ids.add(f.FieldID) || !names.add(f.Name) {
			return fmt.Errorf("field %d: id or name is empty, malformed or taken", i)
		}
		spec, err := f.spec()
		if err != nil {
			return fmt.Errorf("field %d: %w", i, err)
		}
		if f.FieldID == t.PrimaryKeyFieldID && (f.Nullable || f.Writable || !spec.Type.IsKey()) {
			return fmt.Errorf("field %d: a primary key is string, int or int64, not nullable and not writable", i)
		}
	}
	if !ids.has(t.PrimaryKeyFieldID) {
		return fmt.Errorf("primary key is not a field")
	}
	for _, id := range []*string{t.Lifecycle.CreatedAtFieldID, t.Lifecycle.UpdatedAtFieldID, t.Lifecycle.DeletedAtFieldID} {
		if id != nil && !ids.has(*id) {
			return fmt.Errorf("lifecycle names an unknown field")
		}
	}
	return t.validateIndexes(ids)
}

func (t *TableDef) validateIndexes(fields unique) error {
	var ids, names unique
	for i, index := range t.Indexes {
		if !ids.add(index.IndexID) || !names.add(index.Name) {
			return fmt.Errorf("index %d: id or name is empty, malformed or taken", i)
		}
		if len(index.FieldIDs) == 0 {
			return fmt.Errorf("index %d: no fields", i)
		}
		for _, id := range index.FieldIDs {
			if !fields.has(id) {
				return fmt.Errorf("index %d: unknown field", i)
			}
		}
	}
	return nil
}

// Bounds of numeric(precision, scale) in PostgreSQL.
const (
	maxPrecision = 1000
	maxScale     = 1000
)

func (f *FieldDef) spec() (FieldSpec, error) {
	typ, ok := ParseType(f.Type)
	if !ok {
		return FieldSpec{}, fmt.Errorf("unknown type")
	}
	spec := FieldSpec{Type: typ, Nullable: f.Nullable}
	if f.Precision == nil && f.Scale == nil {
		return spec, nil
	}
	if typ != Decimal || f.Precision == nil || f.Scale == nil ||
		*f.Precision < 1 || *f.Precision > maxPrecision || *f.Scale < -maxScale || *f.Scale > maxScale {
		return FieldSpec{}, fmt.Errorf("precision and scale belong together, to a decimal, and within bounds")
	}
	spec.Precision, spec.Scale = int(*f.Precision), int(*f.Scale)
	return spec, nil
}

// unique collects non-empty, well-formed texts that must not repeat.
type unique map[string]struct{}

func (u *unique) add(text string) bool {
	if text == "" || checkIdentifier([]byte(text)) != nil || u.has(text) {
		return false
	}
	if *u == nil {
		*u = unique{}
	}
	(*u)[text] = struct{}{}
	return true
}

func (u unique) has(text string) bool {
	_, found := u[text]
	return found
}
