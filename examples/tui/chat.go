package main

import (
	"context"
	"errors"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/journal"
)

// What a run that was stopped ends with.
var (
	errUser = errors.New("the user stopped it")
	errQuit = errors.New("the program ends")
)

// eventMsg is an event of the agent, as the screen gets it.
type eventMsg agentkernel.Event

// maxRate is how often a second the screen is told of what streams.
const maxRate = 60

// chat is the agent with its sessions. It knows no screen: whoever shows it is told by send,
// which may be slow: what streams merges while it waits. Except for say, its methods are for
// one goroutine.
type chat struct {
	agent    *agentkernel.Agent
	steering *agentkernel.Queue
	approver *approver
	sessions store
	session  *session
	unfollow func()
	screen   *agentkernel.Subscription
	// lost is what went wrong with the sessions that were left.
	lost error
}

// newChat makes an agent with a new session. It asks before calls that change something.
func newChat(cfg agentkernel.Config, sessions store, send func(msg any)) (*chat, error) {
	c := &chat{steering: new(agentkernel.Queue), approver: &approver{show: send}, sessions: sessions}
	cfg.Steering, cfg.Gate = c.steering, c.approver.gate
	agent, err := agentkernel.NewAgent(cfg)
	if err != nil {
		return nil, err
	}
	c.agent = agent
	c.screen = agent.SubscribeAsync(func(ev agentkernel.Event) { send(eventMsg(ev)) },
		agentkernel.AsyncOptions{Name: "screen", MaxRate: maxRate})
	if c.session, err = sessions.create(time.Now()); err != nil {
		return nil, err
	}
	c.unfollow = journal.Follow(agent, c.session.journal)
	return c, nil
}

// say steers the run that is active, or starts one.
func (c *chat) say(text string) error {
	_, err := c.agent.Inject(context.Background(), agentkernel.UserMessage(text))
	return err
}

// stop aborts the run that is active. What was said to it is not meant for the next one.
func (c *chat) stop() {
	c.agent.Abort(errUser)
	c.steering.Clear()
}

// create goes on with a new session.
func (c *chat) create() error {
	next, err := c.sessions.create(time.Now())
	if err != nil {
		return err
	}
	return c.enter(next, agentkernel.AgentState{})
}

// resume goes on with a stored session. It returns what the screen of that session showed.
func (c *chat) resume(name string) (feed, []block, error) {
	if name == c.session.name {
		return feed{}, nil, errors.New("that is this session")
	}
	next, err := c.sessions.open(name)
	if err != nil {
		return feed{}, nil, err
	}
	f, shown, err := replay(next.journal)
	if err != nil {
		shown = append(shown, block{kind: blockError, text: err.Error()})
	}
	if err := c.enter(next, f.state); err != nil {
		return feed{}, nil, err
	}
	f.state = c.agent.State()
	return f, shown, nil
}

// holdTimeout is how long it waits for a run that has just ended to be delivered.
const holdTimeout = 100 * time.Millisecond

// enter leaves the session for the next one, whose state is given. It is refused while a run
// is active: who shows the chat, and answers its questions, must not wait for one.
func (c *chat) enter(next *session, state agentkernel.AgentState) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), holdTimeout, agentkernel.ErrAlreadyRunning)
	defer cancel()
	release, err := c.agent.HoldRuns(ctx)
	if err != nil {
		return errors.Join(err, c.sessions.close(next))
	}
	defer release()
	if err := c.agent.Restore(state); err != nil {
		return errors.Join(err, c.sessions.close(next))
	}
	c.steering.Clear()
	c.approver.forget()
	c.unfollow()
	c.lost = errors.Join(c.lost, c.sessions.close(c.session))
	c.session, c.unfollow = next, journal.Follow(c.agent, next.journal)
	return nil
}

// close ends the run that is active, and the session. When it returns the file has all; else
// it says what any of the sessions lacks.
func (c *chat) close() error {
	c.agent.Abort(errQuit)
	_, _ = c.agent.HoldRuns(context.Background()) // Config.StopTimeout bounds it
	c.screen.Close()
	c.unfollow()
	return errors.Join(c.lost, c.sessions.close(c.session))
}
