package systest

import (
	"testing"

	"synchro/internal/pgtest"
)

func TestHostStarts(t *testing.T) {
	eachHost(t, func(t *testing.T, c *pgtest.Cluster) {
		st := awaitWorking(t, c)
		if (st.PID == st.CorePID) != (st.Host == "in_process") {
			t.Errorf("core in the wrong process: %+v", st)
		}
		if st.LastError != "" || st.Restarts != 0 {
			t.Errorf("not a clean start: %+v", st)
		}
	})
}
