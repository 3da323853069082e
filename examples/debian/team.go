package debian

import (
	"cmp"
	"errors"
	"slices"
	"strings"
)

// Team is a packaging team: its address is the user that syncs.
type Team struct {
	Address  string
	Name     string
	Packages int
}

// maxTeam keeps a distribution that lists one address for everything from making the demo one huge scope.
const maxTeam = 5000

// LargestTeam chooses the team with the most packages (of equals, the first address), never a single person: only addresses
// of mailing lists and of the archive's team tracker count.
func LargestTeam(packages []Package) (Team, error) {
	teams := map[string]Team{}
	for _, p := range packages {
		if !isTeam(p.Maintainer) {
			continue
		}
		t := teams[p.Maintainer]
		if t.Packages == 0 {
			t = Team{Address: p.Maintainer, Name: p.Team}
		}
		t.Packages++
		teams[p.Maintainer] = t
	}
	var best Team
	for _, t := range teams {
		if t.Packages > maxTeam {
			continue
		}
		if t.Packages > best.Packages || (t.Packages == best.Packages && t.Address < best.Address) {
			best = t
		}
	}
	if best.Packages == 0 {
		return Team{}, errors.New("no packaging team in this archive")
	}
	return best, nil
}

// isTeam recognizes the hosts that carry lists and team aliases.
func isTeam(address string) bool {
	_, host, ok := strings.Cut(address, "@")
	if !ok {
		return false
	}
	first, _, _ := strings.Cut(host, ".")
	return first == "lists" || first == "alioth-lists" || first == "tracker"
}

// maxSection bounds the sections that the demo follows.
const maxSection = 1000

// TwoSections chooses the two largest sections of at most maxSection packages, or the two smallest where all are larger.
func TwoSections(packages []Package) ([]string, error) {
	count := map[string]int{}
	for _, p := range packages {
		if p.Section != "" {
			count[p.Section]++
		}
	}
	if len(count) < 2 {
		return nil, errors.New("fewer than two sections in this archive")
	}
	names := make([]string, 0, len(count))
	for name := range count {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		smallA, smallB := count[a] <= maxSection, count[b] <= maxSection
		switch {
		case smallA != smallB:
			if smallA {
				return -1
			}
			return 1
		case smallA:
			return cmp.Or(cmp.Compare(count[b], count[a]), strings.Compare(a, b))
		default:
			return cmp.Or(cmp.Compare(count[a], count[b]), strings.Compare(a, b))
		}
	})
	return names[:2], nil
}
