package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ak "github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// scenario is one run of docs/events.md.
type scenario struct {
	name    string
	replies []agenttest.Reply
	cfg     ak.Config // the script is its model
	tools   []string  // see docTool; weather where nil
	noModel bool
	history []ak.AgentMessage
	// prompts are "hi" where nil.
	prompts []ak.AgentMessage
	// abort is when the run is aborted, deadline when its context ends by itself, steer when
	// somebody says something to it.
	abort    time.Duration
	deadline time.Duration
	steer    time.Duration
	followUp bool // somebody has said what to do next
}

var (
	oneRetry = ak.RetryPolicy{MaxRetries: 1, BaseDelay: time.Second, Jitter: -1}
	noRetry  = ak.RetryPolicy{MaxRetries: -1}
	overload = &ak.Error{Kind: ak.KindOverloaded, Op: "model", Status: 503, Retryable: true}
	refused  = &ak.Error{Kind: ak.KindAuth, Op: "model", Status: 401}
	tooLong  = &ak.Error{Kind: ak.KindContextOverflow, Op: "model", Status: 400}
	someUse  = ak.Usage{Input: 20, Output: 5, Total: 25}

	asked    = ak.UserMessage("weather in Bern?")
	openCall = ak.Message{
		Role:       ak.RoleAssistant,
		StopReason: ak.StopReasonToolUse,
		Content: []ak.ContentBlock{{
			Type:     ak.ContentToolCall,
			ToolCall: &ak.ToolCall{ID: "call_1", Name: "weather", Args: json.RawMessage(`{"city":"Bern"}`)},
		}},
	}
	abortedAnswer = ak.Message{
		Role:       ak.RoleAssistant,
		StopReason: ak.StopReasonAborted,
		Content:    []ak.ContentBlock{ak.TextBlock("It is")},
	}
)

// lastOnly is a ContextManager that keeps the last message.
type lastOnly struct{}

func (lastOnly) Project(context.Context, ak.ContextRequest) (ak.ContextResult, error) {
	return ak.ContextResult{}, nil
}

func (lastOnly) Recover(_ context.Context, req ak.ContextRequest) (ak.ContextResult, error) {
	return ak.ContextResult{Messages: req.History[len(req.History)-1:]}, nil
}

// onceMore is a stop guard that lets the run end the second time.
func onceMore() func(context.Context, ak.StopRequest) (ak.StopDecision, error) {
	asked := false
	return func(context.Context, ak.StopRequest) (ak.StopDecision, error) {
		if asked {
			return ak.StopDecision{}, nil
		}
		asked = true
		return ak.StopDecision{Action: ak.StopGoOn, Message: ak.UserMessage("Are you sure?")}, nil
	}
}

func refuseTools(_ context.Context, m ak.AgentMessage) error {
	if m.GetRole() == ak.RoleTool {
		return errors.New("the disk is full")
	}
	return nil
}

var scenarios = []scenario{
	{name: "text_answer", replies: []agenttest.Reply{
		agenttest.Text("Hello there").Chunks(6).Usage(someUse),
	}},
	{name: "thinking_tool_answer", replies: []agenttest.Reply{
		agenttest.Thinking("Ask the tool.").Call("call_1", "weather", `{"city":"Bern"}`).Chunks(8),
		agenttest.Text("Sunny in Bern."),
	}},
	{name: "several_calls", replies: []agenttest.Reply{
		agenttest.Text("Two at once.").Call("call_1", "weather", `{"city":"Bern"}`).Call("call_2", "weather", `{"city":"Basel"}`),
		agenttest.Text("Sunny in both."),
	}},
	{name: "tool_failed", tools: []string{"broken"}, replies: []agenttest.Reply{
		agenttest.Calls("broken"), agenttest.Text("It is broken."),
	}},
	{name: "tool_panic", tools: []string{"bomb", "weather"}, replies: []agenttest.Reply{
		agenttest.Calls("bomb", "weather"), agenttest.Text("One went wrong."),
	}},
	{name: "tool_terminates", tools: []string{"finish"}, replies: []agenttest.Reply{agenttest.Calls("finish")}},
	{name: "unknown_tool", replies: []agenttest.Reply{
		agenttest.Calls("wether"), agenttest.Text("My mistake."),
	}},
	{name: "invalid_arguments", replies: []agenttest.Reply{
		agenttest.Call("call_1", "weather", `{"city": Bern}`), agenttest.Text("My mistake."),
	}},
	{name: "broken_schema", tools: []string{"lookup"}, replies: []agenttest.Reply{
		agenttest.Call("call_1", "lookup", `{"ms":"soon"}`), agenttest.Text("My mistake."),
	}},
	{name: "parallel_calls", tools: []string{"lookup"}, replies: []agenttest.Reply{
		agenttest.Call("call_1", "lookup", `{"ms":20}`).Call("call_2", "lookup", `{"ms":10}`), agenttest.Text("Found."),
	}},
	{name: "progress", tools: []string{"build"}, replies: []agenttest.Reply{agenttest.Calls("build"), agenttest.Text("Built.")}},
	{name: "gate_allows", tools: []string{"write"}, cfg: ak.Config{Gate: gate(ak.GateDecision{Allow: true, Args: json.RawMessage(`{"to":"/b"}`)})},
		replies: []agenttest.Reply{agenttest.Call("call_1", "write", `{"to":"/a"}`), agenttest.Text("Written.")}},
	{name: "gate_denies", tools: []string{"write"}, cfg: ak.Config{Gate: gate(ak.GateDecision{Reason: "not there"})},
		replies: []agenttest.Reply{agenttest.Call("call_1", "write", `{"to":"/a"}`), agenttest.Text("I may not.")}},
	{name: "gate_suspends", tools: []string{"lookup", "write", "weather"}, cfg: ak.Config{Gate: laterOf("write")}, replies: []agenttest.Reply{
		agenttest.Call("call_1", "lookup", `{"ms":20}`).Call("call_2", "write", `{"to":"/a"}`).Call("call_3", "weather", `{}`)}},
	{name: "tool_timeout", tools: []string{"slow"}, cfg: ak.Config{ToolTimeout: time.Second}, replies: []agenttest.Reply{
		agenttest.Calls("slow"), agenttest.Text("It takes too long."),
	}},
	{name: "steering", steer: time.Second, tools: []string{"build", "weather"}, replies: []agenttest.Reply{
		agenttest.Calls("build", "weather"), agenttest.Text("As you like."),
	}},
	{name: "follow_up", followUp: true, replies: []agenttest.Reply{agenttest.Text("Hello."), agenttest.Text("Done.")}},
	{name: "cut_off_call", replies: []agenttest.Reply{
		agenttest.Call("call_1", "weather", `{"city": "Be`).Stop(ak.StopReasonLength), agenttest.Text("Too long."),
	}},
	{name: "open_calls", history: []ak.AgentMessage{asked, openCall}, prompts: []ak.AgentMessage{},
		replies: []agenttest.Reply{agenttest.Text("I do not know whether that worked.")}},
	{name: "resumed", history: []ak.AgentMessage{asked, openCall}, prompts: []ak.AgentMessage{},
		cfg: ak.Config{Resume: &ak.Resumption{Suspended: leftByGate, Answers: map[string]ak.GateDecision{"call_1": {Allow: true}}},
			Gate: laterOf("weather")}, replies: []agenttest.Reply{agenttest.Text("Sunny in Bern.")}},
	{name: "prompt_instead", history: []ak.AgentMessage{asked, openCall}, cfg: ak.Config{Resume: &ak.Resumption{Suspended: leftByGate}},
		replies: []agenttest.Reply{agenttest.Text("Hello.")}},
	{name: "continue_aborted", history: []ak.AgentMessage{asked, abortedAnswer}, prompts: []ak.AgentMessage{},
		replies: []agenttest.Reply{agenttest.Text(" sunny.")}},
	{name: "length", replies: []agenttest.Reply{
		agenttest.Text("Once upon").Stop(ak.StopReasonLength), agenttest.Text(" a time."),
	}},
	{name: "length_without_recovery", cfg: ak.Config{MaxLengthRecoveries: -1}, replies: []agenttest.Reply{
		agenttest.Text("Once upon").Stop(ak.StopReasonLength),
	}},
	{name: "refusal", replies: []agenttest.Reply{agenttest.Text("I will not.").Stop(ak.StopReasonRefusal)}},
	{name: "empty", replies: []agenttest.Reply{{}, {}}},
	{name: "retry", cfg: ak.Config{Retry: oneRetry}, replies: []agenttest.Reply{
		agenttest.Text("Hel").Fail(overload), agenttest.Text("Hello"),
	}},
	{name: "retries_used_up", cfg: ak.Config{Retry: oneRetry}, replies: []agenttest.Reply{
		agenttest.Fail(overload), agenttest.Fail(overload),
	}},
	{name: "fallback", cfg: ak.Config{Fallbacks: []ak.ChatModel{agenttest.Script(agenttest.Text("Hello"))}},
		replies: []agenttest.Reply{agenttest.Text("Hel").Fail(refused)}},
	{name: "context_recovered", cfg: ak.Config{ContextManager: lastOnly{}}, history: []ak.AgentMessage{asked, ak.Message{
		Role: ak.RoleAssistant, StopReason: ak.StopReasonStop, Content: []ak.ContentBlock{ak.TextBlock("Sunny.")},
	}}, replies: []agenttest.Reply{agenttest.Fail(tooLong), agenttest.Text("Hello")}},
	{name: "stop_guard", cfg: ak.Config{StopGuard: onceMore()}, replies: []agenttest.Reply{
		agenttest.Text("It is sunny."), agenttest.Text("Quite."),
	}},
	{name: "commit_refused", cfg: ak.Config{Commit: refuseTools}, replies: []agenttest.Reply{agenttest.Calls("weather")}},
	{name: "abort_marker", cfg: ak.Config{AbortMarker: "[stopped by the user]"}, abort: 1500 * time.Millisecond,
		replies: []agenttest.Reply{agenttest.Text("It is sunny.").Chunks(6).Delay(time.Second)}},
	{name: "not_retryable", cfg: ak.Config{Retry: oneRetry}, replies: []agenttest.Reply{agenttest.Fail(refused)}},
	{name: "truncated_stream", cfg: ak.Config{Retry: noRetry}, replies: []agenttest.Reply{
		agenttest.Text("Hel").EndsWithoutDone(),
	}},
	{name: "nil_stream", replies: []agenttest.Reply{agenttest.NilStream()}},
	{name: "model_panic", replies: []agenttest.Reply{agenttest.Text("Hel").Panic("boom")}},
	{name: "max_turns", cfg: ak.Config{MaxTurns: 1}, replies: []agenttest.Reply{agenttest.Calls("weather")}},
	{name: "no_model", noModel: true},
	{name: "abort_before_output", abort: time.Second, replies: []agenttest.Reply{agenttest.Stall()}},
	{name: "abort_in_text", abort: time.Second, replies: []agenttest.Reply{
		agenttest.Thinking("Hm.").Text("Hel").Stall(),
	}},
	{name: "abort_in_call", abort: time.Second, replies: []agenttest.Reply{
		agenttest.Text("Let me see.").Call("call_1", "weather", `{"ci`).Stall(),
	}},
	{name: "abort_in_tool", abort: time.Second, tools: []string{"slow", "weather"},
		replies: []agenttest.Reply{agenttest.Calls("slow", "weather")}},
	{name: "abort_deaf_tool", abort: time.Second, tools: []string{"deaf"}, replies: []agenttest.Reply{agenttest.Calls("deaf")}},
	{name: "abort_between_attempts", abort: time.Second, cfg: ak.Config{Retry: ak.RetryPolicy{BaseDelay: time.Hour, MaxDelay: -1, Jitter: -1}},
		replies: []agenttest.Reply{agenttest.Text("Hel").Fail(overload)}},
	{name: "deadline", deadline: time.Second, replies: []agenttest.Reply{agenttest.Text("Hel").Stall()}},
}

// gate is a gate that takes a second to decide.
func gate(decision ak.GateDecision) func(context.Context, ak.GateRequest) (ak.GateDecision, error) {
	return func(context.Context, ak.GateRequest) (ak.GateDecision, error) {
		time.Sleep(time.Second)
		return decision, nil
	}
}

// laterOf is a gate that has no answer for one tool, and allows the others.
func laterOf(tool string) func(context.Context, ak.GateRequest) (ak.GateDecision, error) {
	return func(_ context.Context, req ak.GateRequest) (ak.GateDecision, error) {
		if req.Call.Name == tool {
			return ak.GateDecision{}, ak.Suspend(ak.ProgressPayload{Text: "May I?", Data: req.Call.Args})
		}
		return ak.GateDecision{Allow: true}, nil
	}
}

// leftByGate is openCall as a run leaves it that its gate suspended.
var leftByGate = []ak.Suspension{{Call: openCall.ToolCalls()[0], Turn: 1}}

// docTool is a tool of the scenarios, by its name. Deaf comes back when released is closed.
func docTool(name string, released <-chan struct{}) ak.Tool {
	tool := ak.Tool{Name: name, Execute: func(context.Context, json.RawMessage) (ak.ToolResult, error) {
		return ak.TextResult("sunny"), nil
	}}
	switch name {
	case "broken":
		tool.Execute = func(context.Context, json.RawMessage) (ak.ToolResult, error) {
			return ak.ToolResult{}, errors.New("no signal")
		}
	case "bomb":
		tool.Execute = func(context.Context, json.RawMessage) (ak.ToolResult, error) { panic("boom") }
	case "finish":
		tool.Execute = func(context.Context, json.RawMessage) (ak.ToolResult, error) {
			return ak.ToolResult{Content: []ak.ContentBlock{ak.TextBlock("done")}, Terminate: true}, nil
		}
	case "slow":
		tool.Execute = func(ctx context.Context, _ json.RawMessage) (ak.ToolResult, error) {
			<-ctx.Done()
			return ak.ToolResult{}, ctx.Err()
		}
	case "deaf":
		tool.Execute = func(context.Context, json.RawMessage) (ak.ToolResult, error) {
			<-released
			return ak.TextResult("too late"), nil
		}
	case "build":
		tool.Execute = func(ctx context.Context, _ json.RawMessage) (ak.ToolResult, error) {
			ak.ReportProgress(ctx, ak.ProgressPayload{Kind: ak.ProgressSummary, Text: "half of it"})
			time.Sleep(2 * time.Second)
			return ak.TextResult("built"), nil
		}
	case "write":
		tool.Preview = func(_ context.Context, args json.RawMessage) (ak.ProgressPayload, error) {
			return ak.ProgressPayload{Text: "would write " + string(args)}, nil
		}
		tool.Execute = func(context.Context, json.RawMessage) (ak.ToolResult, error) { return ak.TextResult("written"), nil }
	case "lookup":
		tool.Schema = json.RawMessage(`{"type":"object","properties":{"ms":{"type":"integer"}}}`)
		tool.ReadOnly = func(json.RawMessage) bool { return true }
		tool.Execute = func(_ context.Context, args json.RawMessage) (ak.ToolResult, error) {
			var in struct{ Ms int }
			err := json.Unmarshal(args, &in)
			time.Sleep(time.Duration(in.Ms) * time.Millisecond)
			return ak.TextResult("found"), err
		}
	}
	return tool
}

// run plays the scenario in a bubble and returns its events.
func (s scenario) run(t *testing.T) []ak.Event {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	if s.abort > 0 {
		time.AfterFunc(s.abort, func() { cancel(errors.New("the user left")) })
	}
	if s.deadline > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, s.deadline)
		defer stop()
	}
	cfg := s.cfg
	if !s.noModel {
		cfg.Model = agenttest.Script(s.replies...)
	}
	if s.steer > 0 {
		cfg.Steering = new(ak.Queue)
		time.AfterFunc(s.steer, func() { _ = cfg.Steering.Push(ak.UserMessage("never mind the weather")) })
	}
	if s.followUp {
		cfg.FollowUps = new(ak.Queue)
		if err := cfg.FollowUps.Push(ak.UserMessage("and then?")); err != nil {
			t.Fatal(err)
		}
	}
	released := make(chan struct{})
	defer close(released)
	tools := s.tools
	if tools == nil {
		tools = []string{"weather"}
	}
	for _, name := range tools {
		cfg.Tools = append(cfg.Tools, docTool(name, released))
	}
	prompts := s.prompts
	if prompts == nil {
		prompts = []ak.AgentMessage{ak.UserMessage("hi")}
	}
	var events []ak.Event
	for ev := range ak.AgentLoop(ctx, cfg, s.history, prompts...) {
		events = append(events, ev)
	}
	if err := agenttest.CheckRun(s.history, events); err != nil {
		t.Error(err)
	}
	return events
}

// Every scenario is played as docs/events.md shows it. AGENTTEST_UPDATE=1 rewrites both the
// traces and the page's blocks.
func TestEventsDoc(t *testing.T) {
	traces := make(map[string]string)
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				traces[s.name] = tree(agenttest.Format(s.run(t)))
				agenttest.Golden(t, filepath.Join("testdata", "traces", s.name+".txt"), traces[s.name])
			})
		})
	}
	t.Run("set_messages", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			traces["set_messages"] = tree(agenttest.Format(runAfterSetMessages(t)))
			agenttest.Golden(t, filepath.Join("testdata", "traces", "set_messages.txt"), traces["set_messages"])
		})
	})
	checkDoc(t, filepath.Join("docs", "events.md"), traces)
	checkDoc(t, "README.md", map[string]string{"thinking_tool_answer": traces["thinking_tool_answer"]})
}

func runAfterSetMessages(t *testing.T) []ak.Event {
	agent, err := ak.NewAgent(ak.Config{Model: agenttest.Script(agenttest.Text("Hello"))})
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.SetMessages(asked, abortedAnswer); err != nil {
		t.Fatal(err)
	}
	var events []ak.Event
	agent.Subscribe(func(ev ak.Event) { events = append(events, ev) })
	if _, err := agent.Run(t.Context(), "hi"); err != nil {
		t.Fatal(err)
	}
	if err := agenttest.CheckEvents(events); err != nil {
		t.Error(err)
	}
	return events
}

// depths is how far a line of a tree is indented.
var depths = map[ak.EventType]int{
	ak.EventAgentStart:     0,
	ak.EventAgentEnd:       0,
	ak.EventContext:        1,
	ak.EventTurnStart:      1,
	ak.EventError:          1,
	ak.EventMessageUpdate:  3,
	ak.EventToolExecUpdate: 3,
}

// tree indents a trace by what contains what.
func tree(trace string) string {
	var out strings.Builder
	for line := range strings.Lines(trace) {
		kind, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		depth, ok := depths[ak.EventType(kind)]
		if !ok {
			depth = 2
		}
		out.WriteString(strings.Repeat("  ", depth) + line)
	}
	return out.String()
}

var traceBlock = regexp.MustCompile("(?m)(^<!-- trace: (\\w+) -->\n```text\n)((?s:.*?))(^```$)")

// checkDoc compares the marked blocks of a page with the traces: each is there, once.
func checkDoc(t *testing.T, path string, traces map[string]string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	page := traceBlock.ReplaceAllStringFunc(string(raw), func(block string) string {
		m := traceBlock.FindStringSubmatch(block)
		shown = append(shown, m[2])
		return m[1] + traces[m[2]] + m[4]
	})
	var all []string
	for name := range traces {
		all = append(all, name)
	}
	slices.Sort(all)
	if slices.Sort(shown); !slices.Equal(shown, all) {
		t.Errorf("%s shows the traces\n%q\nwant\n%q", path, shown, all)
	}
	if page == string(raw) {
		return
	}
	if os.Getenv("AGENTTEST_UPDATE") != "1" {
		t.Errorf("%s does not show the traces as they are (AGENTTEST_UPDATE=1 rewrites it)", path)
		return
	}
	if err := os.WriteFile(path, []byte(page), 0o666); err != nil {
		t.Fatal(err)
	}
}
