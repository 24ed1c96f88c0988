package schema

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// tree is a schema with what the library keeps to itself: where each part stands and what
// its references refer to. After link every reference is a plain one, "#/$defs/root/…", so
// that a part judged on its own under [tree.judge] means what it meant in its place.
type tree struct {
	root     *jsonschema.Schema
	pointers map[*jsonschema.Schema]string // JSON pointer from the root
	refs     map[*jsonschema.Schema]*jsonschema.Schema
	dynamic  map[*jsonschema.Schema][]*jsonschema.Schema // what $dynamicRef may lead to
	patterns map[*jsonschema.Schema][]pattern
	draft7   bool
	costly   bool // a check may take out of all proportion: see [tree.affordable]

	rules  sync.Map // *jsonschema.Schema to []rule
	whole  sync.Map // *jsonschema.Schema to rule
	unions sync.Map // first branch to rule
}

// pattern is an entry of patternProperties.
type pattern struct {
	name   *regexp.Regexp
	schema *jsonschema.Schema
}

// child is a schema that stands in another one, at pointer from there.
type child struct {
	pointer string
	schema  *jsonschema.Schema
}

// children returns the schemas that stand in s, in the order of the library: by keyword.
func children(s *jsonschema.Schema) []child {
	var out []child
	add := func(pointer string, one *jsonschema.Schema) {
		if one != nil {
			out = append(out, child{pointer, one})
		}
	}
	list := func(keyword string, ones []*jsonschema.Schema) {
		for i, one := range ones {
			add(keyword+"/"+strconv.Itoa(i), one)
		}
	}
	named := func(keyword string, ones map[string]*jsonschema.Schema) {
		for _, name := range slices.Sorted(maps.Keys(ones)) {
			add(keyword+"/"+escape(name), ones[name])
		}
	}
	named("/$defs", s.Defs)
	add("/additionalItems", s.AdditionalItems)
	add("/additionalProperties", s.AdditionalProperties)
	list("/allOf", s.AllOf)
	list("/anyOf", s.AnyOf)
	add("/contains", s.Contains)
	add("/contentSchema", s.ContentSchema)
	named("/definitions", s.Definitions)
	named("/dependencies", s.DependencySchemas)
	named("/dependentSchemas", s.DependentSchemas)
	add("/else", s.Else)
	add("/if", s.If)
	add("/items", s.Items)
	list("/items", s.ItemsArray)
	add("/not", s.Not)
	list("/oneOf", s.OneOf)
	named("/patternProperties", s.PatternProperties)
	list("/prefixItems", s.PrefixItems)
	named("/properties", s.Properties)
	add("/propertyNames", s.PropertyNames)
	add("/then", s.Then)
	add("/unevaluatedItems", s.UnevaluatedItems)
	add("/unevaluatedProperties", s.UnevaluatedProperties)
	return out
}

// inPlace yields the schemas that s may apply to the same value.
func (t *tree) inPlace(s *jsonschema.Schema) iter.Seq[*jsonschema.Schema] {
	return func(yield func(*jsonschema.Schema) bool) {
		if ref := t.refs[s]; ref != nil && (!yield(ref) || t.draft7) {
			return
		}
		single := []*jsonschema.Schema{s.Not, s.If, s.Then, s.Else}
		for _, list := range [][]*jsonschema.Schema{t.dynamic[s], s.AllOf, s.AnyOf, s.OneOf, single} {
			for _, one := range list {
				if one != nil && !yield(one) {
					return
				}
			}
		}
		for _, named := range []map[string]*jsonschema.Schema{s.DependentSchemas, s.DependencySchemas} {
			for _, one := range named {
				if !yield(one) {
					return
				}
			}
		}
	}
}

// edges yields all that s leads to.
func (t *tree) edges(s *jsonschema.Schema) iter.Seq[*jsonschema.Schema] {
	return func(yield func(*jsonschema.Schema) bool) {
		for one := range t.inPlace(s) {
			if !yield(one) {
				return
			}
		}
		for _, c := range children(s) {
			defined := strings.HasPrefix(c.pointer, "/$defs/") || strings.HasPrefix(c.pointer, "/definitions/")
			if !defined && !yield(c.schema) {
				return
			}
		}
	}
}

// cycle returns a schema that edges lead back to, nil where there is none.
func (t *tree) cycle(edges func(*jsonschema.Schema) iter.Seq[*jsonschema.Schema]) *jsonschema.Schema {
	open := make(map[*jsonschema.Schema]bool) // false once all behind it is known
	var visit func(s *jsonschema.Schema) *jsonschema.Schema
	visit = func(s *jsonschema.Schema) *jsonschema.Schema {
		if on, seen := open[s]; on {
			return s
		} else if seen {
			return nil
		}
		open[s] = true
		for next := range edges(s) {
			if found := visit(next); found != nil {
				return found
			}
		}
		open[s] = false
		return nil
	}
	inOrder := slices.SortedFunc(maps.Keys(t.pointers), func(a, b *jsonschema.Schema) int {
		return cmp.Compare(t.pointers[a], t.pointers[b])
	})
	for _, s := range inOrder {
		if found := visit(s); found != nil {
			return found
		}
	}
	return nil
}

// place notes the pointers of s and of all that stands in it.
func (t *tree) place(s *jsonschema.Schema, pointer string) {
	t.pointers[s] = pointer
	for _, c := range children(s) {
		t.place(c.schema, pointer+c.pointer)
	}
}

// base is a schema that references are relative to.
type base struct {
	uri     *url.URL
	pointer string
}

// linker finds what references refer to.
type linker struct {
	*tree
	targets map[string]*jsonschema.Schema // by URI with fragment
	bases   map[*jsonschema.Schema]*url.URL
	anchors map[string][]*jsonschema.Schema // the dynamic ones by name
}

// link finds what each reference refers to, makes the references plain and drops what they
// were relative to. The library resolved them before, so that here nothing should fail.
func (t *tree) link() error {
	t.draft7 = slices.Contains(dialects[2:], t.root.Schema)
	t.refs = make(map[*jsonschema.Schema]*jsonschema.Schema)
	t.dynamic = make(map[*jsonschema.Schema][]*jsonschema.Schema)
	t.patterns = make(map[*jsonschema.Schema][]pattern)
	l := &linker{
		tree:    t,
		targets: make(map[string]*jsonschema.Schema),
		bases:   make(map[*jsonschema.Schema]*url.URL),
		anchors: make(map[string][]*jsonschema.Schema),
	}
	if err := l.name(t.root, "", []base{{uri: new(url.URL)}}); err != nil {
		return err
	}
	for s := range t.pointers {
		if err := l.follow(s); err != nil {
			return err
		}
	}
	for s := range t.pointers {
		s.ID, s.Anchor = "", ""
		if ref := t.refs[s]; ref != nil {
			s.Ref = (&url.URL{Fragment: "/$defs/root" + t.pointers[ref]}).String()
		}
	}
	return nil
}

// name registers s and all that stands in it under every URI that may refer to it.
func (l *linker) name(s *jsonschema.Schema, pointer string, bases []base) error {
	here := bases[len(bases)-1].uri
	if s.ID != "" && !(l.draft7 && s.Ref != "") {
		id, err := url.Parse(s.ID)
		if err != nil {
			return err
		}
		if l.draft7 && id.Fragment != "" {
			l.targets[key(here, strings.TrimPrefix(s.ID, "#"))] = s
		} else {
			here = here.ResolveReference(id)
			bases = append(slices.Clip(bases), base{uri: here, pointer: pointer})
		}
	}
	l.bases[s] = here
	for _, b := range bases {
		l.targets[key(b.uri, unescape(pointer[len(b.pointer):]))] = s
	}
	for _, anchor := range []string{s.Anchor, s.DynamicAnchor} {
		if anchor != "" && !l.draft7 {
			l.targets[key(here, anchor)] = s
		}
	}
	if s.DynamicAnchor != "" {
		l.anchors[s.DynamicAnchor] = append(l.anchors[s.DynamicAnchor], s)
	}
	for _, c := range children(s) {
		if err := l.name(c.schema, pointer+c.pointer, bases); err != nil {
			return err
		}
	}
	return nil
}

// follow notes what the references of s refer to.
func (l *linker) follow(s *jsonschema.Schema) error {
	if s.Ref != "" {
		target, _, err := l.target(s, s.Ref)
		if err != nil {
			return err
		}
		l.refs[s] = target
	}
	if s.DynamicRef != "" {
		target, anchor, err := l.target(s, s.DynamicRef)
		if err != nil {
			return err
		}
		l.dynamic[s] = append(slices.Clone(l.anchors[anchor]), target)
	}
	for _, expr := range slices.Sorted(maps.Keys(s.PatternProperties)) {
		re, err := regexp.Compile(expr)
		if err != nil {
			return err
		}
		l.patterns[s] = append(l.patterns[s], pattern{name: re, schema: s.PatternProperties[expr]})
	}
	return nil
}

func (l *linker) target(s *jsonschema.Schema, ref string) (target *jsonschema.Schema, fragment string, err error) {
	u, err := url.Parse(ref)
	if err != nil {
		return nil, "", err
	}
	u = l.bases[s].ResolveReference(u)
	target = l.targets[key(u, unescape(u.Fragment))]
	if target == nil {
		return nil, "", fmt.Errorf("the reference %q leads nowhere", ref)
	}
	return target, u.Fragment, nil
}

func key(u *url.URL, fragment string) string {
	bare := *u
	bare.Fragment, bare.RawFragment = "", ""
	return bare.String() + "#" + fragment
}

var (
	escaper   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaper = strings.NewReplacer("~1", "\x00", "~0", "~")
)

func escape(name string) string { return escaper.Replace(name) }

// unescape makes two spellings of one pointer alike; the slash of a name stays apart from
// the one between names.
func unescape(pointer string) string { return unescaper.Replace(pointer) }
