package sse

import (
	"encoding/json"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/journal"
)

// wanted cuts a batch down to what is sent at once, without the snapshots that the client
// does not need, so that it holds on to nothing else.
func (c *conn) wanted(records []journal.Record) []journal.Record {
	n, size := 0, 0
	for _, rec := range records {
		if c.knows(&rec) {
			c.at, c.passed = rec.At, rec.At
			continue
		}
		if c.tellsDeath(&rec) {
			// It goes back to the snapshot, which is not known now.
			c.at, c.behind, c.passed = c.passed-1, nil, 0
			break
		}
		if size += len(rec.Data); n > 0 && size > batchBytes {
			break
		}
		c.behind, c.passed = markOf(&rec), 0
		records[n] = rec
		n++
	}
	clear(records[n:])
	return records[:n]
}

// knows tells whether rec is a snapshot that stands for the event that the client saw last.
// One that stands for another bridges a gap.
func (c *conn) knows(rec *journal.Record) bool {
	return rec.Type == agentkernel.EventSnapshot && c.behind != nil && *c.behind == *markOf(rec)
}

// tellsDeath tells whether rec makes the snapshot that was left out before it one that says
// that a run died: rec begins a run of the agent, and another one is open in the snapshot.
// Whether it does shows only now, and the snapshot, which may be long, was not held.
func (c *conn) tellsDeath(rec *journal.Record) bool {
	if c.passed == 0 || rec.Type != agentkernel.EventAgentStart {
		return false
	}
	var begun struct {
		ParentRunID string `json:"parent_run_id"`
	}
	if json.Unmarshal(rec.Data, &begun) != nil || begun.ParentRunID != "" {
		return false
	}
	var snapshot struct {
		State struct {
			IsRunning bool `json:"is_running"`
		}
	}
	records, err := c.journal.Since(c.passed-1, 1)
	if err != nil || len(records) == 0 { // gone meanwhile: the client begins with a newer one
		return true
	}
	return json.Unmarshal(records[0].Data, &snapshot) == nil && snapshot.State.IsRunning
}
