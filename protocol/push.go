package protocol

import (
	"encoding/json"
	"errors"

	"synchro/canonical"
	"synchro/internal/ijson"
)

// PushRequest is one immutable batch. Its generation is 0 when the request has
// none, which the database answers with an error of its own.
type PushRequest struct {
	canonical.Batch

	Raw []byte // the body as received, for the database
}

// Statuses of an outcome.
const (
	StatusApplied  = "applied"
	StatusConflict = "conflict"
	StatusRejected = "rejected_terminal"
)

// PushResponse partitions the mutations of a batch.
type PushResponse struct {
	BatchID    string
	ServerTime string
	Accepted   []Outcome
	Rejected   []Outcome
}

// Outcome is what became of one mutation. Row holds the current state as far
// as the outcome carries it.
type Outcome struct {
	MutationID           string
	Status               string
	Code                 string
	Message              string
	OutcomeSchema        SchemaRef
	Row                  Row
	OverwroteVersion     string
	Retryable            bool
	AuthoredSchema       *SchemaRef
	CurrentSchema        *SchemaRef
	IncompatibleFieldIDs []string
}

var (
	pushResponseShape = ijson.NewShape([]string{"batch_id", "server_time", "accepted", "rejected"})

	outcomeShape = ijson.NewShape([]string{"mutation_id", "table", "pk", "status", "outcome_schema"},
		"code", "message", "server_version", "server_row", "row_checksum", "overwrote_version", "retryable",
		"authored_schema", "current_schema", "incompatible_field_ids")
)

// DecodePush reads a request and checks everything that needs no database.
func DecodePush(body []byte) (*PushRequest, error) {
	if len(body) > MaxPushBody {
		return nil, invalidRequest(ErrTooLarge)
	}
	if err := ijson.Validate(body, MaxDepth); err != nil {
		return nil, invalidRequest(err)
	}
	batch, err := canonical.ParseBatch(body)
	if err != nil && !errors.Is(err, canonical.ErrNoGeneration) {
		return nil, invalidRequest(err)
	}
	return &PushRequest{Batch: *batch, Raw: body}, nil
}

// wireMutation is a mutation as it travels.
type wireMutation struct {
	MutationID     string                     `json:"mutation_id"`
	Table          string                     `json:"table"`
	Key            map[string]json.RawMessage `json:"pk"`
	AuthoredSchema SchemaRef                  `json:"authored_schema"`
	Op             string                     `json:"op"`
	BaseVersion    string                     `json:"base_version,omitempty"`
	ClientVersion  string                     `json:"client_version"`
	Columns        map[string]json.RawMessage `json:"columns,omitzero"`
}

// Encode returns the request body.
func (q *PushRequest) Encode() ([]byte, error) {
	mutations := make([]wireMutation, len(q.Mutations))
	for i, m := range q.Mutations {
		w := wireMutation{
			MutationID: m.ID, Table: m.TableID, Key: map[string]json.RawMessage{m.Key.FieldID: m.Key.JSON},
			AuthoredSchema: m.Authored, Op: m.Op, BaseVersion: m.BaseVersion, ClientVersion: m.ClientVersion,
		}
		if m.Columns != nil {
			w.Columns = make(map[string]json.RawMessage, len(m.Columns))
			for _, c := range m.Columns {
				w.Columns[c.FieldID] = c.JSON
			}
		}
		mutations[i] = w
	}
	return json.Marshal(struct {
		ClientID         string         `json:"client_id"`
		ClientGeneration int64          `json:"client_generation,omitempty"`
		BatchID          string         `json:"batch_id"`
		Schema           SchemaRef      `json:"schema"`
		Atomic           bool           `json:"atomic,omitempty"`
		Mutations        []wireMutation `json:"mutations"`
	}{q.ClientID, q.Generation, q.ID, q.Schema, q.Atomic, mutations})
}

// DecodePushResponse reads a response. Rows alias the body.
func DecodePushResponse(body []byte) (*PushResponse, error) {
	r, value := openResponse(body)
	v := r.Object(pushResponseShape, value)
	p := &PushResponse{BatchID: v.Text(0), ServerTime: v.Text(1)}
	r.Each(v.Raw(2), func(raw []byte) { p.Accepted = append(p.Accepted, readOutcome(r, raw)) })
	r.Each(v.Raw(3), func(raw []byte) { p.Rejected = append(p.Rejected, readOutcome(r, raw)) })
	return p, responseError(r)
}

func readOutcome(r *ijson.Reader, raw []byte) Outcome {
	v := r.Object(outcomeShape, raw)
	o := Outcome{MutationID: v.Text(0), Status: v.Text(3), OutcomeSchema: canonical.ReadSchemaRef(r, v.Raw(4)),
		Code: optionalText(v, 5), Message: optionalText(v, 6), OverwroteVersion: optionalText(v, 10)}
	o.Row.Table = v.Text(1)
	o.Row.KeyField, o.Row.Key = new(known).readKey(r, v.Raw(2))
	o.Row.ServerVersion = optionalText(v, 7)
	o.Row.Columns, o.Row.Checksum = readRow(r, v, 8, 9)
	if v.Has(11) {
		o.Retryable = v.Bool(11)
	}
	for i, ref := range []**SchemaRef{&o.AuthoredSchema, &o.CurrentSchema} {
		if v.Has(12 + i) {
			read := canonical.ReadSchemaRef(r, v.Raw(12+i))
			*ref = &read
		}
	}
	if v.Has(14) {
		o.IncompatibleFieldIDs = texts(r, v.Raw(14))
	}
	return o
}
