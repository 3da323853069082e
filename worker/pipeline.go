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
	open     *pgconn.Pipeline // while answers are outstanding
	sent     []*call          // that have no answer yet; nil: a statement being prepared
	asked    uint64           // groups of calls sent
	answered uint64           // of these
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
	group, err := p.send(ctx, calls)
	if err == nil && len(tail) > 0 {
		group, err = p.send(ctx, tail)
	}
	if err == nil {
		err = p.await(ctx, group)
	}
	return err
}

// send sends a group of calls and waits for no answer. The calls stay in use until await has returned for the group.
func (p *pipeline) send(ctx context.Context, calls []call) (group uint64, err error) {
	if p.open == nil {
		p.open = p.conn.StartPipeline(context.WithoutCancel(ctx))
	}
	for i := range calls {
		c := &calls[i]
		if !p.prepared[c.name] {
			p.prepared[c.name] = true
			p.open.SendPrepare(c.name, c.sql, nil)
			p.sent = append(p.sent, nil)
		}
		p.open.SendQueryPrepared(c.name, c.params, binaryFormat(len(c.params)), c.binary)
		p.sent = append(p.sent, c)
	}
	p.asked++
	return p.asked, p.interruptibly(ctx, p.open.Sync)
}

// await reads the answers to all groups up to one.
func (p *pipeline) await(ctx context.Context, group uint64) error {
	return p.interruptibly(ctx, func() error {
		for p.answered < group {
			if err := p.results(); err != nil {
				return err
			}
			p.answered++
		}
		if p.answered < p.asked {
			return nil
		}
		pipe := p.open
		p.open, p.sent = nil, nil
		if pipe == nil {
			return nil
		}
		return pipe.Close()
	})
}

// interruptibly gives the connection up when ctx ends, and when something went wrong.
func (p *pipeline) interruptibly(ctx context.Context, work func() error) error {
	stop := context.AfterFunc(ctx, func() { _ = p.conn.Conn().SetDeadline(time.Unix(1, 0)) })
	defer stop()
	err := work()
	if err == nil {
		return nil
	}
	if p.open != nil {
		_ = p.open.Close()
		p.open, p.sent, p.answered = nil, nil, p.asked
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// results reads the answers to one group.
func (p *pipeline) results() error {
	at := 0
	for {
		res, err := p.open.GetResults()
		if err != nil {
			return blame(p.sent, at, err)
		}
		switch res := res.(type) {
		case *pgconn.PipelineSync:
			p.sent = p.sent[at:]
			return nil
		case *pgconn.StatementDescription:
			at++
		case *pgconn.ResultReader:
			if err := read(res, p.sent[at]); err != nil {
				return blame(p.sent, at, err)
			}
			at++
		default:
			return fmt.Errorf("unexpected answer %T", res)
		}
	}
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
