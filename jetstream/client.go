package jetstream

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentkernel-go/agentkernel"
	"github.com/nats-io/nats.go"
	broker "github.com/nats-io/nats.go/jetstream"
)

// Client talks to sessions, wherever they run. Its methods may be called from any goroutine.
// One that writes tries until its context ends, or for [Config.PublishWait].
type Client struct{ *bus }

// NewClient returns a client. Setup must have made the streams before it is used.
func NewClient(nc *nats.Conn, cfg Config) (*Client, error) {
	b, err := newBus(nc, cfg)
	if err != nil {
		return nil, err
	}
	return &Client{b}, nil
}

// Submit puts a request into the queue, from which a worker takes it, and returns its id. When it
// returns, the request will be answered, whatever dies. A session comes into being with its first
// one, and answers its requests one after the other, in the order in which they were taken.
func (c *Client) Submit(ctx context.Context, session string, req Request) (id string, err error) {
	if id = req.ID; id == "" {
		id = rand.Text()
	}
	if err := errors.Join(checkSession(session), checkID(id)); err != nil {
		return "", err
	}
	if strings.HasPrefix(id, resumePrefix) {
		return "", fmt.Errorf("jetstream: ids of requests that begin with %s are the package's own", resumePrefix)
	}
	return id, c.submit(ctx, session, id, req.Messages)
}

// submit puts a request into the queue.
func (b *bus) submit(ctx context.Context, session, id string, messages []agentkernel.AgentMessage) error {
	data, err := sayData(messages)
	if err != nil {
		return err
	}
	msg := message(b.cfg.subject(streamWork, session), data, headerRequest, id)
	_, err = b.publish(ctx, streamWork, msg, token(session)+"."+id, anywhere)
	return err
}

func checkID(id string) error {
	if len(id) > 128 || !plain(id) {
		return fmt.Errorf("jetstream: the id %.60q of a request: at most 128 letters, digits, - and _", id)
	}
	return nil
}

// Steer says something to the session's run at its next chance; FollowUp where it would stop.
// Where none runs, the next one takes it, within [Config.ControlAge]. It is said once, whatever
// dies, and also where the run that took it does.
func (c *Client) Steer(ctx context.Context, session string, messages ...agentkernel.AgentMessage) error {
	return c.control(ctx, session, controlSteer, messages)
}

// FollowUp is Steer for where the run would stop.
func (c *Client) FollowUp(ctx context.Context, session string, messages ...agentkernel.AgentMessage) error {
	return c.control(ctx, session, controlFollowUp, messages)
}

// Abort ends what was submitted to the session before: the request that runs, and those that
// wait, as the broker's clock tells. It does not wait for the end; see Wait. The Outcome of each has the
// Reason EndAborted. That of a request whose run was stopped has the kind "canceled"; one that still waited has
// no error, and its messages are not said.
func (c *Client) Abort(ctx context.Context, session string) error {
	return c.control(ctx, session, controlAbort, nil)
}

func (c *Client) control(ctx context.Context, session, kind string, messages []agentkernel.AgentMessage) error {
	if err := checkSession(session); err != nil {
		return err
	}
	if len(messages) == 0 && kind != controlAbort {
		return agentkernel.ErrNoMessages
	}
	data, err := sayData(messages)
	if err != nil {
		return err
	}
	msg := message(c.cfg.subject(streamControl, session), data, headerKind, kind)
	if _, err := c.publish(ctx, streamControl, msg, rand.Text(), anywhere); err != nil {
		return err
	}
	c.nudge(session)
	return nil
}

// Wait waits until a request is answered, and returns how. Its error is ctx's, or that of the
// broker; how the request went is in the Outcome.
func (c *Client) Wait(ctx context.Context, session, id string) (Outcome, error) {
	if err := errors.Join(checkSession(session), checkID(id)); err != nil {
		return Outcome{}, err
	}
	subject := c.cfg.subject(streamSessions, session)
	for msg := range c.tail(ctx, streamSessions, subject, 1, true) {
		if msg.Headers().Get(headerKind) != kindEnd || msg.Headers().Get(headerRequest) != id {
			continue
		}
		meta, err := msg.Metadata()
		if err != nil {
			return Outcome{}, err
		}
		whole, err := c.next(ctx, streamSessions, subject, meta.Sequence.Stream)
		if err != nil {
			return Outcome{}, err
		}
		if whole == nil {
			return Outcome{}, fmt.Errorf("jetstream: the outcome of request %q was removed", id)
		}
		var o Outcome
		err = json.Unmarshal(whole.Data, &o)
		return o, err
	}
	return Outcome{}, context.Cause(ctx)
}

// History returns the session's messages: those that were committed, in their order. It is empty
// for one that is not there.
func (c *Client) History(ctx context.Context, session string) ([]agentkernel.AgentMessage, error) {
	if err := checkSession(session); err != nil {
		return nil, err
	}
	t, err := c.load(ctx, session, 0)
	if err != nil {
		return nil, err
	}
	return t.messages, nil
}

// SessionInfo is a session in a list.
type SessionInfo struct {
	ID string
	// Records is the number of its records: messages, claims and ends.
	Records uint64
}

// Sessions returns the sessions that were worked on, by their ids.
func (c *Client) Sessions(ctx context.Context) ([]SessionInfo, error) {
	var subjects map[string]uint64
	err := c.retry(ctx, func(ctx context.Context) error {
		s, err := c.js.Stream(ctx, c.cfg.stream(streamSessions))
		if err != nil {
			return err
		}
		info, err := s.Info(ctx, broker.WithSubjectFilter(">"))
		if err == nil {
			subjects = info.State.Subjects
		}
		return err
	})
	var out []SessionInfo
	for subject, n := range subjects {
		if id, ok := sessionOf(subject); ok {
			out = append(out, SessionInfo{id, n})
		}
	}
	slices.SortFunc(out, func(a, b SessionInfo) int { return cmp.Compare(a.ID, b.ID) })
	return out, err
}
