package journal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/journal"
)

func Example() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "session.jsonl")

	// process is what each of two processes does: go on where the journal ends.
	process := func(prompt, answer string) {
		j, err := journal.Open(path, journal.Config{})
		if err != nil {
			panic(err)
		}
		defer j.Close()
		state, err := journal.Restore(j)
		if err != nil {
			panic(err)
		}
		agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text(answer))})
		if err != nil {
			panic(err)
		}
		if err := agent.Restore(state); err != nil {
			panic(err)
		}
		defer journal.Follow(agent, j)()
		if _, err := agent.Run(context.Background(), prompt); err != nil {
			panic(err)
		}
		fmt.Println(len(state.Messages), "messages before,", len(agent.Messages()), "behind:", agent.Messages()[0].TextContent())
	}
	process("My name is Ada.", "Hello Ada.")
	process("What is my name?", "Ada.")
	// Output:
	// 0 messages before, 2 behind: My name is Ada.
	// 2 messages before, 4 behind: My name is Ada.
}
