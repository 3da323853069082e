package worker

import (
	"context"
	"fmt"

	"github.com/jackc/pglogrepl"
)

// admit makes the entries of all rows of a projection that has none yet, in chunks and in key order, inside the open database transaction.
// All effects have one position. Relations that share it come in the order of their table ids.
func (a *applier) admit(ctx context.Context, rel *relation, at pglogrepl.LSN, ordinal int64) error {
	if rel.kind != kindSynced {
		return nil
	}
	cursor := fmt.Sprintf("DECLARE admit NO SCROLL CURSOR FOR SELECT %s, %s, p.server_version FROM %s p ORDER BY 2",
		rel.sql.keyText(), rel.sql.returning(), rel.sql.table())
	if _, err := query(ctx, a.conn, cursor); err != nil {
		return err
	}
	fetch := fmt.Sprintf("FETCH %d FROM admit", a.cfg.Limits().BatchMaxRows)
	for {
		rows := a.conn.ExecParams(ctx, fetch, nil, nil, nil, readFormats).Read()
		if rows.Err != nil {
			return &failure{relNo: rel.no, err: rows.Err}
		}
		if len(rows.Rows) == 0 {
			break
		}
		ch := &changes{rel: rel, keys: array{elem: oidText}, rows: make([]rowChange, len(rows.Rows))}
		for i, v := range rows.Rows {
			r := &ch.rows[i]
			*r = rowChange{lsn: at, ordinal: ordinal, key: addKey(&ch.keys, v[0])}
			copy(r.version[:], v[6])
			if err := r.read(v[1:6]); err != nil {
				return err
			}
		}
		if err := a.pipeline.run(ctx, []call{a.evaluation(ch)}); err != nil {
			return err
		}
		calls, err := a.settle(ctx, []*changes{ch}, at, numberBaseline)
		if err != nil {
			return err
		}
		if len(calls) > 0 {
			if err := a.pipeline.run(ctx, calls); err != nil {
				return err
			}
		}
	}
	_, err := query(ctx, a.conn, "CLOSE admit")
	return err
}
