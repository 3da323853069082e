package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"synchro/protocol"
)

// expire ends a client's generation, as a long absence does.
func (w *world) expire(t *rapid.T, d *device) {
	if chance(t, "by an operator", 2) {
		w.must(w.exec("SELECT synchro.synchro_expire_client($1, $2)", d.user, d.id))
		d.expired = true
		return
	}
	w.must(w.exec("UPDATE synchro.client SET created_at = now() - interval '2 hours', last_acknowledged_at = last_acknowledged_at - interval '2 hours' WHERE client_id = $1", d.id))
	w.compact(t, d)
	d.expired = true
}

// crash ends a process, one of those that may end at any time more often.
func (w *world) crash(t *rapid.T, _ *device) {
	what := one(t, "process", "core", "core", "core", "core", "shim", "shim", "worker", "fast", "immediate")
	w.count("crash of " + what)
	if what == "shim" {
		w.must(w.restartShim())
		wires.CloseIdleConnections()
		return
	}
	w.kill(what)
}

// compact removes entries that nobody needs any more, now and then only some of them.
func (w *world) compact(t *rapid.T, _ *device) {
	_, _, err := w.core()
	w.must(err)
	w.must(w.exec("SELECT synchro.synchro_compact('1 hour', $1)", one(t, "batch", 1, 3, 10000)))
	for _, d := range w.devices { // what a finished rebuild would need, if its client has acknowledged more
		for _, s := range d.memory.scopes {
			s.lost = s.lost || s.behind
		}
		for _, s := range d.sessions {
			s.lost = s.lost || s.served
		}
	}
}

// leave takes a row that the device holds out of its scopes.
func (w *world) leave(t *rapid.T, d *device) {
	held := d.keys()
	if len(held) == 0 {
		w.write(t, d)
		return
	}
	name, id, _ := strings.Cut(one(t, "row", held...), "/")
	sql := fmt.Sprintf("DELETE FROM app.%s WHERE id = '%s'", name, id)
	if chance(t, "stays", 2) {
		columns := map[string]string{"task": "owner = NULL, team = NULL, shelf = NULL", "tag": "team = NULL", "memo": "owner = NULL"}
		sql = fmt.Sprintf("UPDATE app.%s SET %s WHERE id = '%s'", name, columns[name], id)
	}
	w.must(w.exec(sql))
	w.look(false)
}

// acknowledged brings all devices but one up to date, and lets the server know it.
func (w *world) acknowledged(but *device) {
	w.materialized()
	for _, d := range w.introduced() {
		if d != but {
			w.sync(d, 1000)
			w.sync(d, 1000)
		}
	}
}

// lapse loses the answer of a pull, and what it delivered is not needed by anybody else.
func (w *world) lapse(t *rapid.T, d *device) {
	w.acknowledged(nil)
	w.leave(t, d)
	w.acknowledged(d)
	w.pull(d, one(t, "limit", limits...), answerLost, 0)
	w.compact(t, d)
	w.onePull(t, d)
}

// relapse brings back the device's copy of a moment ago, when what it had to learn since may be compacted.
func (w *world) relapse(t *rapid.T, d *device) {
	w.acknowledged(nil)
	copied := d.memory.clone()
	d.backup = &copied
	w.leave(t, d)
	w.acknowledged(nil)
	w.compact(t, d)
	w.bringBack(d)
	w.sync(d, 1000)
}

// outlast rebuilds while the device goes on pulling, and what it has acknowledged is compacted.
func (w *world) outlast(t *rapid.T, d *device) {
	w.acknowledged(nil)
	scope, ok := d.largest()
	if !ok {
		return
	}
	w.rebuild(d, scope, 1, delivered, 0)
	w.leave(t, d)
	w.acknowledged(nil)
	w.compact(t, d)
	for range 20 {
		if d.sessions[scope] == nil {
			break
		}
		w.rebuild(d, scope, 1, delivered, 0)
	}
	w.onePull(t, d)
}

// largest is the scope of which the device holds most.
func (d *device) largest() (scope string, ok bool) {
	for _, id := range slices.Sorted(maps.Keys(d.memory.scopes)) {
		if !ok || len(d.memory.scopes[id].rows) > len(d.memory.scopes[scope].rows) {
			scope, ok = id, true
		}
	}
	return scope, ok
}

// rotate makes new keys: everything that the old ones signed stays good, unless those are retired when nobody needs them any more.
func (w *world) rotate(t *rapid.T, _ *device) {
	complete := true
	fresh := func() {
		w.materialized()
		for _, d := range w.introduced() {
			complete = w.sync(d, 1000) && complete
		}
	}
	end := chance(t, "and retire", 2)
	if end {
		fresh()
	}
	var body []byte
	w.must(w.db.QueryRow(w.t.Context(), "SELECT synchro.synchro_rotate_keys()").Scan(&body))
	if !end {
		return
	}
	fresh() // now under the new ones
	if !complete {
		return
	}
	var keys map[string]struct{ Replaced string }
	w.must(json.Unmarshal(body, &keys))
	for _, key := range keys {
		w.must(w.exec("SELECT synchro.synchro_retire_key($1)", key.Replaced))
	}
	for _, d := range w.devices { // what would still need them
		d.backup, d.sessions, d.ended = nil, map[string]*session{}, nil
	}
	w.count("keys retired")
}

// retire ends a client for ever; its user takes another one.
func (w *world) retire(t *rapid.T, d *device) {
	w.must(w.exec("SELECT synchro.synchro_retire_client($1, $2)", d.user, d.id))
	bodies := map[string][]byte{}
	q := &protocol.PullRequest{ClientID: d.id, ClientGeneration: d.memory.generation, Schema: d.memory.schema(), ScopeSetVersion: d.memory.setVersion,
		Scopes: d.cursors(), Limit: 1}
	var err error
	bodies["pull"], err = q.Encode()
	w.must(err)
	for _, b := range w.batches {
		if b.d == d {
			bodies["push"] = b.body // a replay is no exception
		}
	}
	for route, body := range bodies {
		if _, r, err := w.send(d.user, route, body, delivered, 0, ""); err != nil || r.code() != "client_retired" {
			w.fail("%s of the retired %s: %v %v", route, d, r, err)
		}
	}
	w.past = append(w.past, slices.DeleteFunc(slices.Clone(w.batches), func(b *batch) bool { return b.d != d })...)
	w.batches = slices.DeleteFunc(w.batches, func(b *batch) bool { return b.d == d })
	w.devices[slices.Index(w.devices, d)] = w.newDevice(d.user)
}
