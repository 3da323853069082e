package debian

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"strings"
)

// maxLine bounds one line of an archive index; dependency lists are long.
const maxLine = 1 << 20

// Stanzas yields the paragraphs of a Debian control file: field name in lower case to value, continuation lines joined by
// newlines.
func Stanzas(r io.Reader) iter.Seq2[map[string]string, error] {
	return func(yield func(map[string]string, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 0, 64<<10), maxLine)
		stanza := map[string]string{}
		field, number := "", 0
		for lines.Scan() {
			number++
			line := lines.Text()
			if strings.TrimSpace(line) == "" {
				if len(stanza) > 0 && !yield(stanza, nil) {
					return
				}
				stanza, field = map[string]string{}, ""
				continue
			}
			if line[0] == ' ' || line[0] == '\t' {
				if field == "" {
					yield(nil, fmt.Errorf("line %d continues no field", number))
					return
				}
				stanza[field] += "\n" + strings.TrimSpace(line)
				continue
			}
			name, value, ok := strings.Cut(line, ":")
			if !ok {
				yield(nil, fmt.Errorf("line %d is no field", number))
				return
			}
			field = strings.ToLower(name)
			stanza[field] = strings.TrimSpace(value)
		}
		if err := lines.Err(); err != nil {
			yield(nil, fmt.Errorf("line %d: %w", number+1, err))
			return
		}
		if len(stanza) > 0 {
			yield(stanza, nil)
		}
	}
}
