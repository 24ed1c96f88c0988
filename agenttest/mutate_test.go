package agenttest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

// mutation is a valid log with one thing wrong. Its path says what: "tool_exec_end.Result.Cause".
type mutation struct {
	path   string
	how    string
	at     int // the event
	events []event
}

// structural returns the log with each event removed, doubled, swapped with the next, and
// cut off before it. Seq and Time stay those of a full stream.
func structural(events []event) []mutation {
	var out []mutation
	add := func(how string, at int, changed []event) {
		out = append(out, mutation{path: string(events[at].Type), how: how, at: at, events: renumbered(changed)})
	}
	for i := range events {
		add("removed", i, slices.Delete(slices.Clone(events), i, i+1))
		add("doubled", i, slices.Insert(slices.Clone(events), i, events[i]))
		if i > 0 {
			add("cut off before", i, slices.Clone(events[:i]))
		}
		if i+1 < len(events) {
			swapped := slices.Clone(events)
			swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
			add("swapped with the next", i, swapped)
		}
	}
	return out
}

func renumbered(events []event) []event {
	seq := make(map[string]uint64)
	at := events[0].Time
	for i := range events {
		seq[events[i].RunID]++
		events[i].Seq = seq[events[i].RunID]
		if events[i].Time.Before(at) {
			events[i].Time = at
		}
		at = events[i].Time
	}
	return events
}

// altered returns the log with each field of each event, down to the last leaf, changed to
// its zero value, to another value and, where it is a number, below zero.
func altered(events []event) []mutation {
	var out []mutation
	for i := range events {
		for _, how := range []string{"zeroed", "changed", "negative"} {
			for n := 0; ; n++ {
				changed := slices.Clone(events)
				changed[i] = deepEvent(events[i])
				m := mutator{how: how, skip: n}
				m.walk(reflect.ValueOf(&changed[i]).Elem(), string(events[i].Type))
				if m.path == "" {
					break
				}
				if !reflect.DeepEqual(changed[i], events[i]) {
					out = append(out, mutation{path: m.path, how: how, at: i, events: changed})
				}
			}
		}
	}
	return out
}

// mutator changes the skip-th leaf that it meets.
type mutator struct {
	how  string
	skip int
	path string // of the leaf that was changed
}

func (m *mutator) leaf(v reflect.Value, path string, other func()) {
	if m.path != "" {
		return
	}
	if m.skip > 0 {
		m.skip--
		return
	}
	m.path = path
	switch {
	case m.how == "zeroed":
		v.SetZero()
	case m.how == "changed" || v.CanInt() || v.CanUint():
		other()
	}
}

var (
	typeTime  = reflect.TypeFor[time.Time]()
	typeRaw   = reflect.TypeFor[json.RawMessage]()
	typeError = reflect.TypeFor[error]()
	typeAny   = reflect.TypeFor[any]()
	typeAgent = reflect.TypeFor[agentkernel.AgentMessage]()
)

func (m *mutator) walk(v reflect.Value, path string) {
	switch {
	case m.path != "":
	case v.Type() == typeTime:
		m.leaf(v, path, func() { v.Set(reflect.ValueOf(v.Interface().(time.Time).Add(-90 * time.Minute))) })
	case v.Type() == typeRaw:
		m.leaf(v, path, func() { v.SetBytes([]byte(`{"other":1}`)) })
	case v.Type() == typeError:
		m.leaf(v, path, func() { v.Set(reflect.ValueOf(failure(agentkernel.KindHook))) })
	case v.Type() == typeAny:
		m.leaf(v, path, func() { v.Set(reflect.ValueOf("other")) })
	case v.Type() == typeAgent:
		m.interfaceValue(v, path)
	case v.Kind() == reflect.Pointer:
		m.pointer(v, path)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			m.walk(v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	case v.Kind() == reflect.Slice:
		m.slice(v, path)
	default:
		m.basic(v, path)
	}
}

func (m *mutator) interfaceValue(v reflect.Value, path string) {
	m.leaf(v, path, func() { v.Set(reflect.ValueOf(userSays("other"))) })
	if m.path == "" && !v.IsNil() {
		inner := reflect.New(v.Elem().Type()).Elem()
		inner.Set(v.Elem())
		m.walk(inner, path)
		v.Set(inner)
	}
}

func (m *mutator) pointer(v reflect.Value, path string) {
	if v.IsNil() {
		m.leaf(v, path, func() { v.Set(reflect.New(v.Type().Elem())) })
		return
	}
	m.leaf(v, path+"(pointer)", func() {})
	m.walk(v.Elem(), path)
}

func (m *mutator) slice(v reflect.Value, path string) {
	m.leaf(v, path+"(slice)", func() {
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			return
		}
		v.Set(v.Slice(0, v.Len()-1))
	})
	for i := range v.Len() {
		m.walk(v.Index(i), path+"[]")
	}
}

func (m *mutator) basic(v reflect.Value, path string) {
	other := func(n int64) int64 { return n + 1 }
	if m.how == "negative" {
		other = func(int64) int64 { return -1 }
	}
	m.leaf(v, path, func() {
		switch v.Kind() {
		case reflect.String:
			v.SetString(v.String() + "x")
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.Int, reflect.Int64:
			v.SetInt(other(v.Int()))
		case reflect.Uint64:
			v.SetUint(uint64(other(int64(v.Uint()))))
		case reflect.Float64:
			v.SetFloat(v.Float() + 1)
		case reflect.Map:
			v.Set(reflect.ValueOf(map[string]any{"other": 1.0}))
		default:
			panic(fmt.Sprintf("cannot mutate %s of kind %s", path, v.Kind()))
		}
	})
}

func deepEvent(ev event) event { return deepCopy(reflect.ValueOf(ev)).Interface().(event) }

// deepCopy copies a value with everything that it refers to, except errors.
func deepCopy(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch {
	case v.Type() == typeTime || v.Type() == typeError:
	case v.Kind() == reflect.Interface && !v.IsNil():
		out.Set(deepCopy(v.Elem()))
	case v.Kind() == reflect.Pointer && !v.IsNil():
		out.Set(reflect.New(v.Type().Elem()))
		out.Elem().Set(deepCopy(v.Elem()))
	case v.Kind() == reflect.Slice && !v.IsNil():
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(deepCopy(v.Index(i)))
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			out.Field(i).Set(deepCopy(v.Field(i)))
		}
	}
	return out
}
