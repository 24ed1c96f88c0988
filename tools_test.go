package agentkernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// told is what the model was told of its calls in its n-th request, from 1: the text of the
// tool messages.
func told(model *agenttest.Model, n int) []string {
	var out []string
	for _, m := range model.Requests()[n-1].Messages {
		if m.Role == agentkernel.RoleTool {
			out = append(out, m.TextContent())
		}
	}
	return out
}

// results are those of a log, by tool.
func results(log []agentkernel.Event) map[string]agentkernel.ToolResult {
	out := make(map[string]agentkernel.ToolResult)
	for _, ev := range ofType(log, agentkernel.EventToolExecEnd) {
		out[ev.Tool] = *ev.Result
	}
	return out
}

// ended is what became of the calls, by tool, in the order of their ends.
func ended(log []agentkernel.Event) []string {
	var out []string
	for _, ev := range ofType(log, agentkernel.EventToolExecEnd) {
		out = append(out, ev.Tool+" "+string(ev.Result.Cause))
	}
	return out
}

// once is a run of one call, and what became of it.
func once(t testing.TB, cfg agentkernel.Config, name, args string) ([]agentkernel.Event, agentkernel.ToolResult) {
	t.Helper()
	cfg.Model = agenttest.Script(agenttest.Call("a", name, args), agenttest.Text("ok"))
	log := play(t, cfg)
	ends := ofType(log, agentkernel.EventToolExecEnd)
	require.Len(t, ends, 1)
	return log, *ends[0].Result
}

func TestResults(t *testing.T) {
	image := agentkernel.ContentBlock{Type: agentkernel.ContentImage, Image: &agentkernel.Image{MIMEType: "image/png", Data: []byte{1}}}
	call := agentkernel.ContentBlock{Type: agentkernel.ContentToolCall, ToolCall: &agentkernel.ToolCall{ID: "a"}}
	text := agentkernel.TextResult
	for name, tt := range map[string]struct {
		result agentkernel.ToolResult
		err    error
		want   string
		cause  agentkernel.ToolCause
	}{
		"text":                    {text("x"), nil, "x", agentkernel.ToolOK},
		"JSON":                    {agentkernel.ToolResult{JSON: json.RawMessage(`{ "a": 1 }`)}, nil, `{"a":1}`, agentkernel.ToolOK},
		"content before JSON":     {agentkernel.ToolResult{JSON: json.RawMessage(`1`), Content: text("x").Content}, nil, "x", agentkernel.ToolOK},
		"nothing":                 {agentkernel.ToolResult{}, nil, "", agentkernel.ToolOK},
		"an image":                {agentkernel.ToolResult{Content: []agentkernel.ContentBlock{image}}, nil, "", agentkernel.ToolOK},
		"an error for the model":  {agentkernel.ErrorResult("no"), nil, "no", agentkernel.ToolFailed},
		"an error":                {agentkernel.ToolResult{}, errors.New("no"), "no", agentkernel.ToolFailed},
		"text and an error":       {text("half "), errors.New("no"), "half no", agentkernel.ToolFailed},
		"JSON and an error":       {agentkernel.ToolResult{JSON: json.RawMessage(`1`)}, errors.New("no"), "1no", agentkernel.ToolFailed},
		"invalid UTF-8":           {text("a\xffb"), nil, "a\uFFFDb", agentkernel.ToolOK},
		"an error of that":        {agentkernel.ToolResult{}, errors.New("a\xffb"), "a\uFFFDb", agentkernel.ToolFailed},
		"JSON that is none":       {agentkernel.ToolResult{JSON: json.RawMessage("{\xff")}, nil, "\"{\uFFFD\"", agentkernel.ToolOK},
		"a cause of its own":      {agentkernel.ToolResult{Cause: agentkernel.ToolDenied, ToolName: "y", ToolCallID: "z"}, nil, "", agentkernel.ToolOK},
		"arguments of no use":     {agentkernel.ToolResult{Cause: agentkernel.ToolInvalid, IsError: true}, nil, "", agentkernel.ToolInvalid},
		"a call, which it is not": {agentkernel.ToolResult{Content: []agentkernel.ContentBlock{call, agentkernel.TextBlock("x")}}, nil, "x", agentkernel.ToolOK},
	} {
		t.Run(name, func(t *testing.T) {
			tt.result.Details = "for the UI"
			log, got := once(t, agentkernel.Config{Tools: []agentkernel.Tool{tool("t",
				func(context.Context) (agentkernel.ToolResult, error) { return tt.result, tt.err })}}, "t", "{}")
			require.Equal(t, tt.cause, got.Cause)
			require.Equal(t, "t", got.ToolName)
			require.Equal(t, "a", got.ToolCallID)
			require.Equal(t, "for the UI", got.Details)
			message := final(log).NewMessages[2].(agentkernel.Message)
			require.Equal(t, tt.want, message.TextContent())
			require.Equal(t, tt.cause != agentkernel.ToolOK, message.IsError)
			if name == "an image" {
				require.Equal(t, []agentkernel.ContentBlock{image}, message.Content)
			}
			raw, err := json.Marshal(message)
			require.NoError(t, err)
			require.NotContains(t, string(raw), "for the UI")
		})
	}
}

// TestToolsThatAreRefused: a tool that cannot be offered is refused where it is registered.
func TestToolsThatAreRefused(t *testing.T) {
	good := echo("good")
	with := func(change func(*agentkernel.Tool)) agentkernel.Tool {
		bad := echo("bad")
		change(&bad)
		return bad
	}
	for name, bad := range map[string]agentkernel.Tool{
		"schema is no object":     with(func(t *agentkernel.Tool) { t.Schema = []int{1} }),
		"schema is no JSON":       with(func(t *agentkernel.Tool) { t.Schema = json.RawMessage(`{"type":`) }),
		"schema of a wrong type":  with(func(t *agentkernel.Tool) { t.Schema = json.RawMessage(`{"type":"strnig"}`) }),
		"schema of another root":  with(func(t *agentkernel.Tool) { t.Schema = &jsonschema.Schema{Type: "array"} }),
		"schema that leads away":  with(func(t *agentkernel.Tool) { t.Schema = json.RawMessage(`{"$ref":"http://a.test/x"}`) }),
		"schema of its own value": with(func(t *agentkernel.Tool) { t.Schema = json.RawMessage(`{"$ref":"#"}`) }),
		"no Execute":              with(func(t *agentkernel.Tool) { t.Execute = nil }),
		"unknown Interrupt":       with(func(t *agentkernel.Tool) { t.Interrupt = "later" }),
	} {
		t.Run(name, func(t *testing.T) {
			cfg := agentkernel.Config{Model: agenttest.Script(agenttest.Text("never")), Tools: []agentkernel.Tool{good, bad}}
			_, err := agentkernel.NewAgent(cfg)
			require.ErrorIs(t, err, agentkernel.KindInvalidRequest)
			require.ErrorContains(t, err, `"bad"`)
			log := play(t, cfg)
			require.ErrorIs(t, final(log).Err, agentkernel.KindInvalidRequest)
			agent, err := agentkernel.NewAgent(agentkernel.Config{Model: cfg.Model, Tools: []agentkernel.Tool{good}})
			require.NoError(t, err)
			require.ErrorIs(t, agent.SetTools(bad), agentkernel.KindInvalidRequest)
		})
	}
}

// TestValidation: all violations at once, each with its path, what was expected, what came
// and a hint; and the tool does not run.
func TestValidation(t *testing.T) {
	ran := false
	typed := agentkernel.MustTool("typed", "", func(_ context.Context, in struct {
		Path  string `json:"path"`
		Limit int    `json:"limit,omitempty"`
		Where struct {
			Line int `json:"line"`
		} `json:"where,omitzero"`
	}) (string, error) {
		ran = true
		return "ok", nil
	})
	_, got := once(t, agentkernel.Config{Tools: []agentkernel.Tool{typed}}, "typed",
		`{"pth":"x","limit":"10","where":"{\"line\":1}"}`)
	require.False(t, ran)
	require.Equal(t, agentkernel.ToolInvalid, got.Cause)
	require.Equal(t, strings.TrimSpace(`
The call was not run: the arguments do not fit the schema:
- /path: expected a string, which is required, got nothing (add "path")
- /limit: expected an integer, got string "10" (send the number without quotes)
- /pth: expected one of the properties "limit", "path", "where", got an unknown property (did you mean "path"?)
- /where: expected an object, got string "{\"line\":1}" (it is JSON inside a string; send the object itself)`),
		got.Content[0].Text)

	_, got = once(t, agentkernel.Config{Tools: []agentkernel.Tool{typed}}, "typed", `{"path":"x","limit":1.0}`)
	require.False(t, ran)
	require.Equal(t, agentkernel.ToolInvalid, got.Cause)
	require.Contains(t, got.Content[0].Text, `"limit"`)
}

// TestHostileArgumentsOfCalls are an error result each, and no crash.
func TestHostileArgumentsOfCalls(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000)
	mega := strings.Repeat("x", 10<<20)
	strict := echo("t")
	strict.Schema = json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}}}`)
	recursive := echo("t")
	recursive.Schema = json.RawMessage(`{"properties":{"a":{"$ref":"#"}},"additionalProperties":false}`)
	for name, tt := range map[string]struct {
		tool agentkernel.Tool
		args string
		want string
	}{
		"10 MB":                       {strict, `{"a":"` + mega + `"}`, `expected an integer, got string`},
		"10 MB that are no JSON":      {strict, `{"a":` + mega, "invalid character 'x'"},
		"10,000 deep":                 {strict, deep, ""},
		"10,000 deep under recursion": {recursive, deep, ""},
		"keys twice":                  {strict, `{"a":1,"a":2}`, "the property twice"},
		"keys twice without a schema": {echo("t"), `{"a":1,"a":2}`, "the property twice"},
		"NaN":                         {strict, `{"a":NaN}`, "invalid character 'N'"},
		"Infinity":                    {strict, `{"a":-Infinity}`, "invalid character 'I'"},
		"a list":                      {strict, `[1]`, "no object"},
		"a string":                    {strict, `"{}"`, "no object"},
	} {
		t.Run(name, func(t *testing.T) {
			log, got := once(t, agentkernel.Config{Tools: []agentkernel.Tool{tt.tool}}, "t", tt.args)
			require.Equal(t, agentkernel.ToolInvalid, got.Cause, "%.300s", got.Content[0].Text)
			require.Contains(t, got.Content[0].Text, tt.want)
			require.Less(t, len(got.Content[0].Text), 4000)
			require.Equal(t, agentkernel.EndStop, endReason(log))
		})
	}
}

// TestOptionalFieldsOfATool are called as documented, with arguments of their own.
func TestOptionalFieldsOfATool(t *testing.T) {
	var order []string
	spoil := func(what string, args json.RawMessage) {
		order = append(order, what)
		require.Equal(t, `{"path":"a"}`, string(args), what)
		for i := range args {
			args[i] = ' '
		}
	}
	reader := agentkernel.Tool{
		Name: "read", Label: "Read", Description: "Reads.", Strict: true,
		Schema:   json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`),
		Activity: func(args json.RawMessage) string { spoil("activity", args); return "reads a" },
		Validate: func(_ context.Context, args json.RawMessage) error { spoil("validate", args); return nil },
		Preview: func(_ context.Context, args json.RawMessage) (agentkernel.ProgressPayload, error) {
			spoil("preview", args)
			return agentkernel.ProgressPayload{Text: "shows a", Data: json.RawMessage(`{ "n": 1 }`)}, nil
		},
		ReadOnly:        func(args json.RawMessage) bool { spoil("read-only", args); return true },
		ConcurrencySafe: func(args json.RawMessage) bool { spoil("safe", args); return true },
		Execute: func(_ context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
			spoil("execute", args)
			return agentkernel.TextResult("done"), nil
		},
	}
	var asked agentkernel.GateRequest
	cfg := agentkernel.Config{Tools: []agentkernel.Tool{reader}, Gate: func(_ context.Context, req agentkernel.GateRequest) (agentkernel.GateDecision, error) {
		spoil("gate", req.Call.Args)
		asked = req
		return agentkernel.GateDecision{Allow: true}, nil
	}}
	log, got := once(t, cfg, "read", `{"path":"a"}`)
	require.Equal(t, agentkernel.ToolOK, got.Cause)
	require.Equal(t, []string{"safe", "activity", "validate", "preview", "activity", "read-only", "gate", "execute"}, order)
	require.Equal(t, "reads a", asked.Label)
	require.True(t, asked.ReadOnly)
	require.Equal(t, 1, asked.Turn)
	require.Equal(t, log[0].RunID, asked.RunID)
	require.Equal(t, agentkernel.ProgressPayload{Kind: agentkernel.ProgressPreview, Text: "shows a", Data: json.RawMessage(`{"n":1}`)}, *asked.Preview)
	for _, ev := range ofType(log, agentkernel.EventToolExecStart, agentkernel.EventToolExecUpdate, agentkernel.EventToolExecEnd) {
		require.Equal(t, "reads a", ev.ToolLabel)
		require.Equal(t, `{"path":"a"}`, string(ev.Args))
	}
	updates := ofType(log, agentkernel.EventToolExecUpdate)
	require.Len(t, updates, 2)
	require.Equal(t, agentkernel.ToolExecUpdatePreview, updates[0].UpdateKind)
	require.Equal(t, agentkernel.ToolExecUpdateGate, updates[1].UpdateKind)
	spec := ofType(log, agentkernel.EventModelRequest)[0].Request.Tools[0]
	require.True(t, spec.Strict)
	require.Equal(t, "Reads.", spec.Description)
}

// TestValidateAndPreviewRefuse: the call is not executed, and the model is told why.
func TestValidateAndPreviewRefuse(t *testing.T) {
	bad := echo("t")
	bad.Validate = func(context.Context, json.RawMessage) error { return errors.New("no such day") }
	_, got := once(t, agentkernel.Config{Tools: []agentkernel.Tool{bad}}, "t", "{}")
	require.Equal(t, agentkernel.ToolInvalid, got.Cause)
	require.Equal(t, "The call was not run: no such day", got.Content[0].Text)

	bad = echo("t")
	gated := false
	bad.Preview = func(context.Context, json.RawMessage) (agentkernel.ProgressPayload, error) {
		return agentkernel.ProgressPayload{}, errors.New("no such file")
	}
	cfg := agentkernel.Config{Tools: []agentkernel.Tool{bad}, Gate: func(context.Context, agentkernel.GateRequest) (agentkernel.GateDecision, error) {
		gated = true
		return agentkernel.GateDecision{Allow: true}, nil
	}}
	_, got = once(t, cfg, "t", "{}")
	require.Equal(t, agentkernel.ToolDenied, got.Cause)
	require.Contains(t, got.Content[0].Text, "no such file")
	require.False(t, gated)
}

// TestLabels: without an Activity, and for calls that never begin, it is the tool's Label.
func TestLabels(t *testing.T) {
	named := waiter("named")
	named.Label = "Named"
	named.Activity = func(json.RawMessage) string { return "" }
	synctest.Test(t, func(t *testing.T) {
		agent := watch(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("named", "named", "nobody")), Tools: []agentkernel.Tool{named}})
		run, err := agent.Prompt(t.Context(), "hi")
		require.NoError(t, err)
		synctest.Wait()
		run.Abort(nil)
		_, _ = run.Wait(t.Context())
		var labels []string
		for _, ev := range ofType(agent.events(), agentkernel.EventToolExecStart) {
			labels = append(labels, ev.ToolLabel)
		}
		require.Equal(t, []string{"Named", "Named", ""}, labels)
	})
}

// TestRepair: arguments that are no JSON, or break the schema, may be mended by the harness;
// what it makes of them is validated again, and stands on the stream.
func TestRepair(t *testing.T) {
	typed := echo("t")
	typed.Schema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	for name, tt := range map[string]struct {
		args, better string
		err          error
		cause        agentkernel.ToolCause
		executed     string
	}{
		"no JSON, mended":          {`{"n":1`, `{ "n": 1 }`, nil, agentkernel.ToolOK, `{"n":1}`},
		"wrong type, mended":       {`{"n":"1"}`, `{"n":1}`, nil, agentkernel.ToolOK, `{"n":1}`},
		"no JSON, still none":      {`{"n":1`, `{"n":1`, nil, agentkernel.ToolInvalid, `{}`},
		"no JSON, no better":       {`{"n":1`, `{"n":"1"}`, nil, agentkernel.ToolInvalid, `{}`},
		"wrong type, no better":    {`{"n":"1"}`, `{"n":"1"}`, nil, agentkernel.ToolInvalid, `{"n":"1"}`},
		"nothing instead":          {`{"n":"1"}`, ``, nil, agentkernel.ToolInvalid, `{"n":"1"}`},
		"the hook fails":           {`{"n":"1"}`, ``, errors.New("no idea"), agentkernel.ToolInvalid, `{"n":"1"}`},
		"good ones, left alone":    {`{"n":1}`, `{"n":2}`, nil, agentkernel.ToolOK, `{"n":1}`},
		"no JSON, the hook panics": {`{"n":1`, `panic`, nil, agentkernel.ToolPanic, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := agentkernel.Config{Tools: []agentkernel.Tool{typed}, RepairToolCall: func(_ context.Context, req agentkernel.RepairRequest) (json.RawMessage, error) {
				require.Equal(t, "t", req.Call.Name)
				require.NotEmpty(t, req.Problem)
				require.JSONEq(t, string(typed.Schema.(json.RawMessage)), string(req.Schema))
				if req.Call.ArgsError != "" {
					require.Equal(t, tt.args, req.Call.RawArgs)
				}
				if tt.better == "panic" {
					panic("repair")
				}
				return json.RawMessage(tt.better), tt.err
			}}
			log, got := once(t, cfg, "t", tt.args)
			require.Equal(t, tt.cause, got.Cause)
			require.Equal(t, tt.executed, string(ofType(log, agentkernel.EventToolExecEnd)[0].Args))
			if tt.cause == agentkernel.ToolOK {
				require.Equal(t, tt.executed, got.Content[0].Text)
			}
		})
	}
}

// TestTerminate ends the run normally once the batch is answered.
func TestTerminate(t *testing.T) {
	stop := tool("stop", func(context.Context) (agentkernel.ToolResult, error) {
		return agentkernel.ToolResult{Terminate: true}, nil
	})
	model := agenttest.Script(agenttest.Calls("echo", "stop", "echo"), agenttest.Text("never"))
	log := play(t, agentkernel.Config{Model: model, Tools: []agentkernel.Tool{stop, echo("echo")}})
	require.Equal(t, agentkernel.EndTerminated, endReason(log))
	require.NoError(t, final(log).Err)
	require.Equal(t, []string{"echo ok", "stop ok", "echo ok"}, causes(log))
	require.Len(t, model.Requests(), 1)
	require.Equal(t, 3, final(log).Summary.ToolCalls)
}

// TestSummaryCountsCalls that were answered, whatever became of them.
func TestSummaryCountsCalls(t *testing.T) {
	log := play(t, agentkernel.Config{
		Model: agenttest.Script(agenttest.Calls("echo", "fail", "nobody"), agenttest.Text("ok")),
		Tools: []agentkernel.Tool{echo("echo"), tool("fail", func(context.Context) (agentkernel.ToolResult, error) {
			return agentkernel.ToolResult{}, errors.New("no")
		})},
	})
	require.Equal(t, 3, final(log).Summary.ToolCalls)
	require.Equal(t, 2, final(log).Summary.ToolErrors)
}

// TestToolUsageCountsOnce in the run, through the message.
func TestToolUsageCountsOnce(t *testing.T) {
	usage := agentkernel.Usage{Input: 3, Output: 4, Total: 7, Cost: new(0.5)}
	spender := tool("spender", func(context.Context) (agentkernel.ToolResult, error) {
		return agentkernel.ToolResult{Usage: &usage}, nil
	})
	agent := watch(t, agentkernel.Config{
		Model: agenttest.Script(agenttest.Calls("spender").Usage(agentkernel.Usage{Total: 10}), agenttest.Text("ok").Usage(agentkernel.Usage{Total: 100})),
		Tools: []agentkernel.Tool{spender},
	})
	record, err := agent.Run(t.Context(), "hi")
	require.NoError(t, err)
	require.Equal(t, 117, record.Summary.Usage.Total)
	require.Equal(t, 117, agent.State().TotalUsage.Total)
	require.InDelta(t, 0.5, *record.Summary.Usage.Cost, 1e-9)
	require.Equal(t, 100, *agent.State().ContextTokens)
	usage.Total = math.MaxInt
	require.Equal(t, 7, results(agent.events())["spender"].Usage.Total)
}

// TestToolTimeout: a tool that ends in time after its context is told as timed out at once;
// one that ignores it is left behind StopTimeout later. The run goes on.
func TestToolTimeout(t *testing.T) {
	for name, tt := range map[string]struct {
		timeout, general time.Duration
		deaf             bool
		want             time.Duration
		abandoned        int
	}{
		"the tool's own":          {time.Second, time.Hour, false, time.Second, 0},
		"the config's":            {0, 2 * time.Second, false, 2 * time.Second, 0},
		"a tool that is deaf":     {time.Second, 0, true, time.Second + 3*time.Second, 1},
		"deaf, under the general": {0, time.Second, true, time.Second + 3*time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				slow := waiter("slow")
				if tt.deaf {
					slow = tool("slow", func(ctx context.Context) (agentkernel.ToolResult, error) {
						<-release
						agentkernel.ReportProgress(ctx, agentkernel.ProgressPayload{Text: "late"})
						return agentkernel.TextResult("late"), nil
					})
				}
				slow.Timeout = tt.timeout
				model := agenttest.Script(agenttest.Calls("slow", "echo"), agenttest.Text("ok"))
				log := play(t, agentkernel.Config{Model: model, ToolTimeout: tt.general, StopTimeout: 3 * time.Second,
					Tools: []agentkernel.Tool{slow, echo("echo")}})
				require.Equal(t, []string{"slow timeout", "echo ok"}, causes(log))
				end := ofType(log, agentkernel.EventToolExecEnd)[0]
				require.Equal(t, tt.want, end.Duration)
				require.Contains(t, end.Result.Content[0].Text, "took too long")
				require.Equal(t, tt.abandoned, final(log).Summary.Abandoned)
				require.Equal(t, agentkernel.EndStop, endReason(log))
			})
		})
	}
}

// TestNoToolTimeout by default, and where the tool says so.
func TestNoToolTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := tool("slow", func(ctx context.Context) (agentkernel.ToolResult, error) {
			_, limited := ctx.Deadline()
			require.False(t, limited)
			time.Sleep(24 * time.Hour)
			return agentkernel.TextResult("done"), nil
		})
		slow.Timeout = -1
		log := play(t, agentkernel.Config{Model: agenttest.Script(agenttest.Calls("slow"), agenttest.Text("ok")),
			ToolTimeout: time.Second, Tools: []agentkernel.Tool{slow}})
		require.Equal(t, []string{"slow ok"}, causes(log))
	})
}

// TestCallFrom tells tools and hooks which call they work for.
func TestCallFrom(t *testing.T) {
	var seen []agentkernel.CallInfo
	look := func(ctx context.Context) {
		info, ok := agentkernel.CallFrom(ctx)
		require.True(t, ok)
		seen = append(seen, info)
	}
	looker := tool("look", func(ctx context.Context) (agentkernel.ToolResult, error) {
		look(ctx)
		return agentkernel.ToolResult{}, nil
	})
	log, _ := once(t, agentkernel.Config{Tools: []agentkernel.Tool{looker},
		Gate: func(ctx context.Context, _ agentkernel.GateRequest) (agentkernel.GateDecision, error) {
			look(ctx)
			return agentkernel.GateDecision{Allow: true}, nil
		}}, "look", "{}")
	want := agentkernel.CallInfo{RunID: log[0].RunID, ToolID: "a", Tool: "look"}
	require.Equal(t, slices.Repeat([]agentkernel.CallInfo{want}, 2), seen)
	_, ok := agentkernel.CallFrom(t.Context())
	require.False(t, ok)
}
