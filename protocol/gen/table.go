package main

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// entry is one line of errcodes.txt. Status 0 means never on the wire.
type entry struct {
	Name      string
	SQLState  string
	Status    int
	Retryable bool
	Section   string
}

var (
	nameForm  = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	stateForm = regexp.MustCompile(`^[0-9A-Z]{5}$`)
)

// parse reads the table. A comment paragraph before the first entry after it
// names a section. A private (SY) SQLSTATE and a wire SQLSTATE are used once only, because
// the shim finds the wire error by its SQLSTATE.
func parse(data []byte) ([]entry, error) {
	var entries []entry
	section := ""
	names := map[string]bool{}
	states := map[string]entry{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if comment, ok := strings.CutPrefix(line, "#"); ok {
			section = strings.TrimSpace(comment)
			continue
		}
		if line == "" {
			continue
		}
		e, err := parseLine(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if names[e.Name] {
			return nil, fmt.Errorf("line %d: name %s appears twice", number, e.Name)
		}
		other, taken := states[e.SQLState]
		if taken && (strings.HasPrefix(e.SQLState, "SY") || e.Status != 0 || other.Status != 0) {
			return nil, fmt.Errorf("line %d: SQLSTATE %s appears twice", number, e.SQLState)
		}
		names[e.Name] = true
		if !taken {
			states[e.SQLState] = e
		}
		e.Section = section
		entries = append(entries, e)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("the table is empty")
	}
	return entries, nil
}

func parseLine(line string) (entry, error) {
	columns := strings.Fields(line)
	if len(columns) != 4 {
		return entry{}, fmt.Errorf("%d columns instead of 4", len(columns))
	}
	e := entry{Name: columns[0], SQLState: columns[1]}
	if !nameForm.MatchString(e.Name) {
		return entry{}, fmt.Errorf("malformed name %q", e.Name)
	}
	if !stateForm.MatchString(e.SQLState) {
		return entry{}, fmt.Errorf("malformed SQLSTATE %q", e.SQLState)
	}
	if columns[2] != "-" {
		status, err := strconv.Atoi(columns[2])
		if err != nil || status < 400 || status > 599 {
			return entry{}, fmt.Errorf("malformed HTTP status %q", columns[2])
		}
		e.Status = status
	}
	switch columns[3] {
	case "yes":
		e.Retryable = true
	case "no":
	default:
		return entry{}, fmt.Errorf("retryable is yes or no, not %q", columns[3])
	}
	return e, nil
}
