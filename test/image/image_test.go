// Package image tests the container image of the shim.
package image

import (
	"context"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"synchro/internal/pgtest"
)

const secret = "a secret of at least thirty-two octets"

// The image holds nothing but the binary: it has to find its way to the database and back without a distribution.
func TestImageServesACluster(t *testing.T) {
	if err := exec.Command("docker", "info").Run(); err != nil {
		t.Skip("no Docker daemon answers")
	}
	repo, err := pgtest.RepoDir()
	if err != nil {
		t.Fatal(err)
	}
	// The library's reaper is an image of its own, from a registry; the test cleans up by itself.
	t.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
	const image = "synchro:test"
	build := exec.Command("sh", "pgxs/image.sh")
	build.Dir = repo
	build.Env = append(build.Environ(), "IMAGE="+image)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	c := pgtest.StartWithExtension(t, pgtest.Config{})
	ctx := context.Background()
	if err := c.MakeShimRole(ctx); err != nil {
		t.Fatal(err)
	}
	port, err := pgtest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := "127.0.0.1:" + strconv.Itoa(port)
	shim, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{
		ContainerRequest: testcontainers.ContainerRequest{
			Image: image,
			Env: map[string]string{
				"SYNCHRO_DATABASE_URL": c.TCPDSN(pgtest.ShimRole, ""),
				"SYNCHRO_JWT_SECRET":   secret,
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

	pgtest.Poll(t, time.Minute, "ready shim in a container", func() bool {
		resp, err := http.Get("http://" + address + "/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	resp, err := http.Post("http://"+address+"/sync/connect", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a request without a token: %s", resp.Status)
	}
}
