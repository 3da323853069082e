package protocol

import (
	"encoding/json"

	"synchro/internal/ijson"
)

// RebuildRequest asks for one page of a snapshot of one scope.
type RebuildRequest struct {
	ClientID         string    `json:"client_id"`
	ClientGeneration *int64    `json:"client_generation,omitempty"`
	Schema           SchemaRef `json:"schema"`
	Scope            string    `json:"scope"`
	RebuildID        string    `json:"rebuild_id"`
	Cursor           *string   `json:"cursor"`
	Limit            int64     `json:"limit"`

	Raw []byte `json:"-"` // the body as received, for the database
}

// RebuildResponse is one page. FinalCursor and Checksum come with the last one.
type RebuildResponse struct {
	Records     []Row
	Cursor      *string
	HasMore     bool
	FinalCursor string
	Checksum    string
}

var (
	rebuildShape = ijson.NewShape([]string{"client_id", "schema", "scope", "rebuild_id", "cursor", "limit"},
		"client_generation")
	rebuildResponseShape = ijson.NewShape([]string{"records", "cursor", "has_more"},
		"final_scope_cursor", "checksum")
	recordShape = ijson.NewShape([]string{"table", "pk", "row", "row_checksum", "server_version"})
)

// DecodeRebuild reads a request.
func DecodeRebuild(body []byte) (*RebuildRequest, error) {
	r, value := open(body)
	v := r.Object(rebuildShape, value)
	q := &RebuildRequest{
		ClientID: name(v, 0), Schema: currentSchema(r, v, 1), Scope: name(v, 2), RebuildID: uuid(v, 3),
		Cursor: nullableName(v, 4), Limit: within(v, 5, 1, MaxLimit), ClientGeneration: generation(v, 6), Raw: body,
	}
	if r.Err != nil {
		return nil, invalidRequest(r.Err)
	}
	return q, nil
}

// Encode returns the request body.
func (q *RebuildRequest) Encode() ([]byte, error) { return json.Marshal(q) }

// DecodeRebuildResponse reads a response. Rows alias the body.
func DecodeRebuildResponse(body []byte) (*RebuildResponse, error) {
	r, value := openResponse(body)
	v := r.Object(rebuildResponseShape, value)
	p := &RebuildResponse{Cursor: v.NullableText(1), HasMore: v.Bool(2)}
	var k known
	r.Each(v.Raw(0), func(raw []byte) { p.Records = append(p.Records, readRecord(r, &k, raw)) })
	if v.Has(3) == p.HasMore || v.Has(4) == p.HasMore || (p.Cursor != nil) != p.HasMore {
		v.Refuse(2, errTerminal)
	}
	if v.Has(3) {
		p.FinalCursor = v.Text(3)
	}
	if v.Has(4) {
		p.Checksum = checksum(r, v.Raw(4))
	}
	return p, responseError(r)
}

func readRecord(r *ijson.Reader, k *known, raw []byte) Row {
	v := r.Object(recordShape, raw)
	row := Row{Table: k.readTable(v, 0), ServerVersion: v.Text(4)}
	row.KeyField, row.Key = k.readKey(r, v.Raw(1))
	row.Columns, row.Checksum = readRow(r, v, 2, 3)
	return row
}
