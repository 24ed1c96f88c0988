package sse_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
	"github.com/agentkernel-go/agentkernel/journal"
	"github.com/agentkernel-go/agentkernel/sse"
)

func Example() {
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: agenttest.Script(agenttest.Text("Hello from afar.").Chunks(6))})
	if err != nil {
		panic(err)
	}
	j := journal.NewRing(journal.Config{})
	defer journal.Follow(agent, j)()
	h := sse.NewHandler(j, sse.Config{})
	server := httptest.NewServer(h) // or mux.Handle("GET /events", h)
	defer server.Close()
	defer h.Close()

	client := sse.NewClient(server.URL, sse.ClientConfig{HTTP: server.Client()})
	started := false
	for ev, err := range client.Events(context.Background()) {
		switch {
		case err != nil:
			panic(err)
		case !started: // the snapshot: the client is there
			started = true
			if _, err := agent.Prompt(context.Background(), "hi"); err != nil {
				panic(err)
			}
		case ev.Type == agentkernel.EventMessageUpdate:
			fmt.Print(ev.Delta)
		}
		if ev.Type == agentkernel.EventAgentEnd {
			break
		}
	}
	fmt.Println("\nmessages:", len(client.State().Messages))
	// Output:
	// Hello from afar.
	// messages: 2
}
