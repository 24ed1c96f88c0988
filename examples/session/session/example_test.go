package session_test

import (
	"context"
	"fmt"
	"log"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/examples/session/session"
)

func Example() {
	ctx := context.Background()
	store, err := session.OpenSQLite(ctx, session.InMemory)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	model := agenttest.Script(agenttest.Text("Hello, Ada."))
	s, err := session.Open(ctx, session.Config{
		Store:  store,
		ID:     "greeting",
		Models: map[string]agentkernel.ChatModel{"script": model},
		Model:  "script",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close(ctx)
	s.Subscribe(func(ev session.SessionEvent) {
		switch {
		case ev.Place > 0:
			fmt.Printf("%d %s: %s\n", ev.Place, ev.AgentEvent.Message.GetRole(), ev.AgentEvent.Message.TextContent())
		case ev.Type == session.EventGoalUpdated:
			fmt.Println("goal:", ev.Goal.Text)
		}
	})
	if err := s.SetGoal(ctx, "be polite"); err != nil {
		log.Fatal(err)
	}
	run, err := s.Prompt(ctx, "My name is Ada.")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := run.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q remembers %q\n", s.Name(), s.Memory()[0].Text)
	// Output:
	// goal: be polite
	// 1 user: My name is Ada.
	// 2 assistant: Hello, Ada.
	// "My name is Ada." remembers "My name is Ada."
}
