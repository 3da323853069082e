package protocol

import (
	"encoding/json"

	"synchro/internal/ijson"
)

// PullRequest asks for one incremental page over the assigned scopes.
type PullRequest struct {
	ClientID         string                 `json:"client_id"`
	ClientGeneration *int64                 `json:"client_generation,omitempty"`
	Schema           SchemaRef              `json:"schema"`
	ScopeSetVersion  int64                  `json:"scope_set_version"`
	Scopes           map[string]ScopeCursor `json:"scopes"`
	Limit            int64                  `json:"limit"`

	Raw []byte `json:"-"` // the body as received, for the database
}

// Operations of a change.
const (
	OpUpsert = "upsert"
	OpDelete = "delete"
)

// Change is the latest effect on one row of one scope.
type Change struct {
	Scope string
	Op    string
	Row
}

// PullResponse is one page.
type PullResponse struct {
	Changes         []Change
	ScopeSetVersion int64
	ScopeCursors    map[string]string
	ScopeUpdates    ScopeDelta
	Rebuild         []string
	HasMore         bool
	Checksums       map[string]string // scope id to hex digest; terminal pages only
}

var (
	pullShape = ijson.NewShape([]string{"client_id", "schema", "scope_set_version", "scopes", "limit"}, "client_generation")

	pullResponseShape = ijson.NewShape([]string{"changes", "scope_set_version", "scope_cursors", "scope_updates",
		"rebuild", "has_more"}, "checksums")
	changeShape = ijson.NewShape([]string{"scope", "op", "table", "pk", "server_version"}, "row", "row_checksum")
)

// DecodePull reads a request.
func DecodePull(body []byte) (*PullRequest, error) {
	r, value := open(body)
	v := r.Object(pullShape, value)
	q := &PullRequest{
		ClientID: name(v, 0), Schema: currentSchema(r, v, 1), ScopeSetVersion: within(v, 2, 0, ijson.MaxSafe),
		Scopes: scopeCursors(r, v.Raw(3)), Limit: within(v, 4, 1, MaxLimit), ClientGeneration: generation(v, 5), Raw: body,
	}
	if r.Err != nil {
		return nil, invalidRequest(r.Err)
	}
	return q, nil
}

// Encode returns the request body.
func (q *PullRequest) Encode() ([]byte, error) {
	out := *q
	if out.Scopes == nil {
		out.Scopes = map[string]ScopeCursor{}
	}
	return json.Marshal(&out)
}

// DecodePullResponse reads a response. Rows alias the body.
func DecodePullResponse(body []byte) (*PullResponse, error) {
	r, value := openResponse(body)
	v := r.Object(pullResponseShape, value)
	p := &PullResponse{
		ScopeSetVersion: within(v, 1, 0, ijson.MaxSafe), ScopeCursors: map[string]string{},
		ScopeUpdates: scopeDelta(r, v.Raw(3)), Rebuild: texts(r, v.Raw(4)), HasMore: v.Bool(5),
	}
	var k known
	r.Each(v.Raw(0), func(raw []byte) { p.Changes = append(p.Changes, readChange(r, &k, raw)) })
	for _, m := range r.Map(v.Raw(2)) {
		p.ScopeCursors[string(m.Name)] = r.Text(m.Value)
	}
	if v.Has(6) == p.HasMore {
		v.Refuse(6, errTerminal)
	}
	if v.Has(6) {
		p.Checksums = map[string]string{}
		for _, m := range r.Map(v.Raw(6)) {
			p.Checksums[string(m.Name)] = checksum(r, m.Value)
		}
	}
	return p, responseError(r)
}

func readChange(r *ijson.Reader, k *known, raw []byte) Change {
	v := r.Object(changeShape, raw)
	c := Change{Scope: v.Text(0), Op: v.Text(1), Row: Row{Table: k.readTable(v, 2), ServerVersion: v.Text(4)}}
	c.KeyField, c.Key = k.readKey(r, v.Raw(3))
	c.Columns, c.Checksum = readRow(r, v, 5, 6)
	if c.Op != OpUpsert && c.Op != OpDelete || c.Op == OpUpsert && c.Columns == nil {
		v.Refuse(1, errRange)
	}
	return c
}
