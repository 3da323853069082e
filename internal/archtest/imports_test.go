package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "synchro"

// rules say which packages of ours a room may use, and which foreign ones it must not. Tests may use more.
var rules = []struct {
	room    string
	own     []string
	foreign []string // forbidden prefixes
}{
	{room: "canonical", own: []string{"internal"}, foreign: []string{"github.com/jackc/"}},
	{room: "protocol", own: []string{"protocol", "canonical", "internal"}, foreign: []string{"github.com/"}},
	{room: "worker", own: []string{"canonical", "internal", "worker"}},
	{room: "cgo", own: []string{"worker"}},
	{room: "shim", own: []string{"protocol", "internal", "shim"}},
	{room: "client", own: []string{"protocol", "canonical", "client", "internal"}, foreign: []string{"github.com/jackc/", "database/sql/driver"}},
	{room: "registry", own: []string{"registry", "canonical", "internal"}, foreign: []string{"github.com/jackc/"}},
	{room: "internal", own: []string{"internal", "protocol", "canonical"}},
}

// goFile is a parsed Go file.
type goFile struct {
	path string
	ast  *ast.File
}

func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	set := token.NewFileSet()
	for _, p := range sources(t, ".", ".go") {
		f, err := parser.ParseFile(set, filepath.Join(root, p), nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, goFile{p, f})
	}
	return files
}

func (f goFile) imports(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, spec := range f.ast.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

func TestImportsPointOneWay(t *testing.T) {
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		room, _, _ := strings.Cut(f.path, "/")
		for _, rule := range rules {
			if rule.room != room {
				continue
			}
			for _, name := range f.imports(t) {
				if own, ok := strings.CutPrefix(name, module+"/"); ok {
					first, _, _ := strings.Cut(own, "/")
					if !slices.Contains(rule.own, first) {
						t.Errorf("%s: %s must not import %s", f.path, room, name)
					}
				}
				for _, prefix := range rule.foreign {
					if strings.HasPrefix(name, prefix) {
						t.Errorf("%s: %s must not import %s", f.path, room, name)
					}
				}
			}
		}
	}
}

func TestOnlyTheBridgeUsesC(t *testing.T) {
	for _, f := range goFiles(t) {
		if slices.Contains(f.imports(t), "C") && path.Dir(f.path) != "cgo" {
			t.Errorf("%s imports C; only cgo may", f.path)
		}
	}
}

// Test tools don't go into what we ship.
func TestShippedCodeUsesNoTestTools(t *testing.T) {
	shipped := []string{"canonical", "protocol", "worker", "cgo", "shim", "client", "registry", "cmd"}
	for _, f := range goFiles(t) {
		room, _, _ := strings.Cut(f.path, "/")
		if strings.HasSuffix(f.path, "_test.go") || !slices.Contains(shipped, room) {
			continue
		}
		for _, name := range f.imports(t) {
			if name == "testing" || strings.HasPrefix(name, module+"/internal/pgtest") || strings.HasPrefix(name, module+"/internal/devstack") {
				t.Errorf("%s imports %s", f.path, name)
			}
		}
	}
}

// One place starts servers, so that none is left behind.
func TestOnlyPgtestStartsServers(t *testing.T) {
	for _, p := range append(sources(t, ".", ".go", ".sh"), "Makefile") {
		if strings.HasPrefix(p, "internal/pgtest/") || strings.HasPrefix(p, "internal/archtest/") {
			continue
		}
		text := read(t, p)
		for _, word := range []string{"initdb", "pg_ctl", "pg_ctlcluster", "pg_createcluster"} {
			if strings.Contains(text, word) {
				t.Errorf("%s mentions %s: servers are started through internal/pgtest", p, word)
			}
		}
	}
}

func TestEveryPackageHasAComment(t *testing.T) {
	documented := map[string]bool{}
	for _, f := range goFiles(t) {
		dir := path.Dir(f.path)
		if strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		documented[dir] = documented[dir] || f.ast.Doc != nil
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package in %s has no package comment", dir)
		}
	}
}
