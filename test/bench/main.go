// Command bench measures what synchro costs against limits of the same machine, measured in the same run: the same writes
// without registration, pg_recvlogical decoding the same WAL, COPY of the same rows. Medians of several runs; timings
// are printed, never asserted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
)

// measurement is one group of figures, run against a cluster of its own.
type measurement struct {
	name string
	run  func(ctx context.Context, b *bench) error
}

var measurements = []measurement{
	{"writer", measureWriters},
	{"baseline", measureBaseline},
	{"backlog", measureBacklog},
	{"latency", measureLatency},
	{"rebuild", measureRebuild},
	{"pull", measurePull},
	{"push", measurePush},
	{"digest", measureDigest},
	{"waiting", measureWaiting},
	{"million", measureMillion},
	{"membership", measureMembership},
	{"dependency", measureDependency},
	{"family", measureFamily},
}

func main() {
	only := flag.String("only", "", "regular expression of measurements to run")
	runs := flag.Int("runs", 3, "runs of which the median is taken")
	dir := flag.String("out", "bench", "folder of results.json and the charts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *only, *runs, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, runs int, dir string) error {
	chosen, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	b := &bench{runs: runs}
	var shares series
	for _, m := range measurements {
		if !chosen.MatchString(m.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "measuring %s …\n", m.name)
		shares = append(shares, share())
		if err := m.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	if len(shares) > 0 {
		b.figure("share of a processor that a busy loop got beside other work", "", append(shares, share()), 0, 0)
	}
	b.print(os.Stdout)
	return b.write(dir)
}
