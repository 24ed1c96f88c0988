package jetstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/nats-io/nats.go"
	broker "github.com/nats-io/nats.go/jetstream"
)

// Headers of a batch of events.
const (
	// headerStart is the place of the batch with which a reader of this one must begin. A batch
	// without it is one to begin with.
	headerStart = "Ak-Start"
	// headerClaim is on a batch that begins a run: the place of the claim. What the session's
	// records before it add up to is the state to begin with, and headerCount the number of
	// their messages. Without it a batch to begin with begins with a snapshot.
	headerClaim = "Ak-Claim"
	headerCount = "Ak-Count"
	// headerTakeover is on a batch behind which a run died.
	headerTakeover = "Ak-Takeover"
)

const (
	maxBatch      = 128 << 10 // bytes of a batch, where its first record is not larger
	maxWaiting    = 4 << 20   // bytes of records that wait; then the run does
	snapshotEvery = 1024      // the least number of records between two snapshots
)

// pump brings the events of one run onto its session's subject: in order, in batches of what
// came meanwhile, each once, and none behind those of a worker that took over.
type pump struct {
	b        *bus
	interval time.Duration // between two batches, where the first is not full
	subject  string
	claim    uint64
	first    []string // headers of the first batch
	enc      *agentkernel.Encoder
	// records and bytes since the last snapshot, and its size, decide when the next is due.
	records, bytes, snapshotBytes int

	mu      sync.Mutex
	changed chan struct{} // closed by the next change
	waiting []record
	size    int
	lost    bool // records are missing: the next one must be a snapshot
	dead    bool // another worker writes
	closed  bool
	mended  bool // a snapshot stands for what was lost last

	done chan struct{} // closed when run has returned
}

// record is one line of a batch.
type record struct {
	data []byte
	// start: a reader may begin here; headers are then on the batch.
	start   bool
	headers []string
}

// newPump returns the pump of a run that begins behind the claim with t as its history.
func newPump(b *bus, session string, claim uint64, t *truth, takeover bool, interval time.Duration) *pump {
	p := &pump{
		b: b, interval: interval, subject: b.cfg.subject(streamEvents, session), claim: claim, enc: agentkernel.NewEncoder(t.state()),
		changed: make(chan struct{}), done: make(chan struct{}), snapshotBytes: t.bytes,
		first: []string{headerClaim, strconv.FormatUint(claim, 10), headerCount, strconv.Itoa(len(t.messages))},
	}
	if takeover {
		p.first = append(p.first, headerTakeover, "1")
	}
	return p
}

// add takes the next event. It waits while too much waits already; the end of ctx ends that.
func (p *pump) add(ctx context.Context, ev agentkernel.Event) {
	data, err := p.enc.Encode(ev)
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.size > maxWaiting && !p.dead && ctx.Err() == nil {
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		p.mu.Lock()
	}
	if err != nil {
		p.lost = true
	}
	switch {
	case p.dead:
		return
	case p.lost:
		p.snapshot()
		return
	}
	p.put(record{data: data, start: p.first != nil, headers: p.first})
	p.first = nil
	p.records++
	p.bytes += len(data)
	if p.records >= snapshotEvery && p.bytes >= p.snapshotBytes && ev.Type != agentkernel.EventAgentEnd {
		p.snapshot()
	}
}

// snapshot puts one, which stands for all events so far. mu is held.
func (p *pump) snapshot() {
	data, err := p.enc.Snapshot()
	if p.lost = err != nil; p.lost {
		return
	}
	p.first = nil
	p.records, p.bytes, p.snapshotBytes = 0, 0, len(data)
	p.put(record{data: data, start: true})
}

// rest puts a snapshot of a session that is idle.
func (p *pump) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.snapshot()
}

func (p *pump) put(r record) {
	p.waiting = append(p.waiting, r)
	p.size += len(r.data) + 1
	p.wake()
}

func (p *pump) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// close ends the pump and waits until everything is written, or given up.
func (p *pump) close() {
	p.mu.Lock()
	p.closed = true
	p.wake()
	p.mu.Unlock()
	<-p.done
}

// run writes until close or, since nobody looks on then, the end of ctx.
func (p *pump) run(ctx context.Context) {
	defer close(p.done)
	last, err := p.place(ctx)
	if err != nil {
		p.kill()
	}
	start, n := uint64(0), 0
	for batch := p.take(); batch != nil; batch = p.take() {
		msg := message(p.subject, joined(batch), batch[0].headers...)
		if !batch[0].start {
			msg.Header.Set(headerStart, strconv.FormatUint(start, 10))
		}
		n++
		id := batchID(p.subject, p.claim, n)
		at, err := p.b.publish(ctx, streamEvents, msg, id, last)
		for tries := 0; errors.Is(err, ErrFenced) && tries < maxRefusals && p.mine(ctx, &last); tries++ {
			at, err = p.b.publish(ctx, streamEvents, msg, id, last)
		}
		switch {
		case errors.Is(err, ErrFenced), ctx.Err() != nil, errors.Is(err, ErrTooLarge) && batch[0].start:
			p.kill() // who looks on begins anew with the next run
		case err != nil:
			p.lose()
		default:
			if last = at; batch[0].start {
				start = at
			}
		}
		p.pause(ctx)
	}
}

// place is that of the subject's last batch.
func (p *pump) place(ctx context.Context) (seq uint64, err error) {
	err = p.b.retry(ctx, func(ctx context.Context) error {
		msg, err := p.b.last(ctx, streamEvents, p.subject)
		if msg != nil {
			seq = msg.Sequence
		}
		return err
	})
	return seq, err
}

// maxRefusals bounds how often a batch is offered again whose place was taken.
const maxRefusals = 16

// mine tells whether the session's events are still this pump's to write, although another
// batch than its last one stands there: none, since that was too old to be kept, or one of a
// worker before it, which was thought dead and had sent it. It makes last the place to go on
// from. Readers pass such a batch by.
func (p *pump) mine(ctx context.Context, last *uint64) bool {
	msg, err := p.b.last(ctx, streamEvents, p.subject)
	if err != nil {
		return false
	}
	if msg == nil {
		*last = 0
		return true
	}
	claim := claimOf(msg.Header)
	*last = msg.Sequence
	return claim != 0 && claim < p.claim
}

// batchID is what a batch is known by: that of the claim behind which it was written, and its
// number since.
func batchID(subject string, claim uint64, n int) string {
	return fmt.Sprintf("%s.%d.%d", subject, claim, n)
}

// claimOf is the claim behind which a batch was written, 0 where it does not say.
func claimOf(head nats.Header) uint64 {
	id := strings.Split(head.Get(broker.MsgIDHeader), ".")
	claim, err := strconv.ParseUint(id[max(len(id)-2, 0)], 10, 64)
	if err != nil {
		return 0
	}
	return claim
}

// take waits for a batch; nil is the end. Where records are missing at the end of the run, a
// snapshot stands for them, if that can be written.
func (p *pump) take() []record {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.waiting) == 0 {
		if p.closed && p.lost && !p.dead && !p.mended {
			p.mended = true
			p.snapshot()
			continue
		}
		if p.closed || p.dead {
			return nil
		}
		changed := p.changed
		p.mu.Unlock()
		<-changed
		p.mu.Lock()
	}
	n, size := 1, len(p.waiting[0].data)
	for n < len(p.waiting) && !p.waiting[n].start && size+len(p.waiting[n].data) < maxBatch {
		size += len(p.waiting[n].data) + 1
		n++
	}
	batch := p.waiting[:n:n]
	p.waiting = p.waiting[n:]
	for _, r := range batch {
		p.size -= len(r.data) + 1
	}
	p.wake()
	return batch
}

// pause lets more come together.
func (p *pump) pause(ctx context.Context) {
	timer := time.NewTimer(p.interval)
	defer timer.Stop()
	for {
		p.mu.Lock()
		changed, enough := p.changed, p.closed || p.dead || p.size >= maxBatch
		p.mu.Unlock()
		if enough {
			return
		}
		select {
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// kill gives up for good.
func (p *pump) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead, p.waiting, p.size = true, nil, 0
	p.wake()
}

// lose drops what waits: the next event is written as a snapshot.
func (p *pump) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost, p.waiting, p.size = true, nil, 0
	p.wake()
}

func joined(batch []record) []byte {
	lines := make([][]byte, len(batch))
	for i, r := range batch {
		lines[i] = r.data
	}
	return bytes.Join(lines, []byte("\n"))
}
