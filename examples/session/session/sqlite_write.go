package session

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"
)

// Write implements [Store].
func (s *SQLite) Write(ctx context.Context, id string, change Change) error {
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		w := writer{ctx: ctx, tx: tx, session: id}
		w.settings(change)
		w.log(change)
		w.records(change)
		return w.err
	})
	if err != nil {
		return fmt.Errorf("session %s: %w", id, err)
	}
	return nil
}

// writer writes one change. Behind its first error it writes nothing.
type writer struct {
	ctx     context.Context
	tx      *sql.Tx
	session string
	err     error
}

func (w *writer) exec(query string, args ...any) {
	if w.err == nil {
		_, w.err = w.tx.ExecContext(w.ctx, query, args...)
	}
}

// json is v as text.
func (w *writer) json(v any) string {
	text, err := json.Marshal(v)
	if w.err == nil {
		w.err = err
	}
	return string(text)
}

func (w *writer) settings(c Change) {
	set := func(column string, value any) {
		w.exec(`UPDATE sessions SET `+column+` = ? WHERE id = ?`, value, w.session)
	}
	set("updated", time.Now().UnixMicro())
	if c.Name != "" {
		set("name", c.Name)
	}
	if c.Model != nil {
		set("model", *c.Model)
	}
	if c.Thinking != nil {
		set("thinking", string(*c.Thinking))
	}
	switch {
	case c.Goal == nil:
	case c.Goal.Text == "":
		set("goal", "")
	default:
		set("goal", w.json(c.Goal))
	}
	if c.MemoryAt > 0 {
		set("memory_at", c.MemoryAt)
	}
}

// log writes what the history is a fold of.
func (w *writer) log(c Change) {
	const put = ` (session, place, event) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET event = excluded.event`
	if c.Message != nil {
		w.exec(`INSERT INTO messages`+put, w.session, int64(c.Message.Seq), w.json(c.Message))
	}
	if c.Baseline != nil {
		w.exec(`INSERT INTO baselines`+put, w.session, int64(c.Baseline.Seq), w.json(c.Baseline))
	}
}

func (w *writer) records(c Change) {
	for _, call := range c.Calls {
		w.exec(`INSERT INTO model_calls (session, run, turn, attempt, asked, failed, call) VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET failed = excluded.failed, call = excluded.call`,
			w.session, call.RunID, call.Turn, call.Attempt, call.Asked.UnixMicro(), call.Error != nil && call.ParentRunID == "", w.json(call))
	}
	for _, m := range c.Memory {
		w.exec(`INSERT INTO memories (session, text, place, found) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			w.session, m.Text, m.Place, m.Time.UnixMicro())
	}
	if run := c.Run; run != nil {
		w.exec(`DELETE FROM messages WHERE session = ? AND place > ?`, w.session, run.Last)
		failed := ""
		if run.Error != nil {
			failed = w.json(run.Error)
		}
		w.exec(`INSERT INTO runs (session, run, last, summary, error, ended) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			w.session, run.RunID, run.Last, w.json(run.Summary), failed, run.Time.UnixMicro())
	}
}
