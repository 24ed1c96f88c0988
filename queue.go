package agentkernel

import (
	"slices"
	"sync"
)

// QueueMode is how much of a queue is taken at once.
type QueueMode string

// The modes of a queue.
const (
	QueueAll        QueueMode = "" // everything that waits
	QueueOneAtATime QueueMode = "one_at_a_time"
)

// Queue holds messages for a run to take: Config.Steering, Config.FollowUps. The zero value
// is an empty queue. Its methods may be called from any goroutine.
//
// A run leases what it takes: an item leaves the queue when its MessageEnd is delivered, and
// stays where the run ends before that. Two runs that share a queue never take the same item.
type Queue struct {
	// Mode is how much is taken at once. It must not be changed once the queue is in use.
	Mode QueueMode

	mu    sync.Mutex
	items []*queued
	// pushed is closed by the next Push; nil where nobody waits for it.
	pushed chan struct{}
}

// queued is one item. Its run settles it or gives it back.
type queued struct {
	queue   *Queue
	message AgentMessage
	leased  bool
}

// Push appends messages: the kernel's of role user, or the harness's own. It takes all or,
// with an error of kind "invalid_request", none.
func (q *Queue) Push(messages ...AgentMessage) error {
	own, err := asPrompts("queue", messages)
	if err != nil {
		return err
	}
	q.push(own)
	return nil
}

// push appends messages that asPrompts returned.
func (q *Queue) push(own []AgentMessage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(own) == 0 {
		return
	}
	for _, m := range own {
		q.items = append(q.items, &queued{queue: q, message: m})
	}
	q.wake()
}

func (q *Queue) wake() {
	if q.pushed != nil {
		close(q.pushed)
		q.pushed = nil
	}
}

// Items returns what is in the queue, in order, leased items included.
func (q *Queue) Items() []AgentMessage {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := make([]AgentMessage, len(q.items))
	for i, item := range q.items {
		out[i] = item.message
	}
	return out
}

// Remove takes out what matches and no run has leased, and returns it. match is called
// without a lock, once for each item that was in the queue when Remove was called.
func (q *Queue) Remove(match func(AgentMessage) bool) []AgentMessage {
	q.mu.Lock()
	items := slices.Clone(q.items)
	q.mu.Unlock()
	items = slices.DeleteFunc(items, func(item *queued) bool { return !match(item.message) })

	q.mu.Lock()
	defer q.mu.Unlock()
	var removed []AgentMessage
	for _, item := range items {
		if i := slices.Index(q.items, item); i >= 0 && !item.leased {
			q.items = slices.Delete(q.items, i, i+1)
			removed = append(removed, item.message)
		}
	}
	return removed
}

// Clear takes out all that no run has leased, and returns it.
func (q *Queue) Clear() []AgentMessage {
	return q.Remove(func(AgentMessage) bool { return true })
}

// lease takes the next items for a run. A nil queue has none.
func (q *Queue) lease() []*queued {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []*queued
	for _, item := range q.items {
		if item.leased {
			continue
		}
		item.leased = true
		out = append(out, item)
		if q.Mode == QueueOneAtATime {
			break
		}
	}
	return out
}

// arrived returns a channel that is closed once something waits that is not leased. A nil
// queue returns nil.
func (q *Queue) arrived() <-chan struct{} {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.pushed == nil {
		q.pushed = make(chan struct{})
	}
	pushed := q.pushed
	if q.free() {
		q.wake()
	}
	return pushed
}

// waiting tells whether something waits that is not leased.
func (q *Queue) waiting() bool {
	if q == nil {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.free()
}

func (q *Queue) free() bool {
	return slices.ContainsFunc(q.items, func(item *queued) bool { return !item.leased })
}

// settle takes the item out for good: its message has ended.
func (item *queued) settle() {
	q := item.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.items, item); i >= 0 {
		q.items = slices.Delete(q.items, i, i+1)
	}
}

// giveBack ends the lease without the message having ended.
func (item *queued) giveBack() {
	q := item.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	item.leased = false
	q.wake()
}

// ledger remembers which events of a run end a queued item's message, until they are delivered.
type ledger struct {
	mu    sync.Mutex
	items map[uint64]*queued
}

// expect notes that the event seq will end item's message; a nil item is none.
func (l *ledger) expect(seq uint64, item *queued) {
	if item == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.items == nil {
		l.items = make(map[uint64]*queued)
	}
	l.items[seq] = item
}

// delivered settles the item whose message the event seq ended, if it ended one.
func (l *ledger) delivered(seq uint64) {
	l.mu.Lock()
	item := l.items[seq]
	delete(l.items, seq)
	l.mu.Unlock()
	if item != nil {
		item.settle()
	}
}
