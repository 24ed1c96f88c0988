package agenttest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

func TestCheckEventsOfNothing(t *testing.T) {
	if CheckEvents(nil) == nil || CheckRun(nil, []event{}) == nil {
		t.Error("a log without events passes")
	}
}

func TestCheckSurvivesAnything(t *testing.T) {
	for _, et := range append(eventTypes(), "", "other") {
		for name, l := range validLogs() {
			for i := range l.events {
				events := slices.Clone(l.events[:i])
				bare := event{Type: et, RunID: mainRun, Seq: uint64(i + 1), Time: time.Now().UTC().Round(0)}
				if i > 0 {
					bare.Turn = l.events[i-1].Turn
				}
				if err := l.check(append(events, bare)); err == nil {
					t.Errorf("%s: a bare %q in place %d passes", name, et, i)
				}
			}
		}
	}
}

func eventTypes() []eventType {
	var out []eventType
	for _, types := range fieldUse {
		out = append(out, types...)
	}
	out = append(out, agentkernel.EventAgentStart, agentkernel.EventTurnStart)
	slices.Sort(out)
	return slices.Compact(out)
}

// The table of fields says what the doc comments of Event say.
func TestFieldsAreThoseOfTheDocComments(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../event.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string][]eventType)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "Event" {
			return true
		}
		doc := ""
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			if f.Doc != nil {
				doc = f.Doc.Text()
			}
			for _, name := range f.Names {
				documented[name.Name] = typesIn(doc)
			}
		}
		return false
	})
	delete(documented, "Type")
	delete(documented, "Raw") // only on events of types that this version does not know
	for name, want := range documented {
		got := slices.Sorted(slices.Values(fieldUse[name]))
		if _, ok := fieldUse[name]; !ok || !slices.Equal(got, want) {
			t.Errorf("field %s: the table has %v, its comment names %v", name, got, want)
		}
	}
	if n := reflect.TypeFor[event]().NumField() - 1; len(fieldUse) != n {
		t.Errorf("the table has %d fields, Event has %d", len(fieldUse), n)
	}
}

// typesIn finds the event types that a doc comment names.
func typesIn(doc string) []eventType {
	var out []eventType
	for _, et := range eventTypes() {
		var words []string
		for word := range strings.SplitSeq(string(et), "_") {
			words = append(words, strings.ToUpper(word[:1])+word[1:])
		}
		name := strings.Join(words, "")
		pattern := `\b` + name + `\b`
		switch et {
		case agentkernel.EventRetry, agentkernel.EventContext, agentkernel.EventError: // words too
			pattern = `(, |\. |\bon |\band )` + name + `\b`
		}
		if regexp.MustCompile(pattern).MatchString(strings.ReplaceAll(doc, "\n", " ")) {
			out = append(out, et)
		}
	}
	slices.Sort(out)
	return out
}

func TestCheckerFollowsTheHistory(t *testing.T) {
	l := openCallsLog()
	c := NewChecker()
	c.StartFrom(l.history)
	for _, ev := range l.events {
		c.Listen(ev)
	}
	if err := c.Finish(); err != nil {
		t.Fatal(err)
	}
	again := newLog()
	again.runs[mainRun] = nil
	again.runs["second"] = &logRun{}
	for _, ev := range ask1().events {
		again.addTo("second", ev)
	}
	for _, ev := range again.events {
		c.Listen(ev)
	}
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	// The id o2 stands in the history of the first run.
	msg := message{Role: agentkernel.RoleAssistant, Content: asks("o2").Content}
	msg.Content[0].ToolCall = &agentkernel.ToolCall{ID: "o2", Name: "find"}
	again.addTo("second", event{Type: agentkernel.EventMessageStart, Attempt: 1, Message: msg})
	again.addTo("second", event{Type: agentkernel.EventMessageUpdate, Attempt: 1, Message: msg, DeltaKind: agentkernel.DeltaToolCall, ToolID: "o2", Tool: "find"})
	for _, ev := range again.events[len(again.events)-2:] {
		c.Listen(ev)
	}
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), `"o2" is taken`) {
		t.Errorf("got %v, want a breach: the id is taken", err)
	}
}

func TestCheckerForgetsWhatAContextReplaced(t *testing.T) {
	l := newLog(asks("a"), toolMessage(agentkernel.ToolResult{ToolCallID: "a"})).start()
	l.add(event{Type: agentkernel.EventContext, Context: &agentkernel.ContextInfo{Reason: agentkernel.ContextReset}})
	l.turn().user("hi").ask(1)
	msg := l.end(1, l.stream(1, delta{0, toolCall, `{}`, "a", "find"}), agentkernel.StopReasonToolUse, `{}`)
	l.respond(msg, l.exec(msg.ToolCalls()[0], agentkernel.ToolOK)).over(agentkernel.EndTerminated, nil)
	if err := l.check(l.events); err != nil {
		t.Error(err)
	}
}

func TestCheckerGoesOnAfterABrokenRun(t *testing.T) {
	l, msg := calls1() // its calls stay open
	l.respond(msg).over(agentkernel.EndTerminated, nil)
	c := NewChecker()
	for i, ev := range append(l.events, retryLog().events...) {
		if i >= len(l.events) {
			ev.RunID = "second"
		}
		c.Listen(ev)
	}
	err := c.Finish()
	if err == nil || strings.Count(err.Error(), "broken at") != 1 {
		t.Errorf("got %v, want one breach, of the first run", err)
	}
}

func TestFormat(t *testing.T) {
	logs := validLogs()
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(logs)) {
		fmt.Fprintf(&out, "--- %s\n%s", name, Format(logs[name].events))
	}
	for _, et := range eventTypes() {
		out.WriteString(Format([]event{{Type: et}})) // not even a bare event makes it panic
	}
	Golden(t, "testdata/format.txt", out.String())
}

func TestCheckerReportsOneBreachOfEachRun(t *testing.T) {
	c := NewChecker()
	l := newLog().turn().turn().turn()
	for _, ev := range l.events {
		c.Listen(ev)
	}
	if got := strings.Count(c.Finish().Error(), "broken at"); got != 1 {
		t.Errorf("got %d breaches of one run, want 1: %v", got, c.Finish())
	}
}

func TestCheckerFromManyGoroutines(t *testing.T) {
	c := NewChecker()
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, ev := range toolsLog().events {
			c.Listen(ev)
		}
	})
	wg.Go(func() {
		for range 100 {
			_, _ = c.Err(), c.Finish()
		}
	})
	wg.Wait()
	if err := c.Finish(); err != nil {
		t.Error(err)
	}
}

// merge merges each update into the newest waiting one of the same block or call, as if the
// consumer had slept from one edge of that block or call to the next.
func merge(events []event) []event {
	waiting := make(map[string]int)
	var out []event
	for _, ev := range events {
		switch ev.Type {
		case agentkernel.EventMessageUpdate, agentkernel.EventToolExecUpdate:
			key := fmt.Sprint(ev.Type, ev.ContentIndex)
			if ev.Type == agentkernel.EventToolExecUpdate {
				key = fmt.Sprint(ev.Type, ev.ToolID)
			}
			if i, ok := waiting[key]; ok {
				old := out[i]
				ev.Delta = old.Delta + ev.Delta
				ev.Coalesced += old.Coalesced + 1
				out = slices.Delete(out, i, i+1)
				for k, j := range waiting {
					if j > i {
						waiting[k]--
					}
				}
			}
			waiting[key] = len(out)
		default:
			clear(waiting)
		}
		out = append(out, ev)
	}
	return out
}

func TestCheckerOfMergedUpdates(t *testing.T) {
	for name, l := range validLogs() {
		merged := merge(l.events)
		c := &Checker{AllowCoalesced: true}
		if err := checkAll(c, merged); err != nil {
			t.Errorf("%s: %v\n%s", name, err, Format(merged))
		}
		for i := range merged {
			if merged[i].Coalesced == 0 {
				continue
			}
			for how, change := range map[string]func(*event){
				"count":   func(ev *event) { ev.Coalesced-- },
				"delta":   func(ev *event) { ev.Delta += "x" },
				"forgets": func(ev *event) { ev.Delta = ev.Delta[min(1, len(ev.Delta)):] },
			} {
				if merged[i].Delta == "" && how == "forgets" || merged[i].Type == agentkernel.EventToolExecUpdate && how != "count" {
					continue
				}
				wrong := slices.Clone(merged)
				change(&wrong[i])
				if checkAll(&Checker{AllowCoalesced: true}, wrong) == nil {
					t.Errorf("%s: wrong %s of event %d is not noticed", name, how, i)
				}
			}
		}
	}
}

func TestCheckerOfGaps(t *testing.T) {
	l := toolsLog()
	for i := 1; i < len(l.events)-1; i++ {
		events := slices.Delete(slices.Clone(l.events), i, i+1)
		if CheckEvents(events) == nil {
			t.Errorf("the loss of event %d is not noticed", i)
		}
		if err := checkAll(&Checker{AllowGaps: true}, events); err != nil {
			t.Errorf("the loss of event %d is not allowed: %v", i, err)
		}
	}
	lost := l.events[:len(l.events)-1]
	if checkAll(&Checker{AllowGaps: true}, lost) == nil {
		t.Error("the loss of agent_end is not noticed")
	}
	for name, events := range map[string][]event{
		"error":       {errorEvent(9, nil)},
		"after error": {errorEvent(9, canceled()), errorEvent(10, canceled())},
		"turn":        {{Type: agentkernel.EventTurnStart, RunID: mainRun, Seq: 9, Time: l.clock}},
		"seq":         {l.events[5]},
	} {
		if checkAll(&Checker{AllowGaps: true}, slices.Concat(l.events[8:9], events)) == nil {
			t.Errorf("%s: not noticed behind a gap", name)
		}
	}
	doubled := append(slices.Clone(l.events[3:]), l.events[len(l.events)-1])
	if checkAll(&Checker{AllowGaps: true}, doubled) == nil {
		t.Error("an event after agent_end is not noticed")
	}
}

func errorEvent(seq uint64, err error) event {
	return event{Type: agentkernel.EventError, RunID: mainRun, Seq: seq, Turn: 1, Time: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), Err: err}
}

// The checker's time must not grow with the square of a message that shares its text.
func TestCheckerIsLinear(t *testing.T) {
	text := strings.Repeat("abcd", 50_000)
	c := NewChecker()
	feed := func(l *log) {
		for _, ev := range l.events {
			c.Listen(ev)
		}
		l.events = l.events[:0]
	}
	l := ask1()
	began := time.Now()
	for i := 4; i <= len(text); i += 4 {
		msg := message{Role: agentkernel.RoleAssistant, Content: []agentkernel.ContentBlock{agentkernel.TextBlock(text[:i])}}
		if i == 4 {
			l.add(event{Type: agentkernel.EventMessageStart, Attempt: 1, Message: msg})
		}
		l.add(event{Type: agentkernel.EventMessageUpdate, Attempt: 1, Message: msg, Delta: "abcd"})
		feed(l)
	}
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("50,000 updates took %v", took)
	} else {
		t.Logf("50,000 updates took %v", took)
	}
}
