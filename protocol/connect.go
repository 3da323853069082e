package protocol

import (
	"encoding/json"

	"synchro/canonical"
	"synchro/internal/ijson"
)

// SchemaRef names one manifest; the zero value is the sentinel of a fresh client.
type SchemaRef = canonical.SchemaRef

// ScopeCursor is what a client holds of one scope; nil before its first rebuild.
type ScopeCursor struct {
	Cursor *string `json:"cursor"`
}

// ConnectRequest negotiates version, generation, schema and scopes.
type ConnectRequest struct {
	ClientID         string                 `json:"client_id"`
	ClientGeneration *int64                 `json:"client_generation,omitempty"`
	Platform         string                 `json:"platform"`
	AppVersion       string                 `json:"app_version"`
	ProtocolVersion  int64                  `json:"protocol_version"`
	SchemaReset      bool                   `json:"schema_reset,omitempty"`
	Schema           SchemaRef              `json:"schema"`
	ScopeSetVersion  int64                  `json:"scope_set_version"`
	KnownScopes      map[string]ScopeCursor `json:"known_scopes"`
	SeedReceipts     map[string]string      `json:"seed_receipts,omitempty"`

	Raw []byte `json:"-"` // the body as received, for the database
}

// Schema actions of a connect response.
const (
	ActionNone         = "none"
	ActionReplace      = "replace"
	ActionRebuildLocal = "rebuild_local"
	ActionUnsupported  = "unsupported"
)

// ConnectResponse is the answer to a connect.
type ConnectResponse struct {
	ServerTime         string
	ProtocolVersion    int64
	ClientGeneration   int64
	ScopeSetVersion    int64
	Schema             SchemaAction
	Scopes             ScopeDelta
	ScopeCursorUpdates map[string]*string
	SchemaDefinition   []byte // the manifest body, nil unless the action carries it
	AffectedScopes     []string
}

// SchemaAction tells a client what to do about its schema.
type SchemaAction struct {
	SchemaRef
	Action string
	Reason string // of an unsupported schema only
}

// ScopeDelta is the difference between the assigned scopes and those presented.
type ScopeDelta struct {
	Add    []ScopeAdded
	Remove []string
}

// ScopeAdded is a newly assigned scope.
type ScopeAdded struct {
	ID     string
	Cursor *string
}

var (
	connectShape = ijson.NewShape([]string{"client_id", "platform", "app_version", "protocol_version", "schema",
		"scope_set_version", "known_scopes"}, "client_generation", "schema_reset", "seed_receipts")
	connectResponseShape = ijson.NewShape([]string{"server_time", "protocol_version", "client_generation",
		"scope_set_version", "schema", "scopes", "scope_cursor_updates"}, "schema_definition", "affected_scopes")
	actionShape     = ijson.NewShape([]string{"version", "hash", "action"}, "reason")
	deltaShape      = ijson.NewShape([]string{"add", "remove"})
	addedScopeShape = ijson.NewShape([]string{"id", "cursor"})
)

// DecodeConnect reads a request. The version gate comes before the shape: what
// another protocol version looks like is not known here. Whether a schema
// reference is malformed is the database's to say, it has an error of its own.
func DecodeConnect(body []byte) (*ConnectRequest, error) {
	r, value := open(body)
	if r.Err == nil {
		if err := checkVersion(value); err != nil {
			return nil, err
		}
	}
	v := r.Object(connectShape, value)
	q := &ConnectRequest{
		ClientID: name(v, 0), Platform: name(v, 1), AppVersion: name(v, 2), ProtocolVersion: v.Integer(3),
		Schema:          looseSchema(v.Raw(4)),
		ScopeSetVersion: within(v, 5, 0, ijson.MaxSafe), KnownScopes: scopeCursors(r, v.Raw(6)),
		ClientGeneration: generation(v, 7), Raw: body,
	}
	if v.Has(8) {
		q.SchemaReset = v.Bool(8)
	}
	if v.Has(9) {
		q.SeedReceipts = receipts(r, v.Raw(9))
		if len(q.SeedReceipts) == 0 {
			v.Refuse(9, errEmpty)
		}
	}
	if r.Err != nil {
		return nil, invalidRequest(r.Err)
	}
	return q, nil
}

// looseSchema reads what may be no schema reference at all; that has an answer
// of its own, which repeats what was received.
func looseSchema(raw []byte) SchemaRef {
	r := ijson.Reader{}
	ref := canonical.ReadSchemaRef(&r, raw)
	if r.Err != nil {
		return SchemaRef{}
	}
	return ref
}

// checkVersion answers a request that names another protocol version.
func checkVersion(value []byte) error {
	if ijson.KindOf(value) != ijson.Object {
		return nil
	}
	var upgrade *Error
	err := ijson.Members(value, func(name, raw []byte) error {
		if string(name) == "protocol_version" {
			if n, err := ijson.Integer(raw); err == nil && n != Version {
				upgrade = NewError(ErrUpgradeRequired, "this server speaks another protocol version",
					Extra{"required_protocol_version", Version}, Extra{"received_protocol_version", n})
			}
		}
		return nil
	})
	if err == nil && upgrade != nil {
		return upgrade
	}
	return nil
}

func receipts(r *ijson.Reader, raw []byte) map[string]string {
	out := map[string]string{}
	for _, m := range r.Map(raw) {
		receipt := r.Text(m.Value)
		if receipt == "" {
			r.Keep(errEmpty)
		}
		out[mapKey(r, m.Name)] = receipt
	}
	return out
}

// Encode returns the request body.
func (q *ConnectRequest) Encode() ([]byte, error) {
	out := *q
	if out.KnownScopes == nil {
		out.KnownScopes = map[string]ScopeCursor{}
	}
	return json.Marshal(&out)
}

// DecodeConnectResponse reads a response.
func DecodeConnectResponse(body []byte) (*ConnectResponse, error) {
	r, value := openResponse(body)
	v := r.Object(connectResponseShape, value)
	a := r.Object(actionShape, v.Raw(4))
	p := &ConnectResponse{
		ServerTime: v.Text(0), ProtocolVersion: v.Integer(1), ClientGeneration: within(v, 2, 1, ijson.MaxSafe),
		ScopeSetVersion: within(v, 3, 0, ijson.MaxSafe),
		Schema:          SchemaAction{SchemaRef: SchemaRef{Version: a.Integer(0), Hash: a.Text(1)}, Action: a.Text(2)},
		Scopes:          scopeDelta(r, v.Raw(5)), ScopeCursorUpdates: map[string]*string{}, SchemaDefinition: v.Raw(7),
	}
	if a.Has(3) {
		p.Schema.Reason = a.Text(3)
	}
	for _, m := range r.Map(v.Raw(6)) {
		p.ScopeCursorUpdates[string(m.Name)] = nullableCursor(r, m.Value)
	}
	if v.Has(8) {
		p.AffectedScopes = texts(r, v.Raw(8))
	}
	wantDefinition := p.Schema.Action == ActionReplace || p.Schema.Action == ActionRebuildLocal
	if wantDefinition != v.Has(7) {
		v.Refuse(7, errAction)
	}
	if (p.Schema.Action == ActionRebuildLocal) != (len(p.AffectedScopes) > 0) {
		v.Refuse(8, errAction)
	}
	return p, responseError(r)
}
