package systest

import (
	"context"
	"net"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"synchro/canonical"
	"synchro/internal/pgtest"
)

const containerImage = "synchro:test"

// The image holds the binary and nothing of a distribution: it has to find its way to the database and back, and to end.
func TestContainerSyncsAndStops(t *testing.T) {
	requireDocker(t)
	buildImage(t)
	a := startDatabase(t, pgtest.Config{})
	a.insertNotes("ada", 1, 1500)
	shim := runContainer(t, a)
	a.awaitReady()

	a.materialized()
	ada := a.synced("ada", "ada-1")
	a.wantRows(ada, "user:ada", 1500)
	answer, err := ada.Push(context.Background(), []canonical.Mutation{
		mutation(ada, "insert", uuid.NewString(), "", noteColumns{"owner": `"ada"`, "body": `"from a device"`}),
	}, false)
	if err != nil || len(answer.Accepted) != 1 {
		t.Fatalf("push: %+v %v", answer, err)
	}
	a.exec("DELETE FROM app.note WHERE id = md5('1')::uuid")
	a.materialized()
	a.wantRows(ada, "user:ada", 1500)
	a.wantRows(a.synced("ada", "ada-2"), "user:ada", 1500)

	// SIGTERM, and SIGKILL only if that takes too long, which the exit status tells.
	limit := time.Minute
	if err := shim.Stop(context.Background(), &limit); err != nil {
		t.Fatal(err)
	}
	state, err := shim.State(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if state.Running || state.ExitCode != 0 || state.OOMKilled {
		t.Errorf("after SIGTERM: %s, exit status %d", state.Status, state.ExitCode)
	}
}

// requireDocker skips a test where no Docker daemon answers.
func requireDocker(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("docker", "version", "--format", "{{.Server.Version}}").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED, the container image stays untested: no Docker daemon answers: %v %s", err, out)
	}
	// The library's reaper is an image of its own, from a registry; our tests clean up by themselves.
	t.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
}

func buildImage(t *testing.T) {
	t.Helper()
	repo, err := pgtest.RepoDir()
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("sh", "pgxs/image.sh")
	build.Dir = repo
	build.Env = append(build.Environ(), "IMAGE="+containerImage)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make image: %v: %s", err, out)
	}
}

// runContainer runs the shim of an application in a container, at a free loopback port.
func runContainer(t *testing.T, a *app) testcontainers.Container {
	t.Helper()
	ctx := context.Background()
	if err := a.MakeShimRole(ctx); err != nil {
		t.Fatal(err)
	}
	port, err := pgtest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	shim, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{
		ContainerRequest: testcontainers.ContainerRequest{
			Image: containerImage,
			Env: map[string]string{
				"SYNCHRO_DATABASE_URL": a.TCPDSN(pgtest.ShimRole, ""),
				"SYNCHRO_JWT_SECRET":   jwtSecret,
				"SYNCHRO_LISTEN":       address,
			},
			// The cluster listens on the loopback interface only.
			HostConfigModifier: func(h *container.HostConfig) { h.NetworkMode = "host" },
			WaitingFor:         wait.ForLog("serving").WithStartupTimeout(time.Minute),
		},
		Started: true,
	})
	testcontainers.CleanupContainer(t, shim)
	if err != nil {
		t.Fatal(err)
	}
	a.serve = &pgtest.Serve{URL: "http://" + address}
	return shim
}
