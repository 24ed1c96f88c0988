package docs_test

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel/agenttest"
)

// public are the packages that a user imports.
var public = []string{module, module + "/agenttest", module + "/journal", module + "/openai", module + "/sse"}

// TestAPI compares everything that is exported with api.txt, so that a change of the surface
// is a decision: AGENTTEST_UPDATE=1 go test ./docs writes the file anew.
func TestAPI(t *testing.T) {
	from := fromExports(token.NewFileSet(), exportData(t))
	var lines []string
	for _, path := range public {
		pkg, err := from.Import(path)
		require.NoError(t, err)
		lines = append(lines, surface(pkg)...)
	}
	require.Greater(t, len(lines), 500)
	agenttest.Golden(t, "api.txt", strings.Join(lines, "\n")+"\n")
}

// surface lists what a package exports, a line each, in the order of the names.
func surface(pkg *types.Package) []string {
	var lines []string
	short := func(p *types.Package) string {
		if p == pkg {
			return ""
		}
		return p.Name()
	}
	say := func(format string, args ...any) {
		lines = append(lines, pkg.Name()+": "+fmt.Sprintf(format, args...))
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
