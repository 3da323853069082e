package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"synchro/internal/pgtest"
	"synchro/protocol"
)

const rebuildRows = 100_000

// measureRebuild copies one scope over HTTP: as fast as the pages come, and with every digest verified, against COPY of the
// same rows.
func measureRebuild(ctx context.Context, b *bench) error {
	s, serve, err := servedStage(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	defer serve.Stop()
	if err := s.fill(ctx, "item", 0, rebuildRows, 1); err != nil {
		return err
	}
	if err := s.materialized(ctx); err != nil {
		return err
	}
	var first, staged, verified, megabytes, copied, stage series
	used := map[string]series{}
	for i := range b.runs {
		// A write in between makes each run stage anew.
		if err := s.exec(ctx, "UPDATE bench.item SET n = n + 1 WHERE id = $1", i); err != nil {
			return err
		}
		if err := s.materialized(ctx); err != nil {
			return err
		}
		shim, server := cpu(serve.PID()), treeTime(s.PID())
		var size int64
		t, err := timed(func() (err error) { size, err = fetch(ctx, serve, fmt.Sprintf("fetch-%d", i)); return err })
		if err != nil {
			return err
		}
		used["shim"] = append(used["shim"], (cpu(serve.PID())-shim)*1e6/rebuildRows)
		used["server"] = append(used["server"], (treeTime(s.PID())-server)*1e6/rebuildRows)
		first, megabytes = append(first, rebuildRows/t), append(megabytes, float64(size)/1e6/t)

		if t, err = timed(func() error { _, err := fetch(ctx, serve, fmt.Sprintf("again-%d", i)); return err }); err != nil {
			return err
		}
		staged = append(staged, rebuildRows/t)

		session := newSession(serve, "u0", fmt.Sprintf("verify-%d", i))
		if err := session.Connect(ctx, false); err != nil {
			return err
		}
		if t, err = timed(func() error { return session.Rebuild(ctx, "user:u0") }); err != nil {
			return err
		}
		verified = append(verified, rebuildRows/t)

		if t, err = timed(func() error { return s.stageScope(ctx) }); err != nil {
			return err
		}
		stage = append(stage, rebuildRows/t)
		if t, err = timed(func() error {
			_, err := s.conn.PgConn().CopyTo(ctx, io.Discard, "COPY (SELECT id, owner, n, body FROM bench.item ORDER BY id) TO STDOUT")
			return err
		}); err != nil {
			return err
		}
		copied = append(copied, rebuildRows/t)
	}
	b.against("rebuild of 100 000 rows of 200 octets over HTTP, against COPY", "rows/s", first, copied, 0, 0)
	b.figure("rebuild of 100 000 rows of 200 octets over HTTP, rate", "rows/s", first, 50_000, 0)
	b.figure("rebuild over HTTP, throughput", "MB/s", megabytes, 0, 0)
	b.figure("rebuild over HTTP: processor time of the server", "µs/row", used["server"], 0, 0)
	b.figure("rebuild over HTTP: processor time of the shim", "µs/row", used["shim"], 0, 0)
	b.against("rebuild from a stage that is there, against COPY", "rows/s", staged, copied, 0, 0)
	b.figure("rebuild of 100 000 rows from a stage that is there, rate", "rows/s", staged, 150_000, 0)
	b.against("rebuild verified by the Go client, against COPY", "rows/s", verified, copied, 0, 0)
	b.against("staging alone, against COPY", "rows/s", stage, copied, 0, 0)
	b.figure("staging alone, rate", "rows/s", stage, 50_000, 0)
	b.figure("memory of the shim after rebuilds", "MiB", series{rss(serve.PID(), false)}, 0, 0)
	return nil
}

// stageScope makes a stage in a transaction that is rolled back. Its digest is in the cache already.
func (s *stage) stageScope(ctx context.Context) error {
	tx, err := s.conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	_, err = tx.Exec(ctx, `SELECT synchro._stage_scope(s.scope_id, s.scope_no, s.high_lsn, s.membership_generation, s.retention_generation, p)
		FROM synchro.scope s, synchro.progress p WHERE s.scope_id = 'user:u0'`)
	return err
}

// fetch rebuilds the scope of user u0 as a new client and reads of each page only what asks for the next one. It returns
// the octets received.
func fetch(ctx context.Context, serve *pgtest.Serve, id string) (size int64, err error) {
	c := newClient(serve, "u0")
	connected, err := c.Connect(ctx, &protocol.ConnectRequest{ClientID: id, Platform: "bench", AppVersion: "1.0.0",
		ProtocolVersion: protocol.Version, KnownScopes: map[string]protocol.ScopeCursor{}})
	if err != nil {
		return 0, err
	}
	token, err := c.Token(ctx)
	if err != nil {
		return 0, err
	}
	q := &protocol.RebuildRequest{ClientID: id, ClientGeneration: &connected.ClientGeneration, Schema: connected.Schema.SchemaRef,
		Scope: "user:u0", RebuildID: uuid.NewString(), Limit: protocol.MaxLimit}
	var page bytes.Buffer
	for {
		if err := post(ctx, c.HTTP, serve.URL+"/sync/rebuild", token, q, &page); err != nil {
			return size, err
		}
		size += int64(page.Len())
		at := bytes.LastIndex(page.Bytes(), []byte(`],"cursor":`))
		if at < 0 {
			return size, errors.New("a page without cursor")
		}
		var end struct {
			Cursor  *string `json:"cursor"`
			HasMore bool    `json:"has_more"`
		}
		if err := json.Unmarshal(append([]byte("{"), page.Bytes()[at+2:]...), &end); err != nil {
			return size, err
		}
		if !end.HasMore {
			return size, nil
		}
		q.Cursor = end.Cursor
	}
}

func post(ctx context.Context, client *http.Client, url, token string, body any, into *bytes.Buffer) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	into.Reset()
	if _, err := into.ReadFrom(resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, into)
	}
	return nil
}
