package main

import (
	"context"
	"fmt"

	"synchro/canonical"
	"synchro/client"
)

const (
	pushRows  = 1000
	pushBatch = 100
)

const pushTable = `
CREATE SCHEMA IF NOT EXISTS bench;
CREATE TABLE bench.note (id bigint PRIMARY KEY, owner text NOT NULL, n int NOT NULL CHECK (n >= 0), body text NOT NULL);
ALTER TABLE bench.note ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON bench.note TO synchro_writer
  USING (owner = (SELECT synchro.synchro_subject())) WITH CHECK (owner = (SELECT synchro.synchro_subject()));
GRANT USAGE ON SCHEMA bench TO synchro_owner, synchro_worker, synchro_writer;
GRANT SELECT ON bench.note TO synchro_owner, synchro_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON bench.note TO synchro_writer;
INSERT INTO bench.note SELECT i, 'u0', 0, 'a note of some words' FROM generate_series(0, 999) i;
SELECT synchro.synchro_prepare_projection_view('bench.note', 'bench_note', '{id,owner}');
CREATE FUNCTION bench.note_scopes(p_row_key bigint) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, synchro
BEGIN ATOMIC SELECT 'user:' || i.owner FROM synchro_projection.bench_note i WHERE i.id = p_row_key; END;
REVOKE EXECUTE ON FUNCTION bench.note_scopes(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION bench.note_scopes(bigint) TO synchro_worker;
SELECT synchro.synchro_register_table('bench.note', 'bench.note_scopes');`

// measurePush times batches of 100 updates of as many rows, over HTTP, each written against the version that the one before it gave.
func measurePush(ctx context.Context, b *bench) error {
	s, err := newStage(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.exec(ctx, "BEGIN;"+pushTable+"COMMIT"); err != nil {
		return err
	}
	if err := s.activated(ctx); err != nil {
		return err
	}
	serve, err := s.serve(ctx)
	if err != nil {
		return err
	}
	defer serve.Stop()
	session := newSession(serve, "u0", "push")
	if err := session.Connect(ctx, false); err != nil {
		return err
	}
	p := &pusher{session: session, versions: map[int]string{}}
	rows, err := s.conn.Query(ctx, fmt.Sprintf("SELECT id, server_version FROM synchro_projection.bench_note v JOIN synchro_data.r_%d p ON p.c1 = v.id", 1))
	if err != nil {
		return err
	}
	for rows.Next() {
		var id int
		var version string
		if err := rows.Scan(&id, &version); err != nil {
			return err
		}
		p.versions[id] = version
	}
	if err := rows.Err(); err != nil {
		return err
	}
	var rate, used series
	for range b.runs {
		const rounds = 50
		before := treeTime(s.PID()) + cpu(serve.PID())
		t, err := timed(func() error {
			for range rounds {
				if err := p.push(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		rate = append(rate, rounds*pushBatch/t)
		used = append(used, (treeTime(s.PID())+cpu(serve.PID())-before)*1e6/(rounds*pushBatch))
		if err := s.materialized(ctx); err != nil {
			return err
		}
	}
	b.figure("push of 100 single-row updates", "mutations/s", rate, 5000, 0)
	b.figure("push of 100 single-row updates: processor time of shim, server and worker", "µs/mutation", used, 0, 0)
	return nil
}

// pusher knows the versions of rows, as a device does.
type pusher struct {
	session  *client.Session
	versions map[int]string
	next     int
}

func (p *pusher) push(ctx context.Context) error {
	table := p.session.Manifest().Tables[0]
	field := func(name string) string {
		for _, f := range table.Fields {
			if f.Name == name {
				return f.FieldID
			}
		}
		return ""
	}
	var mutations []canonical.Mutation
	var ids []int
	for range pushBatch {
		id := p.next % pushRows
		p.next++
		ids = append(ids, id)
		mutations = append(mutations, canonical.Mutation{TableID: table.TableID, Op: "update", BaseVersion: p.versions[id],
			Key:     canonical.Value{FieldID: field("id"), JSON: fmt.Appendf(nil, `"%d"`, id)},
			Columns: []canonical.Value{{FieldID: field("n"), JSON: fmt.Appendf(nil, "%d", p.next)}}})
	}
	answer, err := p.session.Push(ctx, mutations, false)
	if err != nil {
		return err
	}
	if len(answer.Accepted) != pushBatch {
		return fmt.Errorf("%d of %d mutations were accepted", len(answer.Accepted), pushBatch)
	}
	for i, a := range answer.Accepted {
		p.versions[ids[i]] = a.Row.ServerVersion
	}
	return nil
}
