package pgtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strconv"
	"sync"
	"syscall"
)

// process is a server that this process started.
type process struct {
	pid  int
	done chan struct{} // closed when the server has ended
}

// launcher runs every start on one thread that lives as long as this process: the kernel sends a parent-death signal when
// the *thread* that started a child ends.
var launcher = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// launch starts a command on the launcher's thread and reaps it when it ends.
func launch(cmd *exec.Cmd) (*process, error) {
	started := make(chan error)
	launcher() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, err
	}
	p := &process{pid: cmd.Process.Pid, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// serverUser is the user that servers run as: postgres when we are root, which PostgreSQL refuses, else ourselves.
func serverUser() (*user.User, error) {
	if os.Geteuid() != 0 {
		return user.Current()
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root, and there is no user to run it: %w", err)
	}
	return u, nil
}

// serverCredential is nil when nothing has to change.
func serverCredential() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := serverUser()
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func chownToServer(path string) error {
	cred, err := serverCredential()
	if err != nil || cred == nil {
		return err
	}
	return os.Lchown(path, int(cred.Uid), int(cred.Gid))
}

// serverEnv is the whole environment of a server: nothing of ours changes its behaviour.
func serverEnv() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TZ=UTC"}
}

// FreePort asks the kernel for an unused loopback port.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// PlaceDir creates a directory for a cluster: the preferred one, or one elsewhere if the server's user can't reach that, or
// if its path is too long for a unix socket in it.
func PlaceDir(preferred string) (string, error) {
	const maxSocketDir = 107 - len("/.s.PGSQL.65535")
	cred, err := serverCredential()
	if err != nil {
		return "", err
	}
	if len(preferred) <= maxSocketDir {
		if err := os.MkdirAll(preferred, 0o755); err != nil {
			return "", err
		}
		check := exec.Command("/usr/bin/test", "-x", preferred)
		check.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
		if check.Run() == nil {
			return preferred, nil
		}
	}
	return os.MkdirTemp("/var/tmp", "synchro-cluster-")
}
