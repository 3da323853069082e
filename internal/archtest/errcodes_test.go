package archtest

import (
	"regexp"
	"strings"
	"testing"
)

// table is the SQLSTATEs of protocol/errcodes.txt.
func table(t *testing.T) map[string]bool {
	t.Helper()
	codes := map[string]bool{}
	for line := range strings.Lines(read(t, "protocol/errcodes.txt")) {
		line, _, _ = strings.Cut(line, "#")
		if f := strings.Fields(line); len(f) > 1 {
			codes[f[1]] = true
		}
	}
	if len(codes) == 0 {
		t.Fatal("protocol/errcodes.txt is empty")
	}
	return codes
}

var (
	ownCode     = regexp.MustCompile(`\bSY[0-9A-Z]{3}\b`)
	raisedCode  = regexp.MustCompile(`(?i)ERRCODE\s*=\s*'([0-9A-Z]{5})'`)
	ereportCall = regexp.MustCompile(`ereport\(\s*(?:ERROR|FATAL)\s*,[^;]*;`)
)

// postgres lists codes of PostgreSQL's own that mean with us what they mean there.
var postgres = map[string]bool{"40001": true, "42501": true, "XX000": true}

// class is the condition that catches every code of ours.
const class = "SY000"

// generated files are made from the table, and hold it in other forms.
var generated = map[string]bool{"extension/errcodes.h": true, "protocol/errcodes.go": true, "sql/schema/errcodes.sql": true}

func TestEverySQLSTATEIsInTheTable(t *testing.T) {
	codes := table(t)
	for _, p := range sources(t, ".", ".go", ".c", ".h", ".sql") {
		if generated[p] || strings.HasPrefix(p, "protocol/gen/") || strings.HasPrefix(p, "internal/archtest/") {
			continue
		}
		text := read(t, p)
		for _, code := range ownCode.FindAllString(text, -1) {
			if !codes[code] && code != class {
				t.Errorf("%s uses SQLSTATE %s, which protocol/errcodes.txt lacks", p, code)
			}
		}
		if !strings.HasPrefix(p, "sql/") {
			continue
		}
		for _, m := range raisedCode.FindAllStringSubmatch(text, -1) {
			if !codes[m[1]] && !postgres[m[1]] {
				t.Errorf("%s raises SQLSTATE %s, which protocol/errcodes.txt lacks", p, m[1])
			}
		}
	}
}

func TestCReportsCarryASQLSTATE(t *testing.T) {
	for _, p := range sources(t, "extension", ".c", ".h") {
		if generated[p] {
			continue
		}
		text := read(t, p)
		if strings.Contains(text, "MAKE_SQLSTATE") {
			t.Errorf("%s makes a SQLSTATE of its own; use extension/errcodes.h", p)
		}
		for _, call := range ereportCall.FindAllString(text, -1) {
			if !strings.Contains(call, "errcode") {
				first, _, _ := strings.Cut(call, "\n")
				t.Errorf("%s reports without SQLSTATE: %s", p, first)
			}
		}
	}
}
