package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/agentkernel-go/agentkernel"
)

var (
	errClosed   = errors.New("journal: closed")
	errReadOnly = errors.New("journal: open only to be read")
)

// CorruptError says that a line of a file is no record, and is not what an interrupted writer
// leaves behind either.
type CorruptError struct {
	// Line counts from 1; Offset is where it begins.
	Line   int
	Offset int64
	Err    error
}

// Error returns the error on one line.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("journal: line %d at byte %d is no record: %v", e.Line, e.Offset, e.Err)
}

// Unwrap returns what is wrong with it.
func (e *CorruptError) Unwrap() error { return e.Err }

// file is a store of lines of JSON in a file, with an index in memory.
type file struct {
	f    *os.File
	path string
	info os.FileInfo // which file f is
	sync bool
	size int64 // of the records: where the next one goes. The writer's.

	mu    sync.Mutex
	index []place
	last  uint64 // the place before the last snapshot
	// large are the last records beyond batchBytes that were read. Readers who hold one, since
	// their clients take their time, share it.
	large [4]Record
	next  int // the place in large for the next one
}

// place is where a record stands in the file.
type place struct {
	offset int64
	length int // without the line break
	runID  string
	seq    uint64
	of     agentkernel.EventType
}

// Open opens the journal in the file at path, or makes it, and reads it once.
//
// A writer that was interrupted leaves behind at most one line without its line break, and a
// machine that stopped zero bytes. That is cut off, and nothing before it; a record that lacks
// no more than its line break is kept. In a file without any record only the beginning of a
// record counts as such a line. Every other line that is no record is a [*CorruptError], and a
// record of another version of the wire form an [*agentkernel.WireError]: the file is then
// left as it is, and so is what is no regular file.
//
// One process at a time may have a journal open to write, and only one Journal in it. Nothing
// enforces that: a second one may cut off the line that is being written. Config.ReadOnly is for
// those who only look; while a process writes, others can also read from it, for example by
// package sse.
func Open(path string, cfg Config) (*Journal, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, irregular(path) // whose opening may wait, or do something
	}
	mode := os.O_RDWR | os.O_CREATE
	if cfg.ReadOnly {
		mode = os.O_RDONLY
	}
	f, err := os.OpenFile(path, mode, 0o600)
	if err != nil {
		return nil, err
	}
	j, err := open(f, cfg)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

func irregular(path string) error { return fmt.Errorf("journal: %s is no regular file", path) }

func open(f *os.File, cfg Config) (*Journal, error) {
	s := &file{f: f, sync: cfg.Sync}
	var err error
	if s.path, err = filepath.Abs(f.Name()); err != nil {
		return nil, err
	}
	switch s.info, err = f.Stat(); {
	case err != nil:
		return nil, err
	case !s.info.Mode().IsRegular():
		return nil, irregular(f.Name())
	}
	dec := agentkernel.NewDecoder(cfg.State)
	whole, err := s.scan(dec)
	if err != nil {
		return nil, err
	}
	if cfg.ReadOnly {
		return newJournal(cfg, s, dec.Encoder()), nil
	}
	if err := s.trim(); err != nil {
		return nil, err
	}
	j := newJournal(cfg, s, dec.Encoder())
	if j.enc.State().IsRunning {
		if err := j.learnRuns(); err != nil {
			return nil, err
		}
	}
	switch {
	case len(s.index) == 0:
		return j, j.snapshot()
	case !whole:
		if _, err := f.WriteAt([]byte("\n"), s.size); err != nil {
			return nil, err
		}
		s.size++
	}
	j.resume(s)
	return j, nil
}

// learnRuns makes runs what enc follows, which a snapshot tells.
func (j *Journal) learnRuns() error {
	data, err := j.enc.Snapshot()
	if err != nil {
		return err
	}
	var snapshot struct {
		Runs []struct {
			RunID       string `json:"run_id"`
			ParentRunID string `json:"parent_run_id"`
			Seq         uint64
		}
	}
	if err := json.Unmarshal(data, &snapshot); err != nil {
		return err
	}
	for _, r := range snapshot.Runs {
		if r.Seq > 0 { // otherwise it goes on as one whose beginning is not known
			j.runs[r.RunID] = &runOrder{seq: r.Seq, counted: r.Seq, parent: r.ParentRunID}
		}
	}
	return nil
}

// trim cuts off what stands behind the records.
func (s *file) trim() error {
	info, err := s.f.Stat()
	if err != nil || info.Size() == s.size {
		return err
	}
	return s.f.Truncate(s.size)
}

// resume sets the counts for the next snapshot to what stands behind the last one.
func (j *Journal) resume(s *file) {
	for _, p := range s.index[s.last:] {
		if p.of == agentkernel.EventSnapshot {
			j.events, j.bytes, j.snapshotBytes = 0, 0, p.length
			continue
		}
		j.events++
		j.bytes += p.length
	}
}

// scan reads the file, as long as it is at the beginning, and indexes its records. It reports
// whether the last one has its line break; size is then where the records end.
func (s *file) scan(dec *agentkernel.Decoder) (whole bool, err error) {
	in := bufio.NewReaderSize(io.LimitReader(s.f, s.info.Size()), 1<<16)
	whole = true
	var offset int64
	for line := 1; ; line++ {
		text, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return false, err
		}
		if len(text) == 0 {
			return whole, nil
		}
		data, ended := bytes.CutSuffix(text, []byte("\n"))
		ev, wrong := dec.Decode(data)
		switch {
		case errors.Is(wrong, agentkernel.WireVersionMismatch):
			return false, wrong
		case !errors.Is(wrong, agentkernel.WireGarbage):
			s.note(place{offset: offset, length: len(data)}, data, ev, wrong)
			whole = ended
			s.size = offset + int64(len(text))
		case ended || len(s.index) == 0 && !begins(data):
			return false, &CorruptError{Line: line, Offset: offset, Err: wrong}
		}
		offset += int64(len(text))
	}
}

// begins tells whether line, without the zero bytes at its end, is the beginning of a record
// that breaks off.
func begins(line []byte) bool {
	line = bytes.TrimRight(line, "\x00")
	head := fmt.Appendf(nil, `{"v":%d,"type":"`, agentkernel.WireVersion)
	if len(line) <= len(head) {
		return len(line) > 0 && bytes.HasPrefix(head, line)
	}
	var rec json.RawMessage
	err := json.NewDecoder(bytes.NewReader(line)).Decode(&rec)
	return bytes.HasPrefix(line, head) && errors.Is(err, io.ErrUnexpectedEOF)
}

// note adds a record to the index.
func (s *file) note(p place, data []byte, ev agentkernel.Event, wrong error) {
	p.runID, p.seq, p.of = ev.RunID, ev.Seq, ev.Type
	if e, ok := errors.AsType[*agentkernel.WireError](wrong); ok {
		p.runID, p.seq = e.RunID, e.Seq
	}
	s.add(p)
}

func (s *file) add(p place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.of == agentkernel.EventSnapshot {
		s.last = uint64(len(s.index))
	}
	if n := len(s.index); n > 0 { // most records need no string of their own
		before := &s.index[n-1]
		if before.runID == p.runID {
			p.runID = before.runID
		}
		if before.of == p.of {
			p.of = before.of
		}
	}
	s.index = append(s.index, p)
}

// append writes one line. What a failed write left behind is written over by the next.
func (s *file) append(rec Record) error {
	line := append(rec.Data[:len(rec.Data):len(rec.Data)], '\n')
	if _, err := s.f.WriteAt(line, s.size); err != nil {
		return errors.Join(err, s.f.Truncate(s.size))
	}
	if s.sync && counts(rec.Type) {
		if err := s.f.Sync(); err != nil {
			return errors.Join(err, s.f.Truncate(s.size))
		}
	}
	s.add(place{offset: s.size, length: len(rec.Data), runID: rec.RunID, seq: rec.Seq, of: rec.Type})
	s.size += int64(len(line))
	return nil
}

// counts tells whether something ends with an event of that type, or a run begins, which may
// run calls that were suspended.
func counts(of agentkernel.EventType) bool {
	switch of {
	case agentkernel.EventAgentStart, agentkernel.EventMessageEnd, agentkernel.EventToolExecEnd, agentkernel.EventAgentEnd, agentkernel.EventContext:
		return true
	}
	return false
}

// since reads without holding the lock.
func (s *file) since(at uint64, limit int) ([]Record, error) {
	s.mu.Lock()
	from := min(at, uint64(len(s.index)))
	places := s.index[from:min(uint64(len(s.index)), from+uint64(max(limit, 0)))]
	s.mu.Unlock()
	places = places[:batch(places)]
	switch {
	case len(places) == 0:
		return nil, nil
	case places[0].length > batchBytes: // then it is alone
		rec, err := s.readLarge(from+1, places[0])
		if err != nil {
			return nil, err
		}
		return []Record{rec}, nil
	}
	first, last := places[0], places[len(places)-1]
	all := make([]byte, last.offset+int64(last.length)-first.offset)
	if err := s.read(all, first.offset); err != nil {
		return nil, err
	}
	records := make([]Record, len(places))
	for i, p := range places {
		begin := p.offset - first.offset
		end := begin + int64(p.length)
		records[i] = p.record(from+uint64(i)+1, all[begin:end:end])
	}
	return records, nil
}

func (p *place) record(at uint64, data []byte) Record {
	return Record{At: at, RunID: p.runID, Seq: p.seq, Type: p.of, Data: data}
}

// readLarge is the record at, which is p, from memory where that still has it.
func (s *file) readLarge(at uint64, p place) (Record, error) {
	if rec := s.recall(at); rec.At == at {
		return rec, nil
	}
	data := make([]byte, p.length)
	if err := s.read(data, p.offset); err != nil {
		return Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := p.record(at, data)
	s.large[s.next] = rec
	s.next = (s.next + 1) % len(s.large)
	return rec, nil
}

// recall is the record at, or none.
func (s *file) recall(at uint64) (rec Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.large {
		if s.large[i].At == at {
			return s.large[i]
		}
	}
	return rec
}

// read reads what was written, also where f is closed.
func (s *file) read(p []byte, offset int64) error {
	if _, err := s.f.ReadAt(p, offset); !errors.Is(err, os.ErrClosed) {
		return err
	}
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !os.SameFile(info, s.info) {
		return errors.Join(err, fmt.Errorf("journal: %s is another file now", s.path))
	}
	_, err = f.ReadAt(p, offset)
	return err
}

// batchBytes bounds what is read at once, which is what each reader that stalls holds.
const batchBytes = 64 << 10

// batch is how many places are read at once: as many as fit in batchBytes, but one at least.
func batch(places []place) int {
	for i, p := range places {
		if i > 0 && p.offset+int64(p.length)-places[0].offset > batchBytes {
			return i
		}
	}
	return len(places)
}

func (s *file) find(runID string, seq uint64) (uint64, bool) {
	s.mu.Lock()
	index := s.index // places that are there are never changed
	s.mu.Unlock()
	for i := len(index) - 1; i >= 0; i-- {
		if p := &index[i]; p.seq == seq && p.runID == runID && p.of != agentkernel.EventSnapshot {
			return uint64(i) + 1, true
		}
	}
	return 0, false
}

func (s *file) start() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func (s *file) oldest() uint64 { return 0 }

func (s *file) close() error { return s.f.Close() }
