package agentkernel_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// payloads are all event types with their wire names and payloads. On subscribes to the
// payload, giving it as the interface.
var payloads = []struct {
	name string // of the constant, without "Event"
	wire agentkernel.EventType
	zero agentkernel.Payload
	on   func(*agentkernel.Agent, func(agentkernel.Payload)) func()
}{
	{"AgentStart", "agent_start", agentkernel.RunStarted{}, on[agentkernel.RunStarted]},
	{"AgentEnd", "agent_end", agentkernel.RunEnded{}, on[agentkernel.RunEnded]},
	{"TurnStart", "turn_start", agentkernel.TurnStarted{}, on[agentkernel.TurnStarted]},
	{"ModelRequest", "model_request", agentkernel.ModelRequested{}, on[agentkernel.ModelRequested]},
	{"MessageStart", "message_start", agentkernel.MessageStarted{}, on[agentkernel.MessageStarted]},
	{"MessageUpdate", "message_update", agentkernel.MessageUpdated{}, on[agentkernel.MessageUpdated]},
	{"MessageEnd", "message_end", agentkernel.MessageEnded{}, on[agentkernel.MessageEnded]},
	{"MessageDiscard", "message_discard", agentkernel.MessageDiscarded{}, on[agentkernel.MessageDiscarded]},
	{"ToolExecStart", "tool_exec_start", agentkernel.ToolStarted{}, on[agentkernel.ToolStarted]},
	{"ToolExecUpdate", "tool_exec_update", agentkernel.ToolProgressed{}, on[agentkernel.ToolProgressed]},
	{"ToolExecEnd", "tool_exec_end", agentkernel.ToolEnded{}, on[agentkernel.ToolEnded]},
	{"ModelResponse", "model_response", agentkernel.ModelResponded{}, on[agentkernel.ModelResponded]},
	{"Retry", "retry", agentkernel.Retrying{}, on[agentkernel.Retrying]},
	{"Context", "context", agentkernel.ContextReplaced{}, on[agentkernel.ContextReplaced]},
	{"Error", "error", agentkernel.RunFailed{}, on[agentkernel.RunFailed]},
}

func on[T agentkernel.PayloadType](agent *agentkernel.Agent, fn func(agentkernel.Payload)) func() {
	return agentkernel.On(agent, func(p T) { fn(p) })
}

// TestEveryEventTypeHasAPayload, as event.go declares them, and a wire name that does not change.
func TestEveryEventTypeHasAPayload(t *testing.T) {
	listed := make(map[string]string)
	for _, p := range payloads {
		listed["Event"+p.name] = string(p.wire)
		require.IsType(t, p.zero, agentkernel.Event{Type: p.wire}.Payload(), p.name)
	}
	require.Equal(t, declaredTypes(t), listed)
	require.Nil(t, agentkernel.Event{Type: "of a newer version"}.Payload())
}

// declaredTypes reads the constants of type EventType from event.go.
func declaredTypes(t *testing.T) map[string]string {
	declared := make(map[string]string)
	ast.Inspect(parseFile(t, "event.go"), func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "EventType" {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			declared[spec.Names[0].Name] = value
		}
		return false
	})
	return declared
}

func parseFile(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	require.NoError(t, err)
	return file
}

// TestPayloadsHaveTheFieldsOfTheirType: those that the doc comments of Event name, and those
// of every event in Meta.
func TestPayloadsHaveTheFieldsOfTheirType(t *testing.T) {
	use := documentedUse(t)
	event := reflect.TypeFor[agentkernel.Event]()
	for _, p := range payloads {
		var got []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(p.zero)) {
			if f.Anonymous {
				continue
			}
			of, ok := event.FieldByName(f.Name)
			require.True(t, ok, "%T has a field %s that Event has not", p.zero, f.Name)
			require.Equal(t, of.Type, f.Type, "%T.%s", p.zero, f.Name)
			got = append(got, f.Name)
		}
		require.ElementsMatch(t, slices.Concat(use["every event"], use[p.name]), got, "%T", p.zero)
	}
}

var eventNames = regexp.MustCompile(`\b(AgentStart|AgentEnd|TurnStart|ModelRequest|MessageStart|MessageUpdate|MessageEnd|MessageDiscard|ToolExecStart|ToolExecUpdate|ToolExecEnd|ModelResponse|Retry|Context|Error|every event)\b`)

// documentedUse is the fields of each event type, by the doc comments of Event.
func documentedUse(t *testing.T) map[string][]string {
	use := make(map[string][]string)
	ast.Inspect(parseFile(t, "event.go"), func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "Event" {
			return true
		}
		doc := ""
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			if f.Doc != nil { // otherwise that of the field before holds
				doc = f.Doc.Text()
			}
			name := f.Names[0].Name
			_, doc, _ := strings.Cut(strings.TrimSpace(doc), " ") // its first word is the field
			types := eventNames.FindAllString(doc, -1)
			slices.Sort(types)
			for _, typ := range slices.Compact(types) {
				use[typ] = append(use[typ], name)
			}
		}
		return false
	})
	return use
}

// everything is a run in which every type of event occurs, and then some.
func everything(t testing.TB) *watched {
	t.Helper()
	reply := agenttest.Thinking("hm").Text("look").Call("1", "talk", `{"a":1}`).Calls("nobody").Usage(agentkernel.Usage{Input: 1, Total: 1}).Model("m")
	agent := watch(t, agentkernel.Config{
		Model: agenttest.Script(
			agenttest.Text("half").Fail(failure(agentkernel.KindServer, true)), reply,
			agenttest.Text("more").Fail(failure(agentkernel.KindAuth, false))),
		Retry: agentkernel.RetryPolicy{BaseDelay: -1},
		Tools: []agentkernel.Tool{talker("talk", agentkernel.ProgressToolDelta, "so ", "far")},
	})
	require.NoError(t, agent.SetMessages(agentkernel.UserMessage("before")))
	_, err := agent.Run(t.Context(), "hi")
	require.ErrorIs(t, err, agentkernel.KindAuth)
	return agent
}

// TestPayloadHoldsAllThatTheEventFills.
func TestPayloadHoldsAllThatTheEventFills(t *testing.T) {
	seen := make(map[agentkernel.EventType]bool)
	for _, ev := range everything(t).events() {
		seen[ev.Type] = true
		p := reflect.ValueOf(ev.Payload())
		v := reflect.ValueOf(ev)
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			field := p.FieldByName(name)
			switch {
			case name == "Type":
			case field.IsValid():
				require.Equal(t, v.Field(i).Interface(), field.Interface(), "%T.%s", ev.Payload(), name)
			default:
				require.Zero(t, v.Field(i).Interface(), "%T has no %s", ev.Payload(), name)
			}
		}
		require.Equal(t, agentkernel.EventMeta{RunID: ev.RunID, Seq: ev.Seq, Time: ev.Time, Turn: ev.Turn}, ev.Payload().Meta())
	}
	require.Len(t, seen, len(payloads))
}

// TestOn gives each listener the events of its type, in their order, until it is removed.
func TestOn(t *testing.T) {
	agent := chatty(t, 2)
	got := make(map[reflect.Type][]agentkernel.Payload)
	var removals []func()
	for _, p := range payloads {
		removals = append(removals, p.on(agent.Agent, func(is agentkernel.Payload) {
			got[reflect.TypeOf(p.zero)] = append(got[reflect.TypeOf(p.zero)], is)
		}))
	}
	_, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	want := make(map[reflect.Type][]agentkernel.Payload)
	for _, ev := range agent.events() {
		p := ev.Payload()
		want[reflect.TypeOf(p)] = append(want[reflect.TypeOf(p)], p)
	}
	require.Equal(t, want, got)
	for _, remove := range removals {
		remove()
	}
	clear(got)
	_, err = agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestOnNilPanics(t *testing.T) {
	agent := chatty(t, 1)
	require.Panics(t, func() { agentkernel.On[agentkernel.ToolEnded](agent.Agent, nil) })
}

// TestOnOtherTypesDoesNotCompile: T is a payload and nothing else.
func TestOnOtherTypesDoesNotCompile(t *testing.T) {
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", compiled(t))
	check := func(of string) error {
		src := `package p
import . "github.com/agentkernel-go/agentkernel"
func _(agent *Agent) { On(agent, func(e ` + of + `) {}) }`
		file, err := parser.ParseFile(fset, "p.go", src, 0)
		require.NoError(t, err)
		_, err = (&types.Config{Importer: imports}).Check("p", fset, []*ast.File{file}, nil)
		return err
	}
	for _, p := range payloads {
		require.NoError(t, check(reflect.TypeOf(p.zero).Name()))
	}
	for _, wrong := range []string{"Event", "Payload", "EventMeta", "Message", "any", "*ToolEnded", "struct{ EventMeta }", "int"} {
		require.ErrorContains(t, check(wrong), "does not satisfy", wrong)
	}
}

// compiled finds what the packages export, the kernel's and those that it needs.
func compiled(t *testing.T) importer.Lookup {
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", ".")
	out, err := list.Output()
	require.NoError(t, err)
	files := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
}

// TestOnCostsNothingForOtherTypes: what a narrowed listener does not want costs no allocation,
// and neither does what it wants.
func TestOnCostsNothingForOtherTypes(t *testing.T) {
	const n = 20_000
	perDelta := func(subscribe func(*agentkernel.Agent)) float64 {
		agent, err := agentkernel.NewAgent(agentkernel.Config{Model: deltas(n, agentkernel.StreamEventTextDelta)})
		require.NoError(t, err)
		subscribe(agent)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = agent.Run(t.Context(), "hi")
		require.NoError(t, err)
		runtime.ReadMemStats(&after)
		return float64(after.Mallocs-before.Mallocs) / n
	}
	without := perDelta(func(*agentkernel.Agent) {})
	with := perDelta(func(agent *agentkernel.Agent) {
		for range 10 {
			agentkernel.On(agent, func(agentkernel.ToolEnded) {})
			agentkernel.On(agent, func(agentkernel.MessageUpdated) {})
		}
	})
	require.InDelta(t, without, with, 0.05, "allocations per delta")
}

// TestPayloadNamesAreThoseOfTheList guards the names that consumers write.
func TestPayloadNamesAreThoseOfTheList(t *testing.T) {
	got := make(map[string]bool)
	for _, p := range payloads {
		got[reflect.TypeOf(p.zero).Name()] = true
	}
	require.Equal(t, []string{
		"ContextReplaced", "MessageDiscarded", "MessageEnded", "MessageStarted", "MessageUpdated",
		"ModelRequested", "ModelResponded", "Retrying", "RunEnded", "RunFailed", "RunStarted",
		"ToolEnded", "ToolProgressed", "ToolStarted", "TurnStarted",
	}, slices.Sorted(maps.Keys(got)))
}
