// Command gen turns protocol/errcodes.txt into the C header, the Go table and
// the documentation page, so that one name means one SQLSTATE everywhere.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "root folder of the repository")
	flag.Parse()
	if err := run(*root); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// run renders every output and replaces only the files that changed, so that
// an unchanged table leaves make's timestamps alone.
func run(root string) error {
	outputs, err := render(root)
	if err != nil {
		return err
	}
	for path, want := range outputs {
		full := filepath.Join(root, path)
		if have, err := os.ReadFile(full); err == nil && string(have) == string(want) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, want, 0o644); err != nil {
			return err
		}
	}
	return nil
}
