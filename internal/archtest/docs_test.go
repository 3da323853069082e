package archtest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	for _, p := range sources(t, ".", ".md") {
		for _, m := range link.FindAllStringSubmatch(read(t, p), -1) {
			target := filepath.Join(root, path.Dir(p), m[1])
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", p, m[1])
			}
		}
	}
}

func TestDecisionsHaveNumbersOfTheirOwn(t *testing.T) {
	seen := map[string]string{}
	for _, p := range sources(t, "docs/decisions", ".md") {
		number, _, _ := strings.Cut(path.Base(p), "-")
		if seen[number] != "" {
			t.Errorf("%s has the number of %s", p, seen[number])
		}
		seen[number] = p
	}
}

// setting finds what C defines and operators have to read about.
var setting = regexp.MustCompile(`"(synchro\.[a-z_]+)"`)

func TestEverySettingIsDocumented(t *testing.T) {
	page := read(t, "docs/configuration.md")
	found := 0
	for _, p := range sources(t, "extension", "guc.c") {
		for _, m := range setting.FindAllStringSubmatch(read(t, p), -1) {
			found++
			if !strings.Contains(page, "`"+m[1]+"`") {
				t.Errorf("docs/configuration.md does not mention %s", m[1])
			}
		}
	}
	if found == 0 {
		t.Error("extension/guc.c defines no setting")
	}
}

// The migrations of docs/registration.md are those that the tests run.
var migration = regexp.MustCompile("(?s)```sql\n(BEGIN;\n.*?)```")

func TestMigrationsOfTheDocumentsAreTested(t *testing.T) {
	test := read(t, "test/regress/sql/dependency_examples.sql")
	migrations := migration.FindAllStringSubmatch(read(t, "docs/registration.md"), -1)
	if len(migrations) == 0 {
		t.Fatal("docs/registration.md has no migration")
	}
	for i, m := range migrations {
		if !strings.Contains(test, m[1]) {
			t.Errorf("migration %d of docs/registration.md is not in dependency_examples.sql", i+1)
		}
	}
}
