package main

import (
	"errors"
	"fmt"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/journal"
)

// keepJournal writes everything that the agent does to the file at path. An agent whose file
// holds a conversation goes on with it. The journal's errors come when it is closed, once the
// agent is idle.
func keepJournal(agent *agentkernel.Agent, path string) (closeJournal func() error, err error) {
	j, err := journal.Open(path, journal.Config{Sync: true})
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	state, err := journal.Restore(j)
	if err == nil {
		err = agent.Restore(state)
	}
	if err != nil {
		return nil, fmt.Errorf("journal: %w", errors.Join(err, j.Close()))
	}
	unfollow := journal.Follow(agent, j)
	return func() error {
		unfollow()
		if err := errors.Join(j.Err(), j.Close()); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		return nil
	}, nil
}
