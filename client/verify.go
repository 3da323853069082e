package client

import (
	"synchro/canonical"
	"synchro/protocol"
)

// verifier checks rows under one manifest. It serves one goroutine.
type verifier struct {
	manifest *canonical.Manifest
	hash     [canonical.HashSize]byte
	tables   map[string]*canonical.Table
	digests  map[string]*canonical.Digester
}

func newVerifier(body []byte) (*verifier, error) {
	manifest, err := canonical.ParseManifest(body)
	if err != nil {
		return nil, err
	}
	tables, err := manifest.Prepare()
	if err != nil {
		return nil, err
	}
	v := &verifier{manifest: manifest, tables: tables, digests: map[string]*canonical.Digester{}}
	v.hash, _ = canonical.ParseHash(manifest.SchemaHash)
	for id, table := range tables {
		v.digests[id] = table.NewDigester()
	}
	return v, nil
}

// checked is a row whose digest was found right. Its key aliases memory of the
// verifier and is good until the next row.
type checked struct {
	table     string
	prefix    string
	key       []byte
	row       held
	tombstone bool
}

// row recomputes the digest of a row that was sent with its columns.
func (v *verifier) row(r *protocol.Row) (checked, error) {
	table, d := v.tables[r.Table], v.digests[r.Table]
	if table == nil {
		return checked{}, mismatch("row of a table that the manifest lacks")
	}
	sum, err := d.Row(r.Columns, r.ServerVersion)
	if err != nil {
		return checked{}, mismatch("row is not canonical: %w", err)
	}
	if r.KeyField != table.KeyFieldID() {
		return checked{}, mismatch("key names another field")
	}
	if err := d.MatchKey(r.Key); err != nil {
		return checked{}, mismatch("%w", err)
	}
	if want, ok := canonical.ParseHash(r.Checksum); !ok || sum != want {
		return checked{}, mismatch("row digest differs from its checksum")
	}
	prefix := table.IdentityPrefix()
	return checked{table: r.Table, prefix: prefix, key: d.Identity()[len(prefix):],
		row: held{digest: sum, version: r.ServerVersion}, tombstone: d.Tombstone()}, nil
}

// key encodes the key of a row that was sent without columns.
func (v *verifier) key(r *protocol.Row, scratch []byte) (checked, []byte, error) {
	table := v.tables[r.Table]
	if table == nil {
		return checked{}, scratch, mismatch("row of a table that the manifest lacks")
	}
	if r.KeyField != table.KeyFieldID() {
		return checked{}, scratch, mismatch("key names another field")
	}
	identity, err := table.AppendIdentity(scratch[:0], r.Key)
	if err != nil {
		return checked{}, scratch, mismatch("key is not canonical: %w", err)
	}
	prefix := table.IdentityPrefix()
	return checked{table: r.Table, prefix: prefix, key: identity[len(prefix):]}, identity, nil
}
