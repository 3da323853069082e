package worker

import (
	"context"
	"strconv"

	"github.com/jackc/pglogrepl"
)

// positions gives out effect ordinals at one position: a baseline comes in many calls.
type positions struct {
	lsn     pglogrepl.LSN
	ordinal int64
	next    map[int64]int32 // of a scope
	forgot  bool            // what was given to scopes that are not in next is in the table only
}

func newPositions() *positions { return &positions{next: map[int64]int32{}, forgot: true} }

// begin says that nothing has an effect at the position yet.
func (p *positions) begin(lsn pglogrepl.LSN, ordinal int64) {
	*p = positions{lsn: lsn, ordinal: ordinal, next: map[int64]int32{}}
}

// load makes next complete for the scopes of some changes, which share one position.
func (p *positions) load(ctx context.Context, pipe *pipeline, all []*changes) error {
	scopes, asked := array{elem: oidInt8}, map[int64]bool{}
	for _, ch := range all {
		for i := range ch.rows {
			r := &ch.rows[i]
			if r.lsn != p.lsn || r.ordinal != p.ordinal {
				p.begin(r.lsn, r.ordinal)
				p.forgot = true
			}
			for _, list := range [][]int64{r.now, r.old} {
				for _, scope := range list {
					if _, known := p.next[scope]; !known && !asked[scope] {
						asked[scope] = true
						scopes.u64(uint64(scope))
					}
				}
			}
		}
	}
	if len(p.next) > maxInterned && len(asked) > 0 {
		clear(p.next)
		p.forgot = true
		return p.load(ctx, pipe, all)
	}
	if !p.forgot || len(asked) == 0 {
		return nil
	}
	params := [][]byte{scopes.param(), lsnParam(p.lsn), u64Param(uint64(p.ordinal))}
	return pipe.run(ctx, []call{{statement: stEffects, expect: int64(len(asked)), params: params, onRow: func(v [][]byte) error {
		scope, err := strconv.ParseInt(asString(v[0]), 10, 64)
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(asString(v[1]), 10, 32)
		p.next[scope] = int32(n)
		return err
	}}})
}

func (p *positions) take(scope int64) int32 {
	n := p.next[scope]
	p.next[scope] = n + 1
	return n
}
