package agentkernel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// SubAgent is an agent that an [AgentTool] can ask.
type SubAgent struct {
	// Name is what the model calls it; unique among the agents of a tool.
	Name string
	// Description tells the model what it is good for.
	Description string
	// Config is that of its runs.
	Config Config
}

// ForwardMode is how the events of a sub-agent's run show in the run that asked for it.
type ForwardMode string

// The forward modes.
const (
	// ForwardProgress shows them as Updates of the call: what the sub-agent says and which
	// tools it calls.
	ForwardProgress ForwardMode = ""
	// ForwardEvents puts the events themselves on the parent's stream, between Start and
	// End of the call, with their own RunID, and ParentRunID set.
	ForwardEvents ForwardMode = "events"
	// ForwardNone shows nothing.
	ForwardNone ForwardMode = "none"
)

// AgentToolConfig describes a tool that asks sub-agents.
type AgentToolConfig struct {
	// Name and Description are the tool's. The description goes on with the list of agents.
	Name        string
	Description string
	// Agents can be asked; at least one.
	Agents []SubAgent
	// Forward is how their runs show.
	Forward ForwardMode
	// MaxParallel bounds the runs of one call that are in flight at once. Zero means 4;
	// negative means no bound.
	MaxParallel int
}

// AgentTool returns a tool that gives tasks to sub-agents. A call names a mode: "single" (one
// task), "parallel" (all at once), or "chain" (one after the other, where "{previous}" in a
// prompt stands for the answer before). Each task is a run of its own with a fresh history,
// whose ParentRunID is the caller's run. It ends with the call's context; agents call agents
// at most Config.MaxDepth deep, counted from the outermost run, where the smallest MaxDepth on
// the way holds. The result holds the answers, a block each, which also read one below the
// other where they are joined; ToolResult.Usage what they used up. The call fails if a task
// fails, telling the others' answers too.
//
// The runs cannot be suspended ([Suspend]): a gate of a sub-agent that wants to denies its call.
func AgentTool(cfg AgentToolConfig) (Tool, error) {
	cfg.Agents = slices.Clone(cfg.Agents)
	cfg.MaxParallel = cmp.Or(cfg.MaxParallel, 4)
	var list strings.Builder
	seen := make(map[string]bool)
	names := make([]string, len(cfg.Agents))
	for i, a := range cfg.Agents {
		ready, err := a.Config.withDefaults()
		if err == nil {
			_, err = ready.settings()
		}
		switch {
		case a.Name == "" || seen[a.Name]:
			return Tool{}, invalid("agent tool", "agent %d has no name of its own", i)
		case a.Config.Resume != nil:
			return Tool{}, invalid("agent tool", "agent %q: Resume is set, and its runs begin anew", a.Name)
		case a.Config.Model == nil:
			return Tool{}, invalid("agent tool", "agent %q: %w", a.Name, ErrNoModel)
		case err != nil:
			return Tool{}, invalid("agent tool", "agent %q: %w", a.Name, err)
		}
		seen[a.Name], names[i] = true, a.Name
		fmt.Fprintf(&list, "\n- %s: %s", a.Name, a.Description)
	}
	if len(names) == 0 {
		return Tool{}, invalid("agent tool", "there is no agent")
	}
	switch {
	case cfg.Name == "":
		return Tool{}, invalid("agent tool", "there is no name")
	case cfg.Forward != ForwardProgress && cfg.Forward != ForwardEvents && cfg.Forward != ForwardNone:
		return Tool{}, invalid("agent tool", "Forward %q is unknown", cfg.Forward)
	}
	return Tool{
		Name:            cfg.Name,
		Description:     cfg.Description + "\nAgents:" + list.String(),
		Schema:          agentToolSchema(names),
		ConcurrencySafe: Always,
		Execute:         cfg.execute,
	}, nil
}

func agentToolSchema(names []string) json.RawMessage {
	list, _ := json.Marshal(names)
	return json.RawMessage(`{"type":"object","properties":{` +
		`"mode":{"enum":["single","parallel","chain"],"description":"single by default"},` +
		`"tasks":{"type":"array","minItems":1,"items":{"type":"object","properties":{` +
		`"agent":{"enum":` + string(list) + `},` +
		`"prompt":{"type":"string","description":"in a chain {previous} stands for the answer before"}},` +
		`"required":["agent","prompt"],"additionalProperties":false}}},` +
		`"required":["tasks"],"additionalProperties":false}`)
}

// agentTask is one task of a call, and what became of it.
type agentTask struct {
	Agent  string `json:"agent"`
	Prompt string `json:"prompt,omitempty"`

	record RunRecord
	err    error
}

func (cfg AgentToolConfig) execute(ctx context.Context, args json.RawMessage) (ToolResult, error) {
	var asked struct {
		Mode  string
		Tasks []agentTask
	}
	if err := json.Unmarshal(args, &asked); err != nil {
		return ToolResult{}, err
	}
	switch {
	case asked.Mode == "parallel":
		cfg.parallel(ctx, asked.Tasks)
	case asked.Mode == "chain":
		cfg.chain(ctx, asked.Tasks)
	case len(asked.Tasks) == 1:
		cfg.ask(ctx, &asked.Tasks[0])
	default:
		return ToolResult{}, errors.New(`several tasks need the mode "parallel" or "chain"`)
	}
	return tasksResult(asked.Tasks)
}

func (cfg AgentToolConfig) parallel(ctx context.Context, tasks []agentTask) {
	limit := cfg.MaxParallel
	if limit < 0 {
		limit = len(tasks)
	}
	slots := make(chan struct{}, limit)
	var group sync.WaitGroup
	for i := range tasks {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			guarded(func() (struct{}, error) { cfg.ask(ctx, &tasks[i]); return struct{}{}, nil },
				func(got returned[struct{}]) { tasks[i].err = cmp.Or(got.err, tasks[i].err) })
		})
	}
	group.Wait()
}

func (cfg AgentToolConfig) chain(ctx context.Context, tasks []agentTask) {
	previous := ""
	for i := range tasks {
		t := &tasks[i]
		t.Prompt = strings.ReplaceAll(t.Prompt, "{previous}", previous)
		cfg.ask(ctx, t)
		if t.err != nil {
			for j := range tasks[i+1:] {
				tasks[i+1+j].err = errors.New("not begun, since the task before failed")
			}
			return
		}
		previous = t.record.Answer
	}
}

// errTooDeep is why an agent was not asked.
var errTooDeep = errors.New("agents may not call agents any deeper")

// ask runs one task to its end.
func (cfg AgentToolConfig) ask(ctx context.Context, t *agentTask) {
	i := slices.IndexFunc(cfg.Agents, func(a SubAgent) bool { return a.Name == t.Agent })
	env, _ := ctx.Value(callKey{}).(*callEnv)
	switch {
	case i < 0: // a middleware may write what the schema does not allow
		t.err = fmt.Errorf("there is no agent %q", t.Agent)
		return
	case ctx.Err() != nil:
		t.err = fmt.Errorf("not begun: %w", context.Cause(ctx))
		return
	case env != nil && env.Err() != nil:
		t.err = fmt.Errorf("not begun: %w", context.Cause(env))
		return
	}
	j := job{cfg: cfg.Agents[i].Config, prompts: []AgentMessage{UserMessage(t.Prompt)}, queued: new(ledger), bound: true}
	if env != nil {
		if env.maxDepth > 0 && env.depth >= env.maxDepth {
			t.err = fmt.Errorf("%w: %d", errTooDeep, env.maxDepth)
			return
		}
		j.parentID, j.depth = env.runID, env.depth+1
		j.cfg.StopTimeout = shorter(j.cfg.StopTimeout, env.stop)
		j.cfg.MaxDepth = shallower(j.cfg.MaxDepth, env.maxDepth)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if env != nil { // a middleware may have handed on a context that outlives the call's
		defer context.AfterFunc(env, func() { cancel(context.Cause(env)) })()
	}
	events := start(ctx, cancel, j).events
	defer func() { // nothing to do, unless something below panics
		cancel(nil)
		for range events {
		}
	}()
	for ev := range events {
		t.record.Add(ev)
		if ev.RunID == t.record.ID {
			j.queued.delivered(ev.Seq)
		}
		if env != nil {
			cfg.show(ctx, env, t.Agent, ev)
		}
	}
	t.err = t.record.Err
}

// shorter makes a sub-agent's stop deadline fall before that of the run that waits for it.
func shorter(own, parent time.Duration) time.Duration {
	if own == 0 {
		own = defaultStopTimeout
	}
	if most := parent / 4 * 3; parent >= 0 && (own < 0 || own > most) {
		return max(most, 1)
	}
	return own
}

// shallower makes the limit of the run that asks hold for the sub-agent too.
func shallower(own, parent int) int {
	own = cmp.Or(own, defaultMaxDepth)
	if parent > 0 && (own < 0 || own > parent) {
		return parent
	}
	return own
}

// show lets the parent's stream see an event of a sub-agent's run.
func (cfg AgentToolConfig) show(ctx context.Context, env *callEnv, agent string, ev Event) {
	switch {
	case cfg.Forward == ForwardNone:
	case cfg.Forward == ForwardEvents:
		env.forward(ev)
	case ev.ParentRunID == env.runID:
		if p, ok := progressOf(agent, ev); ok {
			ReportProgress(ctx, p)
		}
	}
}

// progressOf is a sub-agent's event as progress of the call that asked for it.
func progressOf(agent string, ev Event) (ProgressPayload, bool) {
	p := ProgressPayload{Tool: agent}
	switch ev.Type {
	case EventTurnStart:
		p.Kind, p.Count = ProgressTurn, ev.Turn
	case EventMessageUpdate:
		p.Text = ev.Delta
		switch ev.DeltaKind {
		case DeltaText:
			p.Kind = ProgressToolDelta
		case DeltaThinking:
			p.Kind = ProgressThinking
		default:
			return p, false
		}
	case EventToolExecStart:
		p.Kind, p.Text, p.Data = ProgressToolStart, ev.Tool, ev.Args
	case EventToolExecEnd:
		p.Kind, p.Text = ProgressToolEnd, ev.Tool
		if ev.IsError {
			p.Kind = ProgressToolError
		}
	case EventRetry:
		p.Kind, p.Text, p.Count, p.Of = ProgressRetry, ev.Err.Error(), ev.RetryInfo.Attempt, ev.RetryInfo.MaxRetries
	case EventAgentEnd:
		p.Kind, p.Text = ProgressSummary, string(ev.Summary.EndReason)
	default:
		return p, false
	}
	return p, true
}

// tasksResult puts the answers together.
func tasksResult(tasks []agentTask) (ToolResult, error) {
	var result ToolResult
	var usage Usage
	type answer struct {
		Agent  string    `json:"agent"`
		RunID  string    `json:"run_id,omitempty"`
		End    EndReason `json:"end_reason,omitempty"`
		Answer string    `json:"answer,omitempty"`
		Error  string    `json:"error,omitempty"`
	}
	answers := make([]answer, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		answers[i] = answer{t.Agent, t.record.ID, t.record.EndReason, t.record.Answer, ""}
		text := t.record.Answer
		switch {
		case errors.Is(t.err, errTooDeep):
			return ToolResult{}, t.err
		case t.err != nil:
			result.IsError = true
			answers[i].Error = errorText(t.err)
			text = "failed: " + errorText(t.err) + "\n" + text
		}
		if len(tasks) > 1 {
			text = fmt.Sprintf("[%d] %s:\n%s", i+1, t.Agent, text)
		}
		if i+1 < len(tasks) && !strings.HasSuffix(text, "\n") {
			text += "\n" // whoever joins the blocks as they are begins the next on a line of its own
		}
		result.Content = append(result.Content, TextBlock(text))
		usage = usage.Add(t.record.Summary.Usage).Add(t.record.Summary.DiscardedUsage)
	}
	if !usage.isZero() {
		result.Usage = &usage
	}
	result.JSON, _ = json.Marshal(answers)
	return result, nil
}
