package devstack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"synchro/internal/pgtest"
)

// startShim starts the shim unless the one that runs is of the present build.
func (s *Stack) startShim(ctx context.Context, cluster *pgtest.Cluster) error {
	built, err := fingerprint(s.shimBinary())
	if err != nil {
		return err
	}
	if s.shimRuns() && s.st.ShimBuilt == built {
		return nil
	}
	if err := s.stopShim(); err != nil {
		return err
	}
	serve, err := cluster.Serve(ctx, pgtest.ServeConfig{
		Listen: s.st.Listen, OperatorListen: s.st.OperatorListen, JWTSecret: s.st.JWTSecret, Detach: true, LogPath: s.path("serve.log"),
	})
	if err != nil {
		return err
	}
	s.st.Listen = strings.TrimPrefix(serve.URL, "http://")
	s.st.OperatorListen = strings.TrimPrefix(serve.OperatorURL, "http://")
	s.st.ShimPID, s.st.ShimBuilt = serve.PID(), built
	return s.save()
}

func (s *Stack) shimBinary() string { return filepath.Join(s.repo, ".build/synchro") }

// shimRuns says whether the recorded process is still our shim: a process id is soon another program's.
func (s *Stack) shimRuns() bool {
	if s.st.ShimPID == 0 {
		return false
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", s.st.ShimPID))
	return err == nil && strings.TrimSuffix(exe, " (deleted)") == s.shimBinary()
}

func (s *Stack) stopShim() error {
	if !s.shimRuns() {
		return nil
	}
	if err := syscall.Kill(s.st.ShimPID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	err := pgtest.WaitFor(context.Background(), 15*time.Second, "end of shim", func() (bool, error) { return !s.shimRuns(), nil })
	if err != nil {
		return err
	}
	s.st.ShimPID = 0
	return nil
}

func (s *Stack) ready(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/ready", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// builtExtension identifies the installed files that a running server has loaded.
func (s *Stack) builtExtension() (string, error) {
	inst, err := pgtest.Find()
	if err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(inst.PkgLibDir(), "synchro*"))
	if err != nil {
		return "", err
	}
	return fingerprint(files...)
}

// fingerprint changes when a file's content does; a build that changed nothing still installs anew.
func fingerprint(files ...string) (string, error) {
	sum := sha256.New()
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(sum, f)
		f.Close()
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
