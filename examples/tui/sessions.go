package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/journal"
)

// store is a folder of sessions, each of which is a journal in a file of its own.
type store struct{ dir string }

// session is one that this process has open, and locked against others.
type session struct {
	name    string
	journal *journal.Journal
	lock    *os.File
}

// stored is a session as a list shows it.
type stored struct {
	name  string
	title string // what the user said first
	used  time.Time
}

const suffix = ".jsonl"

// create makes a session. Its name is the time.
func (s store) create(now time.Time) (*session, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	for {
		name := now.Format("20060102-150405.000")
		f, err := os.OpenFile(s.path(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			return s.take(name, f.Close())
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		now = now.Add(time.Millisecond)
	}
}

// open opens a session that exists.
func (s store) open(name string) (*session, error) {
	if !filepath.IsLocal(name) || filepath.Base(name) != name {
		return nil, fmt.Errorf("%q is no name of a session", name)
	}
	_, err := os.Stat(s.path(name))
	return s.take(name, err)
}

// take locks the session, opens its journal and takes over its file.
func (s store) take(name string, err error) (*session, error) {
	if err != nil {
		return nil, err
	}
	lock, err := os.Open(s.path(name))
	if err != nil {
		return nil, err
	}
	if err := lockFile(lock); err != nil {
		lock.Close()
		return nil, fmt.Errorf("session %s is in use: %w", name, err)
	}
	j, err := journal.Open(s.path(name), journal.Config{})
	if err != nil {
		lock.Close()
		return nil, err
	}
	return &session{name, j, lock}, nil
}

func (s store) path(name string) string { return filepath.Join(s.dir, name+suffix) }

// close closes the session, and removes it where nothing was said in it.
func (s store) close(open *session) error {
	err := errors.Join(open.journal.Err(), open.journal.Close())
	if _, said := title(s.path(open.name)); !said && err == nil {
		err = os.Remove(s.path(open.name))
	}
	return errors.Join(err, open.lock.Close())
}

// list returns the sessions in which something was said, the last used first.
func (s store) list() ([]stored, error) {
	files, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []stored
	for _, f := range files {
		name, isSession := strings.CutSuffix(f.Name(), suffix)
		info, err := f.Info()
		if !isSession || err != nil {
			continue
		}
		if text, said := title(s.path(name)); said {
			out = append(out, stored{name, text, info.ModTime()})
		}
	}
	slices.SortFunc(out, func(a, b stored) int { return b.used.Compare(a.used) })
	return out, nil
}

// title reads what the user said first in a session. It does not open the journal, which would
// mend it, since another process may be writing it.
func title(path string) (text string, said bool) {
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	var decoder agentkernel.Decoder
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return "", false
		}
		ev, _ := decoder.Decode(line) // what cannot be read is not it
		if ev.Type == agentkernel.EventMessageEnd && ev.ParentRunID == "" && ev.Message.GetRole() == agentkernel.RoleUser {
			return strings.Join(strings.Fields(ev.Message.TextContent()), " "), true
		}
	}
}

// replay folds a stored session: what its screen showed, and the feed to go on with.
func replay(j *journal.Journal) (f feed, shown []block, err error) {
	for ev, err := range journal.Events(j, false) {
		if err != nil {
			shown = append(shown, block{kind: blockError, text: err.Error()})
		}
		if ev.Type != "" {
			shown = append(shown, f.fold(ev)...)
		}
	}
	shown = append(shown, f.cut()...)
	f.state, err = journal.Restore(j)
	return f, shown, err
}
