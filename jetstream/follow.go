package jetstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync"

	"github.com/agentkernel-go/agentkernel"
	broker "github.com/nats-io/nats.go/jetstream"
)

// Follower reads the events of one session. Events is for one goroutine; the other methods are
// for any.
type Follower struct {
	b       *bus
	session string

	// Of the goroutine that ranges over Events.
	dec  *agentkernel.Decoder
	lost bool         // events are missing: wait for a batch to begin with
	mute placeOfEvent // up to which the caller has the events
	seen mark         // the last event that was decoded
	// claim is the last one behind which a worker wrote events. What those before it write is void.
	claim uint64

	mu    sync.Mutex
	place placeOfEvent
	state agentkernel.AgentState
}

// mark is an event of a run.
type mark struct {
	runID string
	seq   uint64
}

// placeOfEvent is behind the n-th record of a batch. The zero value is none.
type placeOfEvent struct {
	batch uint64
	n     int
}

func (p placeOfEvent) after(q placeOfEvent) bool {
	return p.batch > q.batch || p.batch == q.batch && p.n > q.n
}

func (p placeOfEvent) String() string {
	if p.batch == 0 {
		return ""
	}
	return fmt.Sprintf("%d.%d", p.batch, p.n)
}

func parsePlace(text string) (p placeOfEvent, err error) {
	if text == "" {
		return p, nil
	}
	if n, err := fmt.Sscanf(text, "%d.%d", &p.batch, &p.n); n != 2 || err != nil || p.batch == 0 || p.n < 1 || p.String() != text {
		return p, fmt.Errorf("jetstream: %.40q is no place of an event", text)
	}
	return p, nil
}

// Follow returns a Follower that begins behind the place from, which [Follower.Place] told; empty
// is now. It reads nothing before Events is called.
func (c *Client) Follow(session, from string) (*Follower, error) {
	at, err := parsePlace(from)
	if err := errors.Join(checkSession(session), err); err != nil {
		return nil, err
	}
	return &Follower{b: c.bus, session: session, place: at}, nil
}

// Place is behind the last event that Events yielded: where another Follower goes on, in any
// process. Empty means that there was none.
func (f *Follower) Place() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.place.String()
}

// State is the session's state behind the last event that Events yielded.
func (f *Follower) State() agentkernel.AgentState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// Events yields the events behind the Follower's place, rebuilt and whole, and waits for more. It
// ends with ctx, without an error, or with the first error: a session whose records cannot be
// read. A broker that does not answer is waited for.
//
// An event of type [agentkernel.EventSnapshot] means: State was taken anew, and what comes follows
// it. It is the first event, unless the place is known and kept; and it stands where events are
// missing, above all those that a worker which died did not write, and before a run that begins with
// another history than the last one ended with, such as one that a ContextManager cut. A run that was
// open then never ends: a checker, or a screen, begins anew with State.
//
// Without a place it begins with the state before the run that is active, or was the last, and its
// events; in the middle of a long one, with a state of that. It may be ranged over again, and
// goes on.
func (f *Follower) Events(ctx context.Context) iter.Seq2[agentkernel.Event, error] {
	return func(yield func(agentkernel.Event, error) bool) {
		seq, err := f.begin(ctx, yield)
		if err != nil || seq == 0 {
			f.report(ctx, err, yield)
			return
		}
		for msg := range f.b.tail(ctx, streamEvents, f.b.cfg.subject(streamEvents, f.session), seq, false) {
			meta, err := msg.Metadata()
			if err != nil {
				continue // it did not come from a stream
			}
			goOn, err := f.batch(ctx, msg, meta.Sequence.Stream, yield)
			if err != nil {
				f.report(ctx, err, yield)
				return
			}
			if !goOn {
				return
			}
		}
	}
}

func (f *Follower) report(ctx context.Context, err error, yield func(agentkernel.Event, error) bool) {
	if err != nil && ctx.Err() == nil {
		yield(agentkernel.Event{}, err)
	}
}

// begin finds the batch to begin with; 0 where the caller has seen enough.
func (f *Follower) begin(ctx context.Context, yield func(agentkernel.Event, error) bool) (uint64, error) {
	f.dec, f.lost, f.seen, f.mute, f.claim = nil, false, mark{}, placeOfEvent{}, 0
	if from := f.place; from.batch != 0 {
		start, err := f.startOf(ctx, from.batch)
		if err != nil {
			return 0, err
		}
		if start != 0 {
			f.mute = from
			return start, nil
		}
	}
	last, err := f.last(ctx)
	if err != nil {
		return 0, err
	}
	if last != nil {
		start, err := f.startOf(ctx, last.Sequence)
		if start != 0 || err != nil {
			return start, err
		}
	}
	t, err := f.load(ctx, 0)
	if err != nil {
		return 0, err
	}
	seq := uint64(1)
	if last != nil { // its beginning is not kept any more
		seq, f.lost = last.Sequence+1, true
	} else {
		if last, err = f.last(ctx); err != nil {
			return 0, err
		}
		if last != nil { // a run began in the meantime
			return f.begin(ctx, yield)
		}
		t.messages = t.messages[:t.settled] // the events of the others will come
	}
	if !f.restore(t, yield) {
		return 0, nil
	}
	return seq, nil
}

// last is the session's last batch, nil where there is none.
func (f *Follower) last(ctx context.Context) (msg *broker.RawStreamMsg, err error) {
	err = f.b.patient(ctx, func(ctx context.Context) (err error) {
		msg, err = f.b.last(ctx, streamEvents, f.b.cfg.subject(streamEvents, f.session))
		return err
	})
	return msg, err
}

// load reads the session's records before the place claim; 0 is all.
func (f *Follower) load(ctx context.Context, claim uint64) (t *truth, err error) {
	err = f.b.patient(ctx, func(ctx context.Context) (err error) {
		t, err = f.b.load(ctx, f.session, claim)
		return err
	})
	return t, err
}

// startOf is the batch with which a reader of the batch at must begin; 0 where it is not kept.
func (f *Follower) startOf(ctx context.Context, at uint64) (start uint64, err error) {
	subject := f.b.cfg.subject(streamEvents, f.session)
	get := func(at uint64) (msg *broker.RawStreamMsg, err error) {
		err = f.b.patient(ctx, func(ctx context.Context) (err error) {
			msg, err = f.b.next(ctx, streamEvents, subject, at)
			return err
		})
		return msg, err
	}
	msg, err := get(at)
	if err != nil || msg == nil || msg.Sequence != at {
		return 0, err
	}
	text := msg.Header.Get(headerStart)
	if text == "" {
		return at, nil
	}
	start, err = strconv.ParseUint(text, 10, 64)
	if err != nil || start == 0 || start >= at {
		return 0, nil
	}
	msg, err = get(start)
	if err != nil || msg == nil || msg.Sequence != start {
		return 0, err
	}
	return start, nil
}

// restore takes the state from the session's records, and tells so. It reports whether to go on.
func (f *Follower) restore(t *truth, yield func(agentkernel.Event, error) bool) bool {
	f.dec, f.seen = agentkernel.NewDecoder(t.state()), mark{}
	if f.mute.batch != 0 {
		return true // the caller knows
	}
	f.tell(placeOfEvent{})
	return yield(agentkernel.Event{Type: agentkernel.EventSnapshot}, nil)
}

// tell makes the state that of the decoder, and the place at, where that is one.
func (f *Follower) tell(at placeOfEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = f.dec.State()
	if at.batch != 0 {
		f.place = at
	}
}

// batch yields the events of a batch. It reports whether to go on.
func (f *Follower) batch(ctx context.Context, msg broker.Msg, at uint64, yield func(agentkernel.Event, error) bool) (bool, error) {
	head := msg.Headers()
	by := claimOf(head)
	if by < f.claim {
		return true, nil // of a worker that was thought dead
	}
	f.claim = by
	if claim, err := strconv.ParseUint(head.Get(headerClaim), 10, 64); err == nil && f.mustRestore(head.Get(headerCount), head.Get(headerTakeover)) {
		t, err := f.load(ctx, claim)
		if err != nil || !f.restore(t, yield) {
			return false, err
		}
	}
	if head.Get(headerStart) == "" {
		f.lost = false
	}
	if f.dec == nil {
		f.dec = new(agentkernel.Decoder)
	}
	for i, data := range bytes.Split(msg.Data(), []byte("\n")) {
		if f.lost {
			return true, nil
		}
		if !f.record(placeOfEvent{at, i + 1}, data, yield) {
			return false, nil
		}
	}
	return true, nil
}

// mustRestore tells whether the state with which a run begins is another than what the events
// so far add up to.
func (f *Follower) mustRestore(count, takeover string) bool {
	return f.dec == nil || f.lost || takeover != "" || count != strconv.Itoa(len(f.dec.State().Messages))
}

// record yields the event of a record. It reports whether to go on.
func (f *Follower) record(at placeOfEvent, data []byte, yield func(agentkernel.Event, error) bool) bool {
	ev, err := f.dec.Decode(data)
	if err != nil {
		if !errors.Is(err, agentkernel.WireDuplicate) {
			f.lost, f.mute = true, placeOfEvent{}
		}
		return true
	}
	now := mark{ev.RunID, ev.Seq}
	known := ev.Type == agentkernel.EventSnapshot && f.seen == now && now.runID != ""
	f.seen = now
	if known || !at.after(f.mute) {
		if at == f.mute {
			f.tell(at)
			f.mute = placeOfEvent{}
		}
		return true
	}
	f.tell(at)
	return yield(ev, nil)
}

// patient is for reads: it tries until ctx ends.
func (b *bus) patient(ctx context.Context, try func(context.Context) error) error {
	for {
		if err := b.retry(ctx, try); err == nil || ctx.Err() != nil || !errors.Is(err, ErrUnavailable) {
			return err
		}
	}
}
