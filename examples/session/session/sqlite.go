package session

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/agentkernel-go/agentkernel"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// SQLite is a [Store] in one SQLite file, in WAL mode with synchronous=FULL: what Write has
// written survives the machine's end too. It has one connection, on which everything happens
// one after the other. Several processes may have the file open, with different sessions.
type SQLite struct {
	path string // of the file, empty for memory
	db   *sql.DB

	mu   sync.Mutex
	held map[string]bool // the locks, where there is no file
}

// InMemory is the path of a store that goes with its process.
const InMemory = ":memory:"

// schemaVersion is the user_version of the file.
const schemaVersion = 1

const schema = `
CREATE TABLE sessions (
	id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', model TEXT NOT NULL DEFAULT '', thinking TEXT NOT NULL DEFAULT '',
	goal TEXT NOT NULL DEFAULT '', memory_at INTEGER NOT NULL DEFAULT 0, holder INTEGER NOT NULL DEFAULT 0,
	created INTEGER NOT NULL, updated INTEGER NOT NULL
) STRICT;
CREATE TABLE messages (
	session TEXT NOT NULL REFERENCES sessions, place INTEGER NOT NULL, event TEXT NOT NULL, PRIMARY KEY (session, place)
) STRICT;
CREATE TABLE baselines (
	session TEXT NOT NULL REFERENCES sessions, place INTEGER NOT NULL, event TEXT NOT NULL, PRIMARY KEY (session, place)
) STRICT;
CREATE TABLE model_calls (
	session TEXT NOT NULL REFERENCES sessions, run TEXT NOT NULL, turn INTEGER NOT NULL, attempt INTEGER NOT NULL,
	asked INTEGER NOT NULL, failed INTEGER NOT NULL, call TEXT NOT NULL, PRIMARY KEY (session, run, turn, attempt)
) STRICT;
CREATE TABLE runs (
	session TEXT NOT NULL REFERENCES sessions, run TEXT NOT NULL, last INTEGER NOT NULL, summary TEXT NOT NULL,
	error TEXT NOT NULL, ended INTEGER NOT NULL, PRIMARY KEY (session, run)
) STRICT;
CREATE TABLE memories (
	session TEXT NOT NULL REFERENCES sessions, text TEXT NOT NULL, place INTEGER NOT NULL, found INTEGER NOT NULL,
	PRIMARY KEY (session, text)
) STRICT;
`

// OpenSQLite opens the file at path, which it makes where there is none. Close it after the sessions.
func OpenSQLite(ctx context.Context, path string) (*SQLite, error) {
	s := &SQLite{path: path, held: make(map[string]bool)}
	name, mode := dsn(path, "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "busy_timeout(5000)"), "wal"
	if path == InMemory {
		s.path, name, mode = "", dsn(path, "foreign_keys(1)"), "memory"
	}
	var err error
	if s.db, err = sql.Open("sqlite", name+"&_txlock=immediate"); err != nil {
		return nil, err
	}
	s.db.SetMaxOpenConns(1)
	if err := s.prepare(ctx, mode); err != nil {
		return nil, errors.Join(fmt.Errorf("session: %s: %w", path, err), s.db.Close())
	}
	return s, nil
}

// dsn is the name by which the driver opens path.
func dsn(path string, pragmas ...string) string {
	query := url.Values{"_pragma": pragmas}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: query.Encode()}).String()
}

// prepare makes sure that the file is what its writers rely on.
func (s *SQLite) prepare(ctx context.Context, mode string) error {
	got, synchronous, err := s.Durability(ctx)
	if err != nil {
		return err
	}
	if got != mode || synchronous != 2 {
		return fmt.Errorf("the journal mode is %q, not %q, and synchronous is %d, not 2", got, mode, synchronous)
	}
	return s.inTx(ctx, func(tx *sql.Tx) error {
		var version int
		if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
			return err
		}
		switch version {
		case schemaVersion:
			return nil
		case 0:
			_, err := tx.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA user_version = %d;", schemaVersion))
			return err
		}
		return fmt.Errorf("the file has version %d, this program knows %d", version, schemaVersion)
	})
}

// Durability returns SQLite's journal mode and its setting synchronous, which is 2 for FULL.
func (s *SQLite) Durability(ctx context.Context) (mode string, synchronous int, err error) {
	err = errors.Join(
		s.db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode),
		s.db.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&synchronous))
	return mode, synchronous, err
}

// Close closes the file.
func (s *SQLite) Close() error { return s.db.Close() }

// inTx calls fn in a transaction that takes effect if fn returns nil.
func (s *SQLite) inTx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing to do behind a Commit
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Load implements [Store].
func (s *SQLite) Load(ctx context.Context, id string) (Saved, error) {
	var saved Saved
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		now := time.Now().UnixMicro()
		_, err := tx.ExecContext(ctx, `INSERT INTO sessions (id, created, updated) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, id, now, now)
		if err != nil {
			return err
		}
		saved, err = load(ctx, tx, id)
		return err
	})
	if err != nil {
		return Saved{}, fmt.Errorf("session %s: %w", id, err)
	}
	return saved, nil
}

func load(ctx context.Context, tx *sql.Tx, id string) (Saved, error) {
	saved := Saved{Info: Info{ID: id}}
	var goal string
	var created, updated int64
	row := tx.QueryRowContext(ctx, `SELECT name, model, thinking, goal, memory_at, created, updated FROM sessions WHERE id = ?`, id)
	err := row.Scan(&saved.Name, &saved.Model, &saved.Thinking, &goal, &saved.MemoryAt, &created, &updated)
	if err != nil {
		return saved, err
	}
	saved.Created, saved.Updated = fromMicro(created), fromMicro(updated)
	if saved.Goal, err = goalFrom(goal); err != nil {
		return saved, err
	}
	// A baseline stands behind the message of its place.
	err = each(ctx, tx, `SELECT event FROM (SELECT place, 0 AS behind, event FROM messages WHERE session = ?1
		UNION ALL SELECT place, 1, event FROM baselines WHERE session = ?1) ORDER BY place, behind`, id, func(text string) error {
		var ev agentkernel.Event
		if err := json.Unmarshal([]byte(text), &ev); err != nil {
			return err
		}
		saved.Log = append(saved.Log, ev)
		if ev.Type == agentkernel.EventMessageEnd {
			saved.Messages++
		}
		return nil
	})
	if err != nil {
		return saved, err
	}
	err = each(ctx, tx, `SELECT call FROM model_calls WHERE session = ? AND failed`, id, func(text string) error {
		var call ModelCall
		err := json.Unmarshal([]byte(text), &call)
		if call.Usage != nil {
			saved.Discarded = saved.Discarded.Add(*call.Usage)
		}
		return err
	})
	if err != nil {
		return saved, err
	}
	err = each(ctx, tx, `SELECT json_object('text', text, 'place', place, 'found', found) FROM memories WHERE session = ? ORDER BY place, rowid`, id,
		func(text string) error {
			var m struct {
				Memory
				Found int64
			}
			err := json.Unmarshal([]byte(text), &m)
			m.Time = fromMicro(m.Found)
			saved.Memory = append(saved.Memory, m.Memory)
			return err
		})
	return saved, err
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// each calls fn with the text of each row.
func each(ctx context.Context, q querier, query, id string, fn func(text string) error) error {
	rows, err := q.QueryContext(ctx, query, id)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		if err := fn(text); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Calls implements [Store].
func (s *SQLite) Calls(ctx context.Context, id string) ([]ModelCall, error) {
	var calls []ModelCall
	err := each(ctx, s.db, `SELECT call FROM model_calls WHERE session = ? ORDER BY rowid`, id, func(text string) error {
		var call ModelCall
		err := json.Unmarshal([]byte(text), &call)
		calls = append(calls, call)
		return err
	})
	return calls, err
}

// List implements [Store].
func (s *SQLite) List(ctx context.Context) ([]Info, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, name, goal, created, updated,
		(SELECT count(*) FROM messages WHERE session = id) FROM sessions ORDER BY updated DESC, id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []Info
	for rows.Next() {
		var info Info
		var goal string
		var created, updated int64
		if err := rows.Scan(&info.ID, &info.Name, &goal, &created, &updated, &info.Messages); err != nil {
			return nil, err
		}
		info.Created, info.Updated = fromMicro(created), fromMicro(updated)
		if info.Goal, err = goalFrom(goal); err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	return list, rows.Err()
}

func goalFrom(text string) (*Goal, error) {
	if text == "" {
		return nil, nil
	}
	g := new(Goal)
	return g, json.Unmarshal([]byte(text), g)
}

func fromMicro(t int64) time.Time { return time.UnixMicro(t).UTC() }

// folder is where the locks of a store stand.
func (s *SQLite) folder() (string, error) {
	name := s.path + ".locks"
	return name, os.MkdirAll(name, 0o700)
}
