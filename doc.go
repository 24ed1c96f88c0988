// Package agentkernel is the kernel of an agent: it asks a model, runs the tools that the
// model calls, and says everything that happens on one ordered stream of events.
//
//	ChatModel ──stream──▶ AgentLoop ──chan Event──▶ Agent ──▶ listener 1, listener 2, …
//
// There are two ways in.
//
// [AgentLoop] is a function: all it needs is passed in, all it finds out leaves as an
// [Event]. It keeps nothing between runs.
//
// [Agent] is the loop's first consumer. [Agent.Prompt], [Agent.Run] and [Agent.Stream] start
// a run; [Agent.State] is a fold of its events ([Reduce]) and nothing else; [Agent.Subscribe]
// hands each event to each listener, in order. A terminal, a log or a store is a listener.
//
// Both take one [Config]. Its required part is a [ChatModel], an interface of one method:
// package openai has one for OpenAI-compatible endpoints, package agenttest one that plays a
// script. A [Tool] is a struct with a function.
//
// # The stream of one run
//
//	run     = AgentStart Context? turn* message? Error? AgentEnd, then the channel closes; that message marks an abort
//	turn    = TurnStart message* ( call tools? | tools ) ModelResponse
//	message = MessageStart MessageEnd             of a user, a tool or the harness
//	call    = ( attempt Retry )* attempt
//	attempt = Context? ModelRequest ( MessageStart MessageUpdate* ( MessageEnd | MessageDiscard ) )?
//	tools   = ( ToolExecStart ToolExecUpdate* ToolExecEnd )*, then one message for each call
//
// A run may stop anywhere in a turn; what is open is closed first. What holds on every path:
//
//   - Everything opened is closed, once, and AgentEnd always comes: after success, error,
//     abort, limit, and a panic in model, tool or hook.
//   - The history is exactly the messages that ended. A message that was discarded never
//     happened.
//   - An update carries what was added and the whole message so far; the deltas of a block
//     add up to the block.
//   - Every call of an ended message gets one result, also when it was never executed. Two
//     ends leave calls to the next run: a Commit that failed, and a gate that suspends.
//   - Error is fatal, and the last event before AgentEnd, which repeats it. A failed tool or
//     a failed attempt is no Error, and neither is an abort: AgentEnd alone carries it.
//   - What is handed out may be kept for ever and read from any goroutine, and is read-only.
//
// docs/events.md shows the events of each scenario as a tree.
//
// # Where things are
//
//   - listening: [Agent.Subscribe] (synchronous, in order), [On] (one kind of event, its
//     fields alone), [Agent.SubscribeAsync] (own goroutine, waiting updates merge),
//     [Agent.Stream] and [Agent.Events] (iterators), [Collect]
//   - tools: [NewTool], [Tool], Config.Gate, [Suspend], [Middleware], [ReportProgress], [AgentTool], [SearchTool]
//   - conversations: [Agent.Steer], [Agent.FollowUp], [Agent.Inject], [Agent.Continue],
//     [Agent.Resume], [Agent.SetMessages], [Agent.Restore], [RepairHistory], package journal
//   - the model's window: [ContextManager], [Compactor], [Agent.Compact]
//   - limits and stops: Config.Budget, Config.StopGuard, Config.Commit, [Agent.HoldRuns]
//   - adapters: [ChatModel], [StreamEvent], [Generate], package openai, agenttest.TestModel
//   - the wire: [Encoder], [Decoder], [Event.MarshalJSON], package sse
//
// # Stopping
//
// A run ends at the latest Config.StopTimeout after its context: code that does not come
// back is left behind, and what it does later has no effect. While a run lives, a slow
// consumer slows it down and loses nothing. That bounds the run's own work: Run.Wait and
// Agent.Run also wait for every listener, without a bound.
//
// # Errors
//
// Misuse is an error of the call that misused. Everything else that goes wrong is an
// [*Error] with a [Kind]:
//
//	if errors.Is(err, agentkernel.KindRateLimit) { … }
package agentkernel
