package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Lock implements [Store]. The lock is SQLite's own, an exclusive transaction that is never
// written, on an empty file for each session beside the store. The system takes it from a
// process that dies, and no lease runs out under one that is slow.
func (s *SQLite) Lock(ctx context.Context, id string) (unlock func() error, err error) {
	if s.path == "" {
		return s.lockInMemory(id)
	}
	folder, err := s.folder()
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", dsn(filepath.Join(folder, id), "journal_mode(OFF)")+"&_txlock=exclusive")
	if err != nil {
		return nil, err
	}
	tx, err := db.BeginTx(context.WithoutCancel(ctx), nil) // it does not wait
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code()&0xff == sqlite3.SQLITE_BUSY {
		return nil, errors.Join(s.inUse(ctx, id), db.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("session %s: %w", id, err), db.Close())
	}
	unlock = func() error { return errors.Join(tx.Rollback(), db.Close()) }
	if err := s.hold(ctx, id); err != nil {
		return nil, errors.Join(err, unlock())
	}
	return unlock, nil
}

// hold notes who holds the lock, for those who meet it.
func (s *SQLite) hold(ctx context.Context, id string) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		now := time.Now().UnixMicro()
		_, err := tx.ExecContext(ctx, `INSERT INTO sessions (id, holder, created, updated) VALUES (?1, ?2, ?3, ?3)
			ON CONFLICT DO UPDATE SET holder = excluded.holder`, id, os.Getpid(), now)
		return err
	})
}

func (s *SQLite) inUse(ctx context.Context, id string) error {
	var holder int
	if err := s.db.QueryRowContext(ctx, `SELECT holder FROM sessions WHERE id = ?`, id).Scan(&holder); err != nil || holder == 0 {
		return fmt.Errorf("%w: %s", ErrInUse, id)
	}
	return fmt.Errorf("%w: %s, in process %d", ErrInUse, id, holder)
}

func (s *SQLite) lockInMemory(id string) (unlock func() error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[id] {
		return nil, fmt.Errorf("%w: %s", ErrInUse, id)
	}
	s.held[id] = true
	return func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.held, id)
		return nil
	}, nil
}
