package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// call is one execution of a statement.
type call struct {
	*statement
	params [][]byte
	binary []int16                     // result formats, nil: all text
	onRow  func(values [][]byte) error // values are valid only during the call
	expect int64                       // rows that it must affect or return, -1: any
	relNo  int32
}

// errCount says that a statement met another number of rows than it must: the projection is not what the stream says.
var errCount = errors.New("a projection is not what the stream says")

// failure is an error of a statement of one relation.
type failure struct {
	relNo int32
	err   error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// pipeline is a connection on which statements are prepared when first used, and many go in one round trip.
type pipeline struct {
	conn     *pgconn.PgConn
	prepared map[string]bool
}

func newPipeline(conn *pgconn.PgConn) *pipeline {
	return &pipeline{conn: conn, prepared: map[string]bool{}}
}

// forget drops all prepared statements: those of an earlier generation are of no use any more.
func (p *pipeline) forget(ctx context.Context) error {
	clear(p.prepared)
	_, err := query(ctx, p.conn, "DEALLOCATE ALL")
	return err
}

// run sends calls in one round trip. Those of tail run after what is before them is committed, unless a transaction is open.
func (p *pipeline) run(ctx context.Context, calls []call, tail ...call) error {
	stop := context.AfterFunc(ctx, func() { _ = p.conn.Conn().SetDeadline(time.Unix(1, 0)) })
	defer stop()
	pipe := p.conn.StartPipeline(context.WithoutCancel(ctx))
	sent := make([]*call, 0, len(calls)+len(tail)+4) // nil: a statement being prepared
	send := func(calls []call) {
		for i := range calls {
			c := &calls[i]
			if !p.prepared[c.name] {
				p.prepared[c.name] = true
				pipe.SendPrepare(c.name, c.sql, nil)
				sent = append(sent, nil)
			}
			pipe.SendQueryPrepared(c.name, c.params, binaryFormat(len(c.params)), c.binary)
			sent = append(sent, c)
		}
	}
	send(calls)
	syncs := 1
	err := pipe.Sync()
	if err == nil && len(tail) > 0 {
		send(tail)
		syncs++
		err = pipe.Sync()
	}
	if err == nil {
		err = results(pipe, sent, syncs)
	}
	if cerr := pipe.Close(); err == nil {
		err = cerr
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func results(pipe *pgconn.Pipeline, sent []*call, syncs int) error {
	at := 0
	for syncs > 0 {
		res, err := pipe.GetResults()
		if err != nil {
			return blame(sent, at, err)
		}
		switch res := res.(type) {
		case *pgconn.PipelineSync:
			syncs--
		case *pgconn.StatementDescription:
			at++
		case *pgconn.ResultReader:
			if err := read(res, sent[at]); err != nil {
				return blame(sent, at, err)
			}
			at++
		default:
			return fmt.Errorf("unexpected answer %T", res)
		}
	}
	return nil
}

func read(res *pgconn.ResultReader, c *call) error {
	var err error
	for res.NextRow() {
		if err == nil && c.onRow != nil {
			err = c.onRow(res.Values())
		}
	}
	tag, cerr := res.Close()
	if cerr != nil {
		return cerr
	}
	if err == nil && c.expect >= 0 && tag.RowsAffected() != c.expect {
		err = errCount
	}
	return err
}

// blame adds to an error which relation's statement it came from.
func blame(sent []*call, at int, err error) error {
	if at < len(sent) && sent[at] == nil {
		at++ // it was being prepared
	}
	if at < len(sent) && sent[at] != nil && sent[at].relNo != 0 {
		return &failure{relNo: sent[at].relNo, err: err}
	}
	return err
}

var binaryFormats = slices.Repeat([]int16{1}, 1700)

func binaryFormat(n int) []int16 { return binaryFormats[:n] }
