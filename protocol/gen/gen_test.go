package main

import (
	"os"
	"path/filepath"
	"testing"
)

const root = "../.."

func TestGeneratedFilesAreCurrent(t *testing.T) {
	outputs, err := render(root)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range outputs {
		have, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Error(err)
			continue
		}
		if string(have) != string(want) {
			t.Errorf("%s is stale: run go generate ./protocol", path)
		}
	}
}

func TestParseRefusesABrokenTable(t *testing.T) {
	for name, table := range map[string]string{
		"missing column":        "a SY001 400",
		"surplus column":        "a SY001 400 no more",
		"upper case name":       "Abc SY001 400 no",
		"short SQLSTATE":        "a SY1 400 no",
		"lower case SQLSTATE":   "a sy001 400 no",
		"status of success":     "a SY001 200 no",
		"status word":           "a SY001 bad no",
		"retryable word":        "a SY001 400 maybe",
		"repeated name":         "a SY001 400 no\na SY002 400 no",
		"repeated own SQLSTATE": "a SY101 - no\nb SY101 - no",
		"wire SQLSTATE shared":  "a 22023 400 no\nb 22023 - no",
		"empty table":           "# nothing\n",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse([]byte(table)); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestParseReadsEveryColumn(t *testing.T) {
	entries, err := parse([]byte("# Head.\nslow_down SY010 429 yes\n\n# Tail.\nodd_one 22023 - no\nodd_two 22023 - no\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []entry{
		{"slow_down", "SY010", 429, true, "Head."},
		{"odd_one", "22023", 0, false, "Tail."},
		{"odd_two", "22023", 0, false, "Tail."},
	}
	if len(entries) != len(want) {
		t.Fatalf("%d entries, want %d", len(entries), len(want))
	}
	for i := range want {
		if entries[i] != want[i] {
			t.Errorf("entry %d: %+v, want %+v", i, entries[i], want[i])
		}
	}
}
