package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the top of the checkout.
const root = "../.."

// sources lists the project's files with one of the suffixes below a directory, as slash paths relative to root.
func sources(t *testing.T, dir string, suffixes ...string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			// Hidden directories are build output or git's.
			if rel != "." && strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			return nil
		}
		for _, suffix := range suffixes {
			if strings.HasSuffix(rel, suffix) {
				files = append(files, filepath.ToSlash(rel))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Whoever opens a file should be able to read it in one go.
func TestSizes(t *testing.T) {
	limits := []struct {
		dir, suffix string
		lines       int
	}{
		{".", ".go", 800},
		{".", ".c", 800},
		{"sql/functions", ".sql", 150},
		{".", "Makefile", 100},
	}
	for _, l := range limits {
		for _, path := range sources(t, l.dir, l.suffix) {
			if n := strings.Count(read(t, path), "\n"); n > l.lines {
				t.Errorf("%s has %d lines, more than %d", path, n, l.lines)
			}
		}
	}
}
