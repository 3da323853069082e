package host

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"synchro/internal/rescue"
	"synchro/worker"
)

// testConfig is a complete configuration.
var testConfig = map[string]string{
	"conninfo": "host=/nowhere", "database": "app", "slot": "s", "publication": "p", "started_at": "1",
	"max_worker_heartbeat_age_seconds": "30", "max_wal_lag_bytes": "67108864", "max_wal_lag_seconds": "31",
	"stale_client_after": "60", "compact_schedule": "0", "backfill_batch_size": "1000", "max_row_bytes": "100",
	"batch_max_rows": "7", "batch_max_bytes": "8", "worker_memory_limit": "1073741824",
}

// encode makes a frame, with some values replaced; an empty one is left out.
func encode(kind byte, values map[string]string, replaced ...string) []byte {
	var payload []byte
	for name, value := range values {
		for i := 0; i < len(replaced); i += 2 {
			if replaced[i] == name {
				value = replaced[i+1]
			}
		}
		if value != "" {
			payload = append(payload, name+"\x00"+value+"\x00"...)
		}
	}
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(payload))), payload...)
}

func TestConstantsAreThoseOfTheHeader(t *testing.T) {
	b, err := os.ReadFile("../../cgo/core_abi.h")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]byte{"CONFIG": frameConfig, "LIMITS": frameLimits, "WAKE": frameWake, "STOP": frameStop} {
		m := regexp.MustCompile(`#define SYNCHRO_FRAME_` + name + `\s+'(.)'`).FindSubmatch(b)
		if m == nil || m[1][0] != want {
			t.Errorf("SYNCHRO_FRAME_%s is not %q", name, want)
		}
	}
}

func TestConfigIsRead(t *testing.T) {
	f, err := readFrame(bytes.NewReader(encode(frameConfig, testConfig)))
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseConfig(f)
	if err != nil {
		t.Fatal(err)
	}
	if s.database != "app" || s.limits.BatchMaxRows != 7 || s.limits.MaxWALLag != 31*time.Second || s.limits.CompactEvery != 0 {
		t.Errorf("got %+v", s)
	}
}

func TestEverySettingIsRequired(t *testing.T) {
	for name := range testConfig {
		f, _ := readFrame(bytes.NewReader(encode(frameConfig, testConfig, name, "")))
		if _, err := parseConfig(f); !errors.Is(err, errProtocol) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

func TestLimitsArePositive(t *testing.T) {
	for _, value := range []string{"0", "-1", "x", "9223372036854775808"} {
		f, _ := readFrame(bytes.NewReader(encode(frameLimits, testConfig, "batch_max_rows", value)))
		if _, err := parseLimits(f); !errors.Is(err, errProtocol) {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestFramesAreBounded(t *testing.T) {
	for _, b := range [][]byte{{'C', 0xff, 0xff, 0xff, 0xff}, {'C', 0, 0, 0, 5, 'x'}} {
		if _, err := readFrame(bytes.NewReader(b)); !errors.Is(err, errProtocol) {
			t.Errorf("%v: %v", b, err)
		}
	}
}

func TestStatusHasNoText(t *testing.T) {
	cases := []struct {
		err  error
		line string
	}{
		{&rescue.PanicError{Type: "string"}, "error panic 00000\n"},
		{&pgconn.PgError{Code: "28000", Message: "secret"}, "error login_refused 28000\n"},
		{&pgconn.PgError{Code: "57P01"}, "error server_stopping 57P01\n"},
		{&pgconn.PgError{Code: "42P01", Detail: "secret"}, "error database_error 42P01\n"},
		{classError("slot_lost"), "error slot_lost 00000\n"},
		{classError("Not a word"), "error internal_error 00000\n"},
		{errors.New("secret"), "error internal_error 00000\n"},
		{io.ErrUnexpectedEOF, "error connection_failed 00000\n"},
		{errProtocol, "error host_mismatch 00000\n"},
		{errStop, ""},
		{nil, ""},
	}
	for _, c := range cases {
		var b strings.Builder
		s := statusWriter{w: &b}
		s.failure(c.err)
		if b.String() != c.line {
			t.Errorf("%v: %q, want %q", c.err, b.String(), c.line)
		}
	}
}

func TestDatabaseIsSet(t *testing.T) {
	for _, conninfo := range []string{"", "host=/tmp dbname=x", "postgres://u@h:1/x?sslmode=disable", "postgresql://u@h"} {
		s, err := withDatabase(conninfo, `it's \ "one"`)
		if err != nil {
			t.Fatal(err)
		}
		config, err := pgconn.ParseConfig(s)
		if err != nil || config.Database != `it's \ "one"` {
			t.Errorf("%q: %q, %v", conninfo, s, err)
		}
	}
}

func TestUnfinishedConninfoIsRefused(t *testing.T) {
	for _, conninfo := range []string{"this is none", "host='/tmp", "postgres://h:port/"} {
		if _, err := withDatabase(conninfo, "app"); err != classError(classInvalidConninfo) {
			t.Errorf("%q: %v", conninfo, err)
		}
	}
}

// life starts a session whose worker is run; it returns the control pipe, the status lines, and the end.
func life(t *testing.T, run func(context.Context, worker.Config, func(worker.State)) error) (io.WriteCloser, *bytes.Buffer, <-chan error) {
	control, in := io.Pipe()
	var out bytes.Buffer
	s := &session{status: statusWriter{w: &out}, wake: make(chan struct{}, 1), retryDelay: time.Millisecond,
		find: func(context.Context, settings) (string, error) { return "found", nil }, run: run}
	end := make(chan error, 1)
	rescue.Go(func() error { return s.serve(control) }, func(err error) { end <- err })
	if _, err := in.Write(encode(frameConfig, testConfig)); err != nil {
		t.Fatal(err)
	}
	return in, &out, end
}

func TestReloadReachesTheWorker(t *testing.T) {
	limits := make(chan worker.Limits)
	in, _, end := life(t, func(ctx context.Context, cfg worker.Config, _ func(worker.State)) error {
		limits <- cfg.Limits()
		<-cfg.Wake
		limits <- cfg.Limits()
		<-ctx.Done()
		return ctx.Err()
	})
	if l := <-limits; l.BatchMaxRows != 7 {
		t.Errorf("first limits: %+v", l)
	}
	_, _ = in.Write(encode(frameLimits, testConfig, "batch_max_rows", "9"))
	if l := <-limits; l.BatchMaxRows != 9 {
		t.Errorf("limits after reload: %+v", l)
	}
	_, _ = in.Write([]byte{frameStop, 0, 0, 0, 0})
	if err := <-end; err != nil {
		t.Error(err)
	}
}

func TestEndOfControlStops(t *testing.T) {
	in, _, end := life(t, func(ctx context.Context, _ worker.Config, _ func(worker.State)) error {
		<-ctx.Done()
		return ctx.Err()
	})
	in.Close()
	if err := <-end; err != nil {
		t.Error(err)
	}
}

func TestErrorIsReportedAndRetried(t *testing.T) {
	runs := 0
	again := make(chan struct{})
	in, out, end := life(t, func(ctx context.Context, _ worker.Config, report func(worker.State)) error {
		if runs++; runs == 1 {
			return &pgconn.PgError{Code: "55006"}
		}
		report(worker.Streaming)
		close(again)
		<-ctx.Done()
		return ctx.Err()
	})
	<-again
	in.Close()
	if err := <-end; err != nil {
		t.Error(err)
	}
	want := "state connecting\nerror object_in_use 55006\nstate connecting\nstate streaming\n"
	if out.String() != want {
		t.Errorf("got %q", out.String())
	}
}

func TestPanicEndsTheCore(t *testing.T) {
	_, _, end := life(t, func(context.Context, worker.Config, func(worker.State)) error { panic("x") })
	var p *rescue.PanicError
	if err := <-end; !errors.As(err, &p) {
		t.Errorf("got %v", err)
	}
}

func TestUnknownFrameEndsTheCore(t *testing.T) {
	in, _, end := life(t, func(ctx context.Context, _ worker.Config, _ func(worker.State)) error {
		<-ctx.Done()
		return ctx.Err()
	})
	_, _ = in.Write([]byte{'?', 0, 0, 0, 0})
	if err := <-end; !errors.Is(err, errProtocol) {
		t.Errorf("got %v", err)
	}
}
