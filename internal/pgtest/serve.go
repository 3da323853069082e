package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// ShimRole is the login that Serve makes for the shim: a member of synchro_adapter and nothing else.
const ShimRole = "synchro_shim"

// ServeConfig says how the shim of a cluster runs.
type ServeConfig struct {
	Listen         string   // host:port; empty: a free loopback port
	OperatorListen string   // the same for the operator listener
	JWTSecret      string   // HS256 secret
	Detach         bool     // leave it running when this process ends
	Args           []string // further arguments
	LogPath        string   // empty: serve.log in the cluster's directory
}

// Serve is a running "synchro serve".
type Serve struct {
	URL         string
	OperatorURL string
	LogPath     string
	proc        *process
}

// Serve starts the built "synchro serve" for Database of this cluster, which has the extension, and waits until it answers.
func (c *Cluster) Serve(ctx context.Context, cfg ServeConfig) (*Serve, error) {
	if err := c.MakeShimRole(ctx); err != nil {
		return nil, fmt.Errorf("shim role: %w", err)
	}
	for _, addr := range []*string{&cfg.Listen, &cfg.OperatorListen} {
		if *addr == "" {
			port, err := FreePort()
			if err != nil {
				return nil, err
			}
			*addr = fmt.Sprintf("127.0.0.1:%d", port)
		}
	}
	if cfg.LogPath == "" {
		cfg.LogPath = filepath.Join(c.dir, "serve.log")
	}
	repo, err := RepoDir()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(cfg.LogPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()

	args := []string{"serve", "--database-url", c.TCPDSN(ShimRole, ""), "--listen", cfg.Listen, "--operator-listen", cfg.OperatorListen}
	cmd := exec.Command(filepath.Join(repo, ".build/synchro"), append(args, cfg.Args...)...)
	// The secret goes by environment: arguments are everybody's to read.
	cmd.Env = append(os.Environ(), "SYNCHRO_JWT_SECRET="+cfg.JWTSecret)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if !cfg.Detach {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	s := &Serve{URL: "http://" + cfg.Listen, OperatorURL: "http://" + cfg.OperatorListen, LogPath: cfg.LogPath}
	if s.proc, err = launch(cmd); err != nil {
		return nil, err
	}
	err = WaitFor(ctx, startLimit, "answering shim", func() (bool, error) {
		select {
		case <-s.proc.done:
			return false, errors.New("shim ended at start")
		default:
		}
		_, err := s.status(ctx)
		return err == nil, nil
	})
	if err != nil {
		b, _ := os.ReadFile(cfg.LogPath)
		return nil, errors.Join(fmt.Errorf("%w; its log:\n%s", err, tail(string(b), 30)), s.Stop())
	}
	return s, nil
}

// MakeShimRole creates the shim's login if it is missing.
func (c *Cluster) MakeShimRole(ctx context.Context) error {
	return c.Exec(ctx, `DO $$ BEGIN
	IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = '`+ShimRole+`') THEN
		CREATE ROLE `+ShimRole+` LOGIN;
		GRANT synchro_adapter TO `+ShimRole+`;
	END IF;
END $$`)
}

// status is the HTTP status of /ready.
func (s *Serve) status(ctx context.Context) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/ready", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	resp.Body.Close()
	return resp.StatusCode, nil
}

// Ready says whether the whole stack is ready to sync.
func (s *Serve) Ready(ctx context.Context) bool {
	status, err := s.status(ctx)
	return err == nil && status == http.StatusOK
}

// WaitReady waits until the stack is ready to sync: how long that may take is a matter of what there is to materialize. Its
// error says what the server's health report does.
func (c *Cluster) WaitReady(ctx context.Context, s *Serve, limit time.Duration) error {
	err := WaitFor(ctx, limit, "ready stack", func() (bool, error) { return s.Ready(ctx), nil })
	if err != nil {
		return fmt.Errorf("%w: %s", err, c.Health(ctx))
	}
	return nil
}

// Health is the server's detailed health report, or why there is none.
func (c *Cluster) Health(ctx context.Context) string {
	conn, err := c.Conn(ctx, "", "")
	if err != nil {
		return err.Error()
	}
	defer conn.Close(ctx)
	var detail string
	if err := conn.QueryRow(ctx, "SELECT synchro.synchro_health_detail()::text").Scan(&detail); err != nil {
		return err.Error()
	}
	return detail
}

// PID is the process id of the shim.
func (s *Serve) PID() int { return s.proc.pid }

// Stop ends the shim gracefully and waits for its end.
func (s *Serve) Stop() error {
	if err := syscall.Kill(s.proc.pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return WaitFor(context.Background(), stopLimit, "end of shim", func() (bool, error) {
		select {
		case <-s.proc.done:
			return true, nil
		default:
			return false, nil
		}
	})
}
