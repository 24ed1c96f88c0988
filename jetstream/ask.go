package jetstream

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentkernel-go/agentkernel"
	broker "github.com/nats-io/nats.go/jetstream"
)

// The kinds of the records of a call that waits for a person: one question, and behind it at most
// one of the others.
const (
	kindQuestion  = "question"
	kindAnswer    = "answer"
	kindWithdrawn = "withdrawn"
)

// resumePrefix begins the ids of requests that go on with an answer.
const resumePrefix = "_resume-"

// headerResume is on the answer to a call that no run waits for.
const headerResume = "Ak-Resume"

// Question is a call that waits for a person's answer.
type Question struct {
	// Call is its id, Tool and Args what it would do, Label that in words.
	Call  string          `json:"call"`
	Tool  string          `json:"tool"`
	Args  json.RawMessage `json:"args,omitempty"`
	Label string          `json:"label,omitempty"`
	// Text is what the gate said.
	Text string `json:"text,omitempty"`
	// Suspended: no run waits for the answer, which begins one.
	Suspended bool `json:"suspended,omitempty"`
	// Time is when it was asked, by the broker's clock.
	Time time.Time `json:"-"`
}

// answer is a decision as a record.
type answer struct {
	Allow  bool            `json:"allow"`
	Reason string          `json:"reason,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`
}

// errNoAsk is what Ask says where nobody can be asked.
var errNoAsk = errors.New("jetstream: Ask needs the context that a worker's run gave to its gate")

// Ask asks the session's clients about a call, and waits for the first answer: for a gate of a
// worker's run, with the context and the request that it got. It is for answers that come soon; a
// gate that returns [agentkernel.Suspend] instead asks too, and nothing waits: see
// [Client.Answer]. A question that was asked before the run changed hands is not asked again; one
// that was answered meanwhile is answered. It ends with ctx, and with [WorkerConfig.AskWait].
func Ask(ctx context.Context, req agentkernel.GateRequest, text string) (agentkernel.GateDecision, error) {
	r, ok := ctx.Value(runKey{}).(*run)
	if !ok {
		return agentkernel.GateDecision{}, errNoAsk
	}
	subject := r.askSubject(r.session, req.Call.ID)
	asked, err := r.question(ctx, subject, Question{Call: req.Call.ID, Tool: req.Call.Name, Args: req.Call.Args,
		Label: req.Label, Text: text})
	if err != nil {
		return agentkernel.GateDecision{}, err
	}
	wait := ctx
	if limit := r.Worker.cfg.AskWait; limit > 0 {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("nobody answered within %v", limit))
		defer cancel()
	}
	decision, err := r.answer(wait, subject, asked)
	if err != nil && !errors.Is(context.Cause(ctx), errHandOver) {
		over, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptTime)
		defer cancel()
		r.withdraw(over, subject, asked)
	}
	return decision, err
}

// withdraw makes a question one that nobody can answer. Where that fails, an answer changes nothing.
func (r *run) withdraw(ctx context.Context, subject string, asked uint64) {
	msg := message(subject, nil, headerKind, kindWithdrawn)
	_, _ = r.publish(ctx, streamAsks, msg, fmt.Sprintf("%s.%d.w", subject, asked), asked)
}

// forgotten are the places of what a worker asked that died, by subject, where nothing of it is
// waiting.
func (r *run) forgotten(ctx context.Context, waiting []agentkernel.Suspension) map[string]uint64 {
	found := make(map[string]uint64)
	for msg, err := range r.records(ctx, streamAsks, r.bus.cfg.subject(streamAsks, r.session)+".*", 1) {
		if err != nil {
			break
		}
		if msg.Header.Get(headerKind) == kindQuestion && !r.asks(msg.Subject, waiting) {
			found[msg.Subject] = msg.Sequence
		}
	}
	return found
}

func (b *bus) askSubject(session, call string) string {
	return b.cfg.subject(streamAsks, session) + "." + token(call)
}

// asks tells whether one of the calls that wait is asked about on the subject.
func (r *run) asks(subject string, waiting []agentkernel.Suspension) bool {
	return slices.ContainsFunc(waiting, func(s agentkernel.Suspension) bool {
		return r.askSubject(r.session, s.Call.ID) == subject
	})
}

// question makes sure that the question is asked, and returns its place. One that an earlier
// worker, or the same gate, asked stands, with the answer that it has. One that was withdrawn is
// asked anew, and so is one that is waited for in another way now.
func (r *run) question(ctx context.Context, subject string, q Question) (uint64, error) {
	data, err := json.Marshal(q)
	if err != nil {
		return 0, err
	}
	for after := uint64(0); ; {
		id := fmt.Sprintf("%s.%d.q", subject, after)
		at, err := r.publish(ctx, streamAsks, message(subject, data, headerKind, kindQuestion), id, after)
		if err == nil {
			r.bus.nudge(r.session)
			return at, nil
		}
		if !errors.Is(err, ErrFenced) {
			return 0, err
		}
		asked, last, err := r.asked(ctx, subject)
		switch {
		case err != nil:
			return 0, err
		case last == nil: // too old to be kept
			after = 0
		case last.Header.Get(headerKind) == kindAnswer:
			if q.Suspended {
				return asked, r.resume(ctx, r.session, last) // nobody waited for it
			}
			return asked, nil
		case last.Header.Get(headerKind) == kindQuestion && suspends(last) == q.Suspended:
			return asked, nil
		default:
			after = last.Sequence
		}
	}
}

// asked finds the place of a call's last question, and the last record about the call.
func (b *bus) asked(ctx context.Context, subject string) (at uint64, last *broker.RawStreamMsg, err error) {
	for msg, err := range b.records(ctx, streamAsks, subject, 1) {
		if err != nil {
			return 0, nil, err
		}
		if last = msg; msg.Header.Get(headerKind) == kindQuestion {
			at = msg.Sequence
		}
	}
	return at, last, nil
}

// suspends tells whether no run waits for the answer to a question.
func suspends(question *broker.RawStreamMsg) bool {
	var q Question
	return json.Unmarshal(question.Data, &q) == nil && q.Suspended
}

// answer waits for what follows the question.
func (r *run) answer(ctx context.Context, subject string, asked uint64) (d agentkernel.GateDecision, err error) {
	nudged, stop := r.nudges(r.session)
	defer stop()
	every := time.NewTicker(min(r.bus.cfg.AckWait/3, 5*time.Second))
	defer every.Stop()
	for {
		msg, err := r.next(ctx, streamAsks, subject, asked+1)
		switch {
		case ctx.Err() != nil:
			return d, context.Cause(ctx)
		case err != nil && !errors.Is(err, ErrUnavailable):
			return d, err
		case err == nil && msg != nil && msg.Header.Get(headerKind) == kindAnswer:
			var a answer
			err := json.Unmarshal(msg.Data, &a)
			return agentkernel.GateDecision{Allow: a.Allow, Reason: a.Reason, Args: a.Args}, err
		case err == nil && msg != nil:
			return d, ErrNotAsked
		}
		select {
		case <-ctx.Done():
			return d, context.Cause(ctx)
		case <-nudged:
		case <-every.C:
		}
	}
}

// Questions returns the calls of a session that wait for an answer, in the order in which they
// were asked.
func (c *Client) Questions(ctx context.Context, session string) ([]Question, error) {
	if err := checkSession(session); err != nil {
		return nil, err
	}
	var open []Question
	for msg, err := range c.records(ctx, streamAsks, c.cfg.subject(streamAsks, session)+".*", 1) {
		if err != nil {
			return nil, err
		}
		if msg.Header.Get(headerKind) != kindQuestion {
			continue
		}
		last, err := c.lastAsk(ctx, msg.Subject)
		if err != nil {
			return nil, err
		}
		q := Question{Time: msg.Time}
		if last == nil || last.Sequence != msg.Sequence || json.Unmarshal(msg.Data, &q) != nil {
			continue
		}
		open = append(open, q)
	}
	return open, nil
}

func (c *Client) lastAsk(ctx context.Context, subject string) (last *broker.RawStreamMsg, err error) {
	err = c.retry(ctx, func(ctx context.Context) (err error) {
		last, err = c.last(ctx, streamAsks, subject)
		return err
	})
	return last, err
}

// Answer answers the call of a session that waits for it. Of several answers the first counts;
// the others are [ErrAnswered]. Where the run ended as suspended the answer is a request of its
// own, which goes on with the call, on any worker, hours later. Answer does not wait for that and
// does not tell its id: a [Follower] shows the run, and [Client.History] what came of it. A call
// that does not wait is [ErrNotAsked]: it was withdrawn, or never asked about, such as one behind
// a call that is suspended, which is asked about once that one is answered.
func (c *Client) Answer(ctx context.Context, session, call string, d agentkernel.GateDecision) error {
	if err := checkSession(session); err != nil {
		return err
	}
	data, err := json.Marshal(answer(d))
	if err != nil {
		return fmt.Errorf("jetstream: %w", err)
	}
	subject := c.askSubject(session, call)
	for {
		last, err := c.lastAsk(ctx, subject)
		switch {
		case err != nil:
			return err
		case last == nil || last.Header.Get(headerKind) == kindWithdrawn:
			return ErrNotAsked
		case last.Header.Get(headerKind) == kindAnswer:
			// Whoever gave it may have died before the next line.
			if last.Header.Get(headerResume) == "" {
				return ErrAnswered
			}
			return errors.Join(ErrAnswered, c.resume(ctx, session, last))
		}
		msg := message(subject, data, headerKind, kindAnswer)
		if suspends(last) {
			msg.Header.Set(headerResume, "1")
		}
		at, err := c.publish(ctx, streamAsks, msg, rand.Text(), last.Sequence)
		if errors.Is(err, ErrFenced) {
			continue // something else is the last word now
		} else if err != nil {
			return err
		}
		c.nudge(session)
		if !suspends(last) {
			return nil
		}
		return c.resume(ctx, session, &broker.RawStreamMsg{Sequence: at, Header: msg.Header})
	}
}

// resume submits the request that goes on with an answer, once.
func (b *bus) resume(ctx context.Context, session string, answer *broker.RawStreamMsg) error {
	return b.submit(ctx, session, fmt.Sprintf("%s%d", resumePrefix, answer.Sequence), nil)
}

// suspend notes what a run left open that ended as suspended, and asks what is to be asked.
func (r *run) suspend(ctx context.Context, left []agentkernel.Suspension) error {
	if len(left) == 0 {
		return nil
	}
	data, err := json.Marshal(left)
	if err != nil {
		return err
	}
	if err := r.append(ctx, data, headerKind, kindSuspended); err != nil {
		return err
	}
	for _, s := range left {
		if s.Ask == nil {
			continue
		}
		args := s.Args
		if args == nil {
			args = s.Call.Args
		}
		_, err := r.question(ctx, r.askSubject(r.session, s.Call.ID), Question{Call: s.Call.ID, Tool: s.Call.Name,
			Args: args, Label: s.Label, Text: s.Ask.Text, Suspended: true})
		if err != nil {
			return err
		}
	}
	return nil
}

// resumption is what the run is told of the calls that the one before left open, with the answers
// that there are. It is nil where there are none.
func (r *run) resumption(ctx context.Context) (*agentkernel.Resumption, error) {
	if len(r.truth.suspended) == 0 {
		return nil, nil
	}
	out := &agentkernel.Resumption{Suspended: r.truth.suspended, Answers: make(map[string]agentkernel.GateDecision)}
	for _, s := range r.truth.suspended {
		for msg, err := range r.records(ctx, streamAsks, r.askSubject(r.session, s.Call.ID), 1) {
			if err != nil {
				return nil, err
			}
			var a answer
			if msg.Header.Get(headerKind) == kindAnswer && json.Unmarshal(msg.Data, &a) == nil {
				out.Answers[s.Call.ID] = agentkernel.GateDecision(a)
			}
		}
	}
	return out, nil
}

// withdrawOthers withdraws what was asked about calls that no longer wait.
func (r *run) withdrawOthers(ctx context.Context, waiting []agentkernel.Suspension) {
	for _, s := range r.truth.suspended {
		if slices.ContainsFunc(waiting, func(w agentkernel.Suspension) bool { return w.Call.ID == s.Call.ID }) {
			continue
		}
		subject := r.askSubject(r.session, s.Call.ID)
		if at, _, err := r.asked(ctx, subject); err == nil && at != 0 {
			r.withdraw(ctx, subject, at) // refused where it was answered
		}
	}
}
