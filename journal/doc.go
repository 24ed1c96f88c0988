// Package journal keeps what an agent did as a log of records in the delta-only wire form, in
// memory or in a file, and makes an agent's state of it again.
//
// A journal is written by one goroutine and read by any number:
//
//	j, err := journal.Open("session.jsonl", journal.Config{})
//	stop := journal.Follow(agent, j)
//
// and, in the next process,
//
//	state, err := journal.Restore(j)
//	err = agent.Restore(state)
//
// Among the events stand snapshots, from which a reader may begin, so that one that comes
// late reads little. A journal begins with one. Two rules decide when the next one is due:
// Config.SnapshotEvery events were written since, and at least as many bytes as a snapshot
// takes, so that snapshots at most double what is written. Another one stands wherever the
// records alone do not lead on: see [Journal.Append].
package journal
