package worker

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/dchest/siphash"
	"github.com/jackc/pglogrepl"
)

// Encoders of what the server sends, for tests.

func be16(b []byte, v int) []byte    { return binary.BigEndian.AppendUint16(b, uint16(v)) }
func be32(b []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(b, v) }
func be64(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }

// val is a column: a string, nil for NULL, or kept for an unchanged TOASTed value.
type kept struct{}

func encodeTuple(b []byte, values []any) []byte {
	b = be16(b, len(values))
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			b = append(b, colNull)
		case kept:
			b = append(b, colUnchanged)
		default:
			s := fmt.Sprint(v)
			b = append(append(b, colText), be32(nil, uint32(len(s)))...)
			b = append(b, s...)
		}
	}
	return b
}

func encodeChange(op byte, oid uint32, values ...any) []byte {
	b := be32(nil, oid)
	if op == msgDelete {
		b = append(b, 'K')
	} else {
		b = append(b, 'N')
	}
	return encodeTuple(b, values)
}

func encodeRelation(oid uint32, schema, name string, columns ...wireColumn) []byte {
	b := append(be32(nil, oid), schema+"\x00"+name+"\x00d"...)
	b = be16(b, len(columns))
	for _, c := range columns {
		flag := byte(0)
		if c.key {
			flag = 1
		}
		b = append(append(b, flag), c.name+"\x00"...)
		b = be32(be32(b, c.typ), 0xffffffff)
	}
	return b
}

func encodeLogical(transactional bool, lsn pglogrepl.LSN, content []byte) []byte {
	flag := byte(0)
	if transactional {
		flag = 1
	}
	b := be64([]byte{flag}, uint64(lsn))
	b = append(b, messagePrefix+"\x00"...)
	return append(be32(b, uint32(len(content))), content...)
}

var testKey = macKey{0x0706050403020100, 0x0f0e0d0c0b0a0908}

func seal(topXID uint32, typ byte, body []byte) []byte {
	h0, h1 := siphash.Hash128(testKey.k0, testKey.k1, append(append(be32(nil, topXID), typ), body...))
	b := binary.LittleEndian.AppendUint64([]byte{typ}, h0)
	return append(binary.LittleEndian.AppendUint64(b, h1), body...)
}

func encodeFence(rel *relation, op byte, ordinal uint64, key, version string) []byte {
	return encodeFenceOf(77, rel, op, ordinal, key, version)
}

func encodeFenceOf(xid uint32, rel *relation, op byte, ordinal uint64, key, version string) []byte {
	b := append([]byte{op, rel.kind}, be32(nil, uint32(rel.no))...)
	b = append(b, rel.id[:]...)
	if rel.kind == kindSynced {
		b = append(b, rel.table[:]...)
	}
	b = be64(b, ordinal)
	b = append(be64(b, 0), be64(nil, ordinal)...) // fence id
	b = be32(b, xid)
	b = append(b, (version + strings.Repeat("_", 16))[:16]...)
	b = append(be16(b, len(rel.qualified)), rel.qualified...)
	b = append(be32(b, uint32(len(key))), key...)
	return be16(b, 0)
}

// testRelation is app.note (id int8 key, body text, big text), with the OID 1000 + no.
func testRelation(no int32) *relation {
	r := &relation{
		no: no, oid: uint32(1000 + no), since: 2, kind: kindSynced, schema: "app", name: fmt.Sprintf("note%d", no),
		qualified: fmt.Sprintf("app.note%d", no), keyAttnum: 1, pkType: "int64",
		columns: []captured{
			{attnum: 1, name: "id", source: 20, storage: "pg_catalog.int8", required: true},
			{attnum: 2, name: "body", source: 25, storage: "text", required: true},
			{attnum: 4, name: "big", source: 25, storage: "text", required: true},
		},
	}
	r.id[15], r.table[15] = byte(no), byte(100+no)
	return r
}

func testRegistry(n int) *registry {
	g := &registry{generation: 2, schemaVersion: 2, byOID: map[uint32]*relation{}, byNo: map[int32]*relation{}}
	for no := int32(1); no <= int32(n); no++ {
		r := testRelation(no)
		r.sql = newStatements(r, g)
		g.byOID[r.oid], g.byNo[no] = r, r
	}
	return g
}

func (r *relation) wireMessage() []byte {
	columns := []wireColumn{{key: true, name: "id", typ: 20}, {name: "body", typ: 25}, {name: "not_captured", typ: 23}, {name: "big", typ: 25}}
	return encodeRelation(r.oid, r.schema, r.name, columns...)
}

// source builds a source transaction the way the receiver does.
type source struct {
	*txn
	ordinal uint64
}

func newSource(xid uint32, commit pglogrepl.LSN) *source {
	return &source{txn: &txn{
		commitRecord: commitRecord{xid: xid, commitLSN: commit, endLSN: commit + 8}, aborted: map[uint32]struct{}{}, spool: spool{limit: 1 << 20},
	}}
}

func (s *source) add(sub uint32, typ byte, body []byte) {
	if strings.IndexByte("IUD", typ) >= 0 {
		s.events++
	}
	if err := s.spool.append(sub, typ, body); err != nil {
		panic(err)
	}
}

func (s *source) row(rel *relation, op byte, key any, values ...any) {
	if op == msgDelete {
		s.add(0, op, encodeChange(op, rel.oid, key, nil, nil, nil))
		return
	}
	body, big := any("body"), any("big")
	if len(values) > 0 {
		body = values[0]
	}
	if len(values) > 1 {
		big = values[1]
	}
	s.add(0, op, encodeChange(op, rel.oid, key, body, 1, big))
}

func (s *source) fence(rel *relation, op byte, key any) {
	s.ordinal++
	s.fenceAt(rel, op, key, s.ordinal)
}

// fenceAt is a fence with a given ordinal; its version is "v" and the ordinal.
func (s *source) fenceAt(rel *relation, op byte, key any, ordinal uint64) {
	s.message(typeFence, encodeFence(rel, op, ordinal, fmt.Sprint(key), fmt.Sprintf("v%d", ordinal)))
}

func (s *source) message(typ byte, body []byte) {
	s.add(0, msgLogical, encodeLogical(true, 1, seal(s.xid, typ, body)))
}

// write is a row change with its fence.
func (s *source) write(rel *relation, op byte, key any, values ...any) {
	s.row(rel, op, key, values...)
	s.fence(rel, op, key)
}

func testIndexer(reg *registry) *indexer {
	x := newIndexer(reg, fixedKeys(testKey), [2]uint64{1, 2}, 0)
	for _, rel := range reg.ordered() {
		w, err := parseRelation(rel.wireMessage())
		if err != nil {
			panic(err)
		}
		x.relation(w)
	}
	return x
}

func newTestBatch() *batch { return &batch{table: *newTable()} }
