// Package jetstream lets runs outlive their process, and spreads them over many: sessions
// live in NATS JetStream, workers take them up, clients are anywhere.
//
//	err := jetstream.Setup(ctx, nc, jetstream.Config{})
//
//	worker, err := jetstream.NewWorker(nc, jetstream.WorkerConfig{Agent: configOf})
//	err = worker.Run(ctx)
//
//	client, err := jetstream.NewClient(nc, jetstream.Config{})
//	id, err := client.Submit(ctx, "session-1", jetstream.Request{Messages: prompts})
//	outcome, err := client.Wait(ctx, "session-1", id)
//
// # What is where
//
// A request waits in a work queue until a worker has answered it. What a session said, its
// messages, is one subject with one record for each: the truth. A worker writes a message
// there and waits for the acknowledgement before the message takes effect
// ([agentkernel.Config.Commit]). What happens in between, every delta, goes onto a second subject
// in batches, for those who look on; it is kept for a while only.
//
// # Who may write
//
// Each record of a session names the one that it follows, and JetStream takes it only if that
// one is the last. A worker begins with a record of its own, a claim. So a worker that was
// thought dead and wakes up cannot write any more: its next message does not follow the last
// record, and its run ends with kind "commit".
//
// # When a worker dies
//
// Its request is delivered again, to any worker, which goes on behind the last message.
// Results that were written stay. A call without one is run again where its tool is
// [agentkernel.Tool.Idempotent], with the same [IdempotencyKey]; otherwise it may have run, and the
// model is told that it was interrupted.
//
// # What a consumer sees then
//
// The run of the dead worker never ends on the stream of events. In its place comes an event of
// type [agentkernel.EventSnapshot], the restart mark: what was open did not happen,
// [Follower.State] is the truth, and the next event is the start of the run that goes on. See
// docs/scale.md.
//
// # Connections
//
// Every part works over a plain *nats.Conn, which stays the caller's. One that is to survive a
// restart of its broker is made with nats.MaxReconnects(-1). [StartEmbedded] is a broker within
// the process, for development, tests, and programs of one binary.
//
// The package is a module of its own: go get github.com/agentkernel-go/agentkernel/jetstream.
package jetstream
