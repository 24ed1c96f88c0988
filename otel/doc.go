// Package otel shows what agents do as OpenTelemetry traces and metrics. It is one listener
// on the kernel's stream of events: the kernel knows nothing of it, and it needs no goroutine.
//
//	observer, err := otel.New(otel.Config{TracerProvider: tp, MeterProvider: mp})
//	stop := observer.Subscribe(ctx, agent, otel.Identity{Name: "helper", Provider: "openai", Model: "gpt-4o"})
//	defer stop()
//
// A loop without agent is ranged over through [Observer.Observe]; [Observer.Listener] is the
// bare function, for an asynchronous subscription or for events that were read from a wire.
//
// # Conventions
//
// Names follow the OpenTelemetry semantic conventions of version 1.41.0, the last that holds
// those for generative AI (schema URL [SchemaURL]). Since then these go on in a repository of
// their own; its first release, v0.1.0, gives the metrics of model calls other names, which
// this package does not use yet, and brings gen_ai.invoke_agent.duration and
// gen_ai.execute_tool.duration, which it does. All of it has the status "development". What the
// conventions have no name for begins with "agentkernel.".
//
// # Spans
//
//	invoke_agent {agent}            a run                                     internal
//	├─ chat {model}                 one attempt to get an answer              client
//	├─ execute_tool {tool}          one call                                  internal
//	│  └─ invoke_agent {agent}      a run that the call made (ForwardEvents)  internal
//	└─ chat {model}
//
// Times are those of the events, so that a late listener, or a replay, draws the same picture.
//
// A run is below the span in the context that was given with the subscription. A child run is
// below the call that made it. Its events name the run of that call but not the call: where
// several calls are open, it is the one that asks for the child's prompt at that moment (a chain
// asks for one at a time, with the answer before in it). Where that leaves a choice the child
// stands below the run, and the call whose result names it has a link to it. The sub-agent's name
// is left out where several were asked the same. A sub-agent that does not forward its events
// ([agentkernel.ForwardEvents]) has no spans; its tokens are counted all the same, as the
// operation invoke_agent.
//
// Events on spans: agentkernel.discard on a chat whose half-made message was given up,
// agentkernel.retry on the run that tries again (or goes over to another model),
// agentkernel.context on a run whose history was replaced, exception with the stack on a call
// that panicked.
//
// Every span that begins also ends. What was open when the run ended, when its call ended, or
// when the subscription was stopped ends there, with agentkernel.incomplete; a run of which
// events are missing says how many in agentkernel.events.missed.
//
// # Errors
//
// A run or chat that failed has the status Error and in error.type the [agentkernel.Kind] of
// its error ("_OTHER" for an error without kind), a call its [agentkernel.ToolCause] ("failed",
// "denied", "timeout", "panic", …). A run that was aborted, and the answer that this cut off,
// have "canceled".
//
// # Metrics
//
//	gen_ai.client.token.usage                     {token}  by gen_ai.token.type; failed attempts too
//	gen_ai.client.operation.duration              s        of chats: one per attempt
//	gen_ai.client.operation.time_to_first_chunk   s        from the request to the first content
//	gen_ai.invoke_agent.duration                  s        of runs
//	gen_ai.execute_tool.duration                  s        of calls
//	agentkernel.errors                            {error}  by gen_ai.operation.name and error.type
//
// Durations are those that the kernel measured: they leave out the time for which the run
// waited for its listeners. A tool that does not exist counts as "_OTHER", so that a model
// which invents names makes no new series.
//
// # Content
//
// Prompts, answers, arguments and results are not recorded, unless [Config.CaptureContent] is
// set: then they are attributes (gen_ai.input.messages, gen_ai.output.messages,
// gen_ai.system_instructions, gen_ai.tool.definitions, gen_ai.tool.call.arguments,
// gen_ai.tool.call.result) in the conventions' JSON. The text of an error may quote what was said:
// it is the description of the status of its run or chat only then, and otherwise that is the
// kind, as in error.type.
package otel
