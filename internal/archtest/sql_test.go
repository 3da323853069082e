package archtest

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// installed is what CREATE EXTENSION executes, in order.
func installed(t *testing.T) []string {
	t.Helper()
	var names []string
	for line := range strings.Lines(read(t, "sql/install.list")) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			names = append(names, line)
		}
	}
	return names
}

func TestEverySQLFileIsInstalledOnce(t *testing.T) {
	names := installed(t)
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			t.Errorf("sql/install.list names %s twice", name)
		}
		read(t, "sql/"+name)
	}
	for _, p := range sources(t, "sql", ".sql") {
		name := strings.TrimPrefix(p, "sql/")
		if !strings.HasPrefix(name, "updates/") && !slices.Contains(names, name) {
			t.Errorf("%s is not in sql/install.list", p)
		}
	}
}

var createFunction = regexp.MustCompile(`(?im)^CREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE|AGGREGATE) ([a-z_0-9."]+)`)

// A file has the name of its function; only declarations of C functions that belong together share one.
func TestOneFunctionNameAFile(t *testing.T) {
	for _, p := range sources(t, "sql/functions", ".sql") {
		want := "synchro." + strings.TrimSuffix(path.Base(p), ".sql")
		text := read(t, p)
		defined := createFunction.FindAllStringSubmatch(text, -1)
		if len(defined) == 0 {
			t.Errorf("%s defines no function", p)
		}
		if len(languageC.FindAllString(text, -1)) == len(defined) {
			continue
		}
		for _, d := range defined {
			if d[1] != want {
				t.Errorf("%s defines %s, not %s", p, d[1], want)
			}
		}
	}
}

var (
	functionHead = regexp.MustCompile(`(?is)CREATE (?:OR REPLACE )?FUNCTION.*?(?:AS\s+('|\$)|BEGIN ATOMIC)`)
	languageC    = regexp.MustCompile(`(?i)LANGUAGE\s+c\b`)
	searchPath   = regexp.MustCompile(`(?i)SET search_path = pg_catalog(, synchro)?(, pg_temp)?\b`)
)

// A function without a search_path of its own resolves names as its caller likes.
func TestEveryFunctionSetsItsSearchPath(t *testing.T) {
	for _, p := range sources(t, "sql", ".sql") {
		for _, head := range functionHead.FindAllString(read(t, p), -1) {
			if !languageC.MatchString(head) && !searchPath.MatchString(head) {
				first, _, _ := strings.Cut(head, "\n")
				t.Errorf("%s: no search_path: %s", p, first)
			}
		}
	}
}

// What a backslash in a plain literal means is up to the session (standard_conforming_strings), and a function is compiled in the session that calls it.
func TestBackslashesStandInEscapeStrings(t *testing.T) {
	comment, literal := regexp.MustCompile(`--.*`), regexp.MustCompile(`([EeBb&]?)'(?:[^']|'')*'`)
	for _, p := range sources(t, "sql", ".sql") {
		for _, m := range literal.FindAllStringSubmatch(comment.ReplaceAllString(read(t, p), ""), -1) {
			if m[1] == "" && strings.Contains(m[0], `\`) {
				t.Errorf("%s: a backslash in %s", p, m[0])
			}
		}
	}
}
