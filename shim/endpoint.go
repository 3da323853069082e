package shim

import "synchro/protocol"

// endpoint is one route of the sync protocol.
type endpoint struct {
	name     string
	path     string
	query    string // the one database function; $1 user, $2 body, $3 claims
	snapshot bool   // runs in a REPEATABLE READ transaction, else READ COMMITTED
	repeats  bool   // is called again when it lost a race: nothing of it stayed, and a client would do the same
	waits    bool   // is held when the client prefers to wait and there is nothing to tell
	maxBody  int64  // octets
	check    func(body []byte) error
}

var endpoints = []*endpoint{
	{name: "connect", path: "/sync/connect", repeats: true, maxBody: protocol.MaxBody, check: shape(protocol.DecodeConnect)},
	{name: "push", path: "/sync/push", maxBody: protocol.MaxPushBody, check: shape(protocol.DecodePush)},
	{name: "pull", path: "/sync/pull", snapshot: true, repeats: true, waits: true, maxBody: protocol.MaxBody, check: shape(protocol.DecodePull)},
	{name: "rebuild", path: "/sync/rebuild", snapshot: true, repeats: true, waits: true, maxBody: protocol.MaxBody, check: shape(protocol.DecodeRebuild)},
}

func init() {
	for _, ep := range endpoints {
		// Every name has its schema: the session's search_path is the application's, and pg_temp comes before it.
		ep.query = "SELECT status, body, wait_on FROM synchro.synchro_" + ep.name + "($1, $2, $3::pg_catalog.text::pg_catalog.jsonb)"
	}
}

// shape keeps only the verdict of a decoder: the database gets the body itself.
func shape[T any](decode func([]byte) (T, error)) func([]byte) error {
	return func(body []byte) error {
		_, err := decode(body)
		return err
	}
}
