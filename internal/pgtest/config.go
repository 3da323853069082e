package pgtest

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// trustingHBA lets every local login in without a password, whatever operating system user asks.
var trustingHBA = []string{
	"local all all trust",
	"host all all 127.0.0.1/32 trust",
	"host all all ::1/128 trust",
	"local replication all trust",
	"host replication all 127.0.0.1/32 trust",
}

// Configure adds lines of configuration, to be used from the next Start or Reload on; the last line of a name counts.
func (c *Cluster) Configure(lines ...string) error {
	c.cfg.Settings = append(c.cfg.Settings, lines...)
	return c.writeConfig()
}

// SetHBA replaces pg_hba.conf from the next Start or Reload on; none: the trusting one.
func (c *Cluster) SetHBA(lines ...string) error {
	c.cfg.HBA = lines
	return c.writeConfig()
}

// writeConfig writes postgresql.conf and pg_hba.conf anew.
func (c *Cluster) writeConfig() error {
	database := c.cfg.Database
	if database == "" && !c.cfg.NoWorker {
		database = Database
	}
	conf := []string{
		"listen_addresses = '127.0.0.1'",
		fmt.Sprintf("port = %d", c.port),
		"unix_socket_directories = " + quote(c.dir),
		"shared_preload_libraries = 'synchro'",
		"synchro.database = " + quote(database),
		"synchro.verify_digests = on",
		"wal_level = logical",
		"max_connections = 100",
		"max_wal_senders = 10",
		"max_replication_slots = 10",
		"shared_buffers = '64MB'",
		"timezone = 'UTC'",
		"log_timezone = 'UTC'",
		"log_line_prefix = '%m [%p] %b %q%u@%d '",
	}
	if !c.cfg.Fsync {
		conf = append(conf, "fsync = off", "full_page_writes = off")
	}
	conf = append(conf, c.cfg.Settings...)
	hba := c.cfg.HBA
	if len(hba) == 0 {
		hba = trustingHBA
	}
	if err := c.writeFile("postgresql.conf", conf); err != nil {
		return err
	}
	return c.writeFile("pg_hba.conf", hba)
}

func (c *Cluster) writeFile(name string, lines []string) error {
	path := filepath.Join(c.DataDir(), name)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	return chownToServer(path)
}

// quote makes a string a value of the configuration file.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// LogPath is the server's log file.
func (c *Cluster) LogPath() string { return filepath.Join(c.dir, "server.log") }

func (c *Cluster) logSize() int64 {
	info, err := os.Stat(c.LogPath())
	if err != nil {
		return 0
	}
	return info.Size()
}

func (c *Cluster) logFrom(offset int64) string {
	f, err := os.Open(c.LogPath())
	if err != nil {
		return ""
	}
	defer f.Close()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return ""
	}
	b, _ := io.ReadAll(f)
	return string(b)
}

// Logs is everything that the server has logged so far.
func (c *Cluster) Logs() string { return c.logFrom(0) }
