package docs_test

import (
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNamesAreAllOnThePage: names.md shows each exported name of the root package once.
func TestNamesAreAllOnThePage(t *testing.T) {
	pkg, err := newImporter(t)(token.NewFileSet()).Import(module)
	require.NoError(t, err)
	var want, got []string
	for _, name := range pkg.Scope().Names() {
		obj := pkg.Scope().Lookup(name)
		_, isConst := obj.(*types.Const)
		_, ofType := obj.Type().(*types.Named)
		if obj.Exported() && (!isConst || !ofType || name == "EventSnapshot") { // which stands alone
			want = append(want, name)
		}
	}
	for _, m := range regexp.MustCompile("`([A-Z]\\w*)`").FindAllStringSubmatch(read(t, "names.md"), -1) {
		got = append(got, m[1])
	}
	slices.Sort(got)
	require.Equal(t, want, got)
}
