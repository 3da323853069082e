package debian

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const index = `Package: zeta
Version: 1.2-3
Architecture: amd64
Maintainer: "Example List Team" <Example-List@lists.example.org>
Installed-Size: 12
Size: 3456
Section: sound
Priority: optional
Pre-Depends: dpkg (>= 1)
Depends: liba (>= 1), libb | libc
Homepage: https://zeta.example.org/
Description: does something
 with a longer text
 .
 in two paragraphs
Essential: yes

Package: alpha
Version: 2
Architecture: all
Maintainer: Example Tracker Team <team+alpha@tracker.example.org>
Section: misc
Priority: extra
Description: first
Status: install ok installed

Package: alpha
Version: 1
Architecture: all
Description: an older version of it

Package: gone
Version: 1
Architecture: all
Status: deinstall ok config-files
`

func TestParseReadsStanzas(t *testing.T) {
	got, err := Parse(strings.NewReader(index))
	if err != nil {
		t.Fatal(err)
	}
	size, installed, home := int64(3456), int64(12), "https://zeta.example.org/"
	want := []Package{
		{
			ID: "alpha/all", Name: "alpha", Architecture: "all", Version: "2", Section: "misc", Priority: "extra",
			Maintainer: "team+alpha@tracker.example.org", Team: "Example Tracker Team", PreDepends: []string{}, Depends: []string{}, Summary: "first",
		},
		{
			ID: "zeta/amd64", Name: "zeta", Architecture: "amd64", Version: "1.2-3", Section: "sound", Priority: "optional",
			Maintainer: "example-list@lists.example.org", Team: "Example List Team", InstalledSize: &installed, DownloadSize: &size,
			PreDepends: []string{"dpkg (>= 1)"}, Depends: []string{"liba (>= 1)", "libb | libc"}, Homepage: &home, Summary: "does something", Essential: true,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
}

func TestParseRefusesWhatIsNoControlFile(t *testing.T) {
	for _, text := range []string{" continuation first\n", "Package: a\nno colon here\n"} {
		if _, err := Parse(strings.NewReader(text)); err == nil {
			t.Errorf("accepted %q", text)
		}
	}
}

func packagesOf(maintainer, section string, n int) []Package {
	list := make([]Package, n)
	for i := range list {
		list[i] = Package{Maintainer: maintainer, Team: "name of " + maintainer, Section: section}
	}
	return list
}

func TestLargestTeamIsNeverAPersonOrEverybody(t *testing.T) {
	packages := packagesOf("somebody@example.org", "a", 30)
	packages = append(packages, packagesOf("b@lists.example.org", "a", 20)...)
	packages = append(packages, packagesOf("a@lists.example.org", "a", 20)...)
	packages = append(packages, packagesOf("all@lists.example.org", "a", maxTeam+1)...)
	team, err := LargestTeam(packages)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Team{"a@lists.example.org", "name of a@lists.example.org", 20}); team != want {
		t.Errorf("team = %+v, want %+v", team, want)
	}
	if _, err := LargestTeam(packages[:30]); err == nil {
		t.Error("a person became a team")
	}
}

func TestTwoSectionsAreTheLargestOfModestSize(t *testing.T) {
	packages := packagesOf("", "huge", maxSection+1)
	packages = append(packages, packagesOf("", "mid", 50)...)
	packages = append(packages, packagesOf("", "low", 10)...)
	packages = append(packages, packagesOf("", "lower", 9)...)
	got, err := TwoSections(packages)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"mid", "low"}, got); diff != "" {
		t.Error(diff)
	}
}
