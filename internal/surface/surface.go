// Package surface lists what packages export, for the tests that keep such a list.
package surface

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// List says everything that the packages with these import paths export, a line each: package
// by package, in the order of the names. The go command finds the packages from the module in
// the working directory.
func List(paths ...string) ([]string, error) {
	exports, err := Find(paths...)
	if err != nil {
		return nil, err
	}
	from := exports.Importer(token.NewFileSet())
	var lines []string
	for _, path := range paths {
		pkg, err := from.Import(path)
		if err != nil {
			return nil, err
		}
		lines = append(lines, of(pkg)...)
	}
	return lines, nil
}

// Exports are the files with the compiled forms of packages, by import path.
type Exports map[string]string

// Find has the go command compile packages, and all that they import. A pattern is one of
// the go command.
func Find(patterns ...string) (Exports, error) {
	out, err := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Export"}, patterns...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("surface: go list: %w", err)
	}
	found := Exports{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := dec.Decode(&p); err == io.EOF {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("surface: go list: %w", err)
		}
		found[p.ImportPath] = p.Export
	}
}

// Importer imports these packages.
func (e Exports) Importer(fset *token.FileSet) types.Importer {
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if e[path] == "" {
			return nil, fmt.Errorf("surface: package %q is not among those found", path)
		}
		return os.Open(e[path])
	})
}

// madeUp are the names that the compiler gives to results where a function ranges over another.
var madeUp = regexp.MustCompile(`#rv\d+ `)

// of lists what a package exports, a line each, in the order of the names.
func of(pkg *types.Package) []string {
	var lines []string
	short := func(p *types.Package) string {
		if p == pkg {
			return ""
		}
		return p.Name()
	}
	say := func(format string, args ...any) {
		lines = append(lines, pkg.Name()+": "+madeUp.ReplaceAllString(fmt.Sprintf(format, args...), ""))
	}
	for _, name := range pkg.Scope().Names() {
		obj := pkg.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		named, ok := obj.Type().(*types.Named)
		if _, isType := obj.(*types.TypeName); !isType || !ok {
			say("%s%s", types.ObjectString(obj, short), value(obj))
			continue
		}
		say("type %s%s %s", name, typeParams(named, short), kind(named, short))
		members(named, short, func(text string) { say("%s", text) })
	}
	return lines
}

// value is what a constant is.
func value(obj types.Object) string {
	if c, ok := obj.(*types.Const); ok {
		return " = " + c.Val().String()
	}
	return ""
}

func typeParams(named *types.Named, q types.Qualifier) string {
	text := types.TypeString(named, q)
	if i := strings.IndexByte(text, '['); i >= 0 {
		return text[i:]
	}
	return ""
}

// kind is a type's definition, without the members of a struct or an interface.
func kind(named *types.Named, q types.Qualifier) string {
	switch u := named.Underlying().(type) {
	case *types.Struct:
		return "struct"
	case *types.Interface:
		return "interface"
	default:
		return types.TypeString(u, q)
	}
}

// members says the exported fields and methods of a type.
func members(named *types.Named, q types.Qualifier, say func(string)) {
	name := named.Obj().Name()
	if s, ok := named.Underlying().(*types.Struct); ok {
		for f := range s.Fields() {
			if f.Exported() {
				say(fmt.Sprintf("field %s.%s %s", name, f.Name(), types.TypeString(f.Type(), q)))
			}
		}
	}
	set := types.NewMethodSet(types.NewPointer(named))
	if types.IsInterface(named) {
		set = types.NewMethodSet(named)
	}
	var methods []string
	for m := range set.Methods() {
		if m.Obj().Exported() && len(m.Index()) == 1 {
			methods = append(methods, types.ObjectString(m.Obj(), q))
		}
	}
	slices.Sort(methods)
	for _, m := range methods {
		say(m)
	}
}
