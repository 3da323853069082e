package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// Package is one row of archive.package. Team is the display name that goes with the maintainer address.
type Package struct {
	ID, Name, Architecture, Version, Section, Priority string
	Maintainer, Team                                   string
	InstalledSize, DownloadSize                        *int64
	PreDepends, Depends                                []string
	Homepage                                           *string
	Summary                                            string
	Essential                                          bool
}

// statusFile lists the installed packages; every Debian has it.
const statusFile = "/var/lib/dpkg/status"

// ReadArchive returns the packages that the machine's apt knows, ordered by id: the archive's where package lists are there,
// else the installed ones.
func ReadArchive(ctx context.Context) ([]Package, error) {
	out, err := exec.CommandContext(ctx, "apt-cache", "dumpavail").Output()
	if err == nil {
		packages, err := Parse(bytes.NewReader(out))
		if err != nil {
			return nil, fmt.Errorf("apt-cache dumpavail: %w", err)
		}
		if len(packages) > 0 {
			return packages, nil
		}
	}
	f, err := os.Open(statusFile)
	if err != nil {
		return nil, fmt.Errorf("no package archive on this system: %w", err)
	}
	defer f.Close()
	packages, err := Parse(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", statusFile, err)
	}
	if len(packages) == 0 {
		return nil, errors.New("no package archive on this system: " + statusFile + " is empty")
	}
	return packages, nil
}

// Parse reads packages from an archive index or a status file. Where one occurs in several versions, the first one counts,
// as it does for apt-cache.
func Parse(r io.Reader) ([]Package, error) {
	var packages []Package
	seen := map[string]bool{}
	for stanza, err := range Stanzas(r) {
		if err != nil {
			return nil, err
		}
		p, ok := fromStanza(stanza)
		if !ok || seen[p.ID] {
			continue
		}
		seen[p.ID] = true
		packages = append(packages, p)
	}
	slices.SortFunc(packages, func(a, b Package) int { return strings.Compare(a.ID, b.ID) })
	return packages, nil
}

// fromStanza takes a package from a stanza; none that a status file knows but that isn't installed.
func fromStanza(s map[string]string) (Package, bool) {
	if s["package"] == "" || s["architecture"] == "" || s["version"] == "" {
		return Package{}, false
	}
	if status, ok := s["status"]; ok && !strings.HasSuffix(status, " installed") {
		return Package{}, false
	}
	team, address := splitMaintainer(s["maintainer"])
	p := Package{
		ID:            s["package"] + "/" + s["architecture"],
		Name:          s["package"],
		Architecture:  s["architecture"],
		Version:       s["version"],
		Section:       s["section"],
		Priority:      s["priority"],
		Maintainer:    address,
		Team:          team,
		InstalledSize: number(s["installed-size"]),
		DownloadSize:  number(s["size"]),
		PreDepends:    list(s["pre-depends"]),
		Depends:       list(s["depends"]),
		Summary:       firstLine(s["description"]),
		Essential:     s["essential"] == "yes",
	}
	if h := s["homepage"]; h != "" {
		p.Homepage = &h
	}
	return p, true
}

// splitMaintainer takes "Name <address>" apart; the address in lower case.
func splitMaintainer(s string) (name, address string) {
	name, rest, ok := strings.Cut(s, "<")
	if !ok {
		return "", ""
	}
	address, _, ok = strings.Cut(rest, ">")
	if !ok {
		return "", ""
	}
	return strings.Trim(strings.TrimSpace(name), `"`), strings.ToLower(strings.TrimSpace(address))
}

func number(s string) *int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

func list(s string) []string {
	items := []string{}
	for _, item := range strings.Split(s, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
