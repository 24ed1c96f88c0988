package jetstream

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// Config names the streams of one installation and says how they are kept. Setup, workers and
// clients are given the same one.
type Config struct {
	// Name is the prefix of streams and subjects, of letters, digits, - and _. Empty means
	// "agentkernel".
	Name string
	// Replicas is on how many brokers of a cluster everything is kept. Zero means 1.
	Replicas int
	// EventAge is how long events are kept for those who look on. The messages of a session are
	// kept for ever. Zero means 1 h; less than 1 s is refused.
	EventAge time.Duration
	// ControlAge is how long steering and aborts that no run took are kept. Zero means 24 h.
	ControlAge time.Duration
	// AckWait is after how much silence of its worker a request is given to another one. Zero
	// means 30 s; less than 300 ms is refused.
	AckWait time.Duration
	// MaxBytes bounds each stream on disk: what does not fit is refused, [ErrFull], and nothing
	// is dropped for it. Of the events the oldest are dropped. Zero is no bound.
	MaxBytes int64
	// PublishWait is how long a write is tried while the broker does not answer. Zero means
	// 30 s.
	PublishWait time.Duration
}

func (cfg Config) withDefaults() (Config, error) {
	cfg.Name = cmp.Or(cfg.Name, "agentkernel")
	cfg.Replicas = cmp.Or(cfg.Replicas, 1)
	cfg.EventAge = cmp.Or(cfg.EventAge, time.Hour)
	cfg.ControlAge = cmp.Or(cfg.ControlAge, 24*time.Hour)
	cfg.AckWait = cmp.Or(cfg.AckWait, 30*time.Second)
	cfg.PublishWait = cmp.Or(cfg.PublishWait, 30*time.Second)
	switch {
	case !plain(cfg.Name):
		return cfg, fmt.Errorf("jetstream: Name %q: letters, digits, - and _ only", cfg.Name)
	case cfg.Replicas < 0:
		return cfg, fmt.Errorf("jetstream: Replicas is %d", cfg.Replicas)
	case cfg.EventAge < time.Second:
		return cfg, fmt.Errorf("jetstream: EventAge is %v, less than 1s", cfg.EventAge)
	case cfg.ControlAge < time.Second:
		return cfg, fmt.Errorf("jetstream: ControlAge is %v, less than 1s", cfg.ControlAge)
	case cfg.AckWait < 300*time.Millisecond:
		return cfg, fmt.Errorf("jetstream: AckWait is %v, less than 300ms", cfg.AckWait)
	case cfg.MaxBytes < 0 || cfg.PublishWait < 0:
		return cfg, fmt.Errorf("jetstream: MaxBytes is %d and PublishWait %v", cfg.MaxBytes, cfg.PublishWait)
	}
	return cfg, nil
}

// The streams. Each has one subject for each session.
const (
	streamWork     = "WORK"     // requests that no worker has answered
	streamSessions = "SESSIONS" // the truth
	streamEvents   = "EVENTS"   // for the eyes
	streamControl  = "CONTROL"  // steering, follow-ups and aborts that no run has taken
	streamAsks     = "ASKS"     // what waits for a person, and the answers
)

// nudge is the part of a subject without a stream, on which somebody is told to look anew.
const nudge = "NUDGE"

// workers is the durable consumer of the work queue.
const workers = "workers"

func (cfg *Config) stream(part string) string { return cfg.Name + "-" + part }

func (cfg *Config) subject(part, session string) string {
	return cfg.Name + "." + part + "." + token(session)
}

// token is the session's id as a part of a subject: itself, or encoded where it has characters
// that mean something there.
func token(session string) string {
	if plain(session) && len(session) <= 128 {
		return session
	}
	return "=" + base64.RawURLEncoding.EncodeToString([]byte(session))
}

// sessionOf is the session of a subject.
func sessionOf(subject string) (string, bool) {
	t := subject[strings.LastIndexByte(subject, '.')+1:]
	encoded, is := strings.CutPrefix(t, "=")
	if !is {
		return t, plain(t)
	}
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	return string(raw), err == nil
}

func plain(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}) < 0
}

// checkSession refuses what cannot name a session.
func checkSession(session string) error {
	if session == "" || len(session) > 512 {
		return fmt.Errorf("jetstream: a session's id has 1 to 512 bytes, not %d", len(session))
	}
	return nil
}
