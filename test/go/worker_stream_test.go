package systest

import (
	"testing"

	"synchro/internal/pgtest"
)

func TestChangesAreMaterialized(t *testing.T) {
	c := newCore(t, pgtest.Config{})
	c.start()
	c.streaming()
	c.exec("INSERT INTO app.item (id, owner) SELECT g, 'u' || g % 3 FROM generate_series(1, 50) g")
	c.register()
	c.exec("INSERT INTO app.item (id, owner, shared) SELECT g, 'u' || g % 3, g % 2 = 0 FROM generate_series(51, 100) g")
	c.equal()
	c.exec("UPDATE app.item SET owner = 'u4', n = n + 1 WHERE id % 5 = 0; DELETE FROM app.item WHERE id % 7 = 0; UPDATE app.item SET deleted_at = now() WHERE id = 1")
	c.equal()
}
