package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
)

// keyring holds the keys that messages may be signed with. A key is committed, and visible to everybody, before anything in the WAL
// is signed with it. So a message that no key fits is forged for certain if it was in the WAL when the keys were read; for
// any other they are read once more. Forged ones therefore cost a query at most for as long as it takes to catch up with them.
type keyring struct {
	connect func() (*pgconn.PgConn, error)
	ctx     context.Context // of the session
	mu      sync.Mutex
	keys    []macKey
	until   pglogrepl.LSN // messages up to here are judged by keys
	conn    *pgconn.PgConn
}

// errKeysUnread says that a message could not be judged: it is neither genuine nor forged.
var errKeysUnread = errors.New("the keys of messages could not be read again")

func (r *keyring) current() []macKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keys
}

// beyond returns the keys that a message at a position may be signed with if they are not those that are known; nil: they are.
func (r *keyring) beyond(lsn pglogrepl.LSN) ([]macKey, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if lsn <= r.until {
		return nil, nil
	}
	if r.conn == nil {
		conn, err := r.connect()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errKeysUnread, err)
		}
		r.conn = conn
	}
	if err := r.read(r.ctx, r.conn); err != nil {
		return nil, fmt.Errorf("%w: %w", errKeysUnread, err)
	}
	return r.keys, nil
}

// refresh reads the keys again: retired ones count no more.
func (r *keyring) refresh(ctx context.Context, conn *pgconn.PgConn) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read(ctx, conn)
}

func (r *keyring) read(ctx context.Context, conn *pgconn.PgConn) error {
	at, err := one(ctx, conn, "SELECT pg_current_wal_insert_lsn()") // a statement of its own: the keys must be read after it
	if err != nil {
		return err
	}
	until, err := parseLSN(at[0])
	if err != nil {
		return err
	}
	keys, err := loadKeys(ctx, conn)
	if err == nil {
		r.keys, r.until = keys, max(r.until, until)
	}
	return err
}

func (r *keyring) close() { closeConn(r.conn) }

// loadKeys reads the keys that fences may be signed with: the active one and those before it that still verify.
func loadKeys(ctx context.Context, conn *pgconn.PgConn) ([]macKey, error) {
	rows, err := query(ctx, conn, "SELECT k FROM synchro._fence_key() k")
	if err != nil {
		return nil, fmt.Errorf("reading the fence key: %w", err)
	}
	var keys []macKey
	for _, r := range rows {
		var secret [16]byte
		if err := decodeHex(secret[:], r.text(0)); err != nil {
			return nil, errNoMACKey
		}
		if k, ok := newMACKey(secret[:]); ok {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, errNoMACKey
	}
	return keys, nil
}

// fixedKeys is a ring that never changes.
func fixedKeys(keys ...macKey) *keyring { return &keyring{keys: keys, until: 1<<64 - 1} }
