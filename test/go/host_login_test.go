package systest

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"synchro/internal/pgtest"
)

// scramOnly is what Debian ships: operating system users on the socket, passwords on loopback.
var scramOnly = []string{"local all postgres trust", "local all all peer", "host all all 127.0.0.1/32 scram-sha-256"}

func TestHostLogsInWithStockAccessRules(t *testing.T) {
	rules := map[string]struct {
		hba      []string
		settings []string
	}{
		"peer on socket, scram on loopback": {scramOnly, nil},
		"scram on socket only":              {[]string{"local all postgres trust", "local all all scram-sha-256"}, []string{"listen_addresses = ''"}},
		"trust":                             {nil, nil},
		"loopback only":                     {nil, []string{"listen_addresses = '*'"}},
	}
	t.Parallel()
	for name, r := range rules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := pgtest.StartWithExtension(t, pgtest.Config{HBA: r.hba, Settings: r.settings})
			awaitWorking(t, c)
		})
	}
}

func TestHostRefusesForeignLogin(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t, pgtest.Config{})
	mustExec(t, c, `DO $$ BEGIN EXECUTE (SELECT format('CREATE ROLE %I LOGIN REPLICATION PASSWORD ''kept''',
		'synchro_worker_' || oid) FROM pg_database WHERE datname = current_database()); END $$`)
	mustExec(t, c, "CREATE EXTENSION synchro")
	verifier := func() (v string) {
		err := c.Connect(t, "", "").QueryRow(t.Context(), `SELECT rolpassword FROM pg_authid WHERE rolname LIKE 'synchro\_worker\__%'`).Scan(&v)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	before := verifier()
	awaitLog(t, c, "was not made by the worker")
	awaitState(t, c, "misconfigured")
	if verifier() != before {
		t.Error("the password of a foreign role was changed")
	}
	reconfigure(t, c, "synchro.worker_login = 'sync_login'")
	awaitWorking(t, c)
}

func TestHostRefusesPowerfulLogin(t *testing.T) {
	t.Parallel()
	c := startHost(t, "process")
	mustExec(t, c, `DO $$ BEGIN EXECUTE (SELECT format('ALTER ROLE %I SUPERUSER',
		'synchro_worker_' || oid) FROM pg_database WHERE datname = current_database()); END $$`)
	if err := c.Restart(t.Context(), pgtest.Fast); err != nil {
		t.Fatal(err)
	}
	awaitLog(t, c, "it has more rights than the worker may have")
}

func TestHostStoresVerifierOnlyWhenItDiffers(t *testing.T) {
	t.Parallel()
	c := startHost(t, "process")
	conn := c.Connect(t, "", "")
	version := func() (v string) {
		err := conn.QueryRow(t.Context(), `SELECT xmin::text || ' ' || rolpassword FROM pg_authid
			WHERE rolname LIKE 'synchro\_worker\__%'`).Scan(&v)
		if err != nil || !strings.Contains(v, "SCRAM-SHA-256$") {
			t.Fatal(v, err)
		}
		return v
	}
	before, role := awaitWorking(t, c), version()
	if err := c.Kill(before.CorePID); err != nil {
		t.Fatal(err)
	}
	awaitOther(t, c, before)
	if version() != role {
		t.Error("the role was written again")
	}
}

func TestHostFollowsConninfo(t *testing.T) {
	t.Parallel()
	c, other := startHost(t, "process"), pgtest.Start(t, pgtest.Config{NoWorker: true})
	wrong := map[string]string{
		"invalid_conninfo":  "this is none",
		"wrong_server":      other.DSN("", ""),
		"connection_failed": fmt.Sprintf("host=%s/nowhere user=postgres", c.Dir()),
	}
	for class, conninfo := range wrong {
		reconfigure(t, c, "synchro.worker_conninfo = '"+strings.ReplaceAll(conninfo, "'", "''")+"'")
		awaitStatus(t, c, class, func(st workerStatus) bool { return strings.Contains(st.LastError, class) })
	}
	reconfigure(t, c, "synchro.worker_conninfo = 'postgres://postgres@127.0.0.1:"+fmt.Sprint(c.Port())+"/?sslmode=disable'")
	awaitWorking(t, c)
	reconfigure(t, c, "synchro.worker_conninfo = ''")
	awaitStatus(t, c, "login of its own", func(st workerStatus) bool { return st.State == "streaming" && coreSessions(t, c) > 0 })
}

func TestHostNeverShowsPassword(t *testing.T) {
	// A password has this form; nothing else that a server shows does.
	password := regexp.MustCompile(`[0-9a-f]{64}`)
	t.Parallel()
	for _, host := range hosts {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			c := pgtest.StartWithExtension(t, pgtest.Config{HBA: scramOnly, Settings: []string{"synchro.core_host = " + host,
				"log_statement = all", "log_min_duration_statement = 0", "log_connections = on", "log_min_messages = debug1"}})
			st := awaitWorking(t, c)
			for _, pid := range []int{st.PID, st.CorePID} {
				for _, file := range []string{"cmdline", "environ"} {
					b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
					if err != nil {
						t.Fatal(err)
					}
					if password.Match(b) {
						t.Errorf("in %s", file)
					}
				}
			}
			var activity string
			err := c.Connect(t, "", "").QueryRow(t.Context(), `SELECT string_agg(a::text, ' ')
				FROM pg_stat_activity a WHERE pid <> pg_backend_pid()`).Scan(&activity)
			if err != nil || password.MatchString(activity) {
				t.Errorf("in pg_stat_activity, %v", err)
			}
			if log := c.Logs(); password.MatchString(log) || strings.Contains(log, "SCRAM-SHA-256$") {
				t.Error("in the log")
			}
		})
	}
}
