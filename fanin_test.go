package agentkernel_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestFanIn: one consumer of many agents, and of the agents that these ask, tells them apart
// by RunID and ParentRunID and needs no lock.
func TestFanIn(t *testing.T) {
	const agents = 5
	all := make([]*watched, agents)
	for i := range all {
		helper, err := agentkernel.AgentTool(agentkernel.AgentToolConfig{
			Name: "ask", Forward: agentkernel.ForwardEvents,
			Agents: []agentkernel.SubAgent{{Name: "helper", Config: agentkernel.Config{Model: agenttest.Script(agenttest.Text("some help").Chunks(1))}}},
		})
		require.NoError(t, err)
		all[i] = watch(t, agentkernel.Config{
			Model: agenttest.Script(
				agenttest.Call("1", "ask", `{"tasks":[{"agent":"helper","prompt":"help"}]}`), agenttest.Text("hello world").Chunks(1)),
			Tools: []agentkernel.Tool{helper},
		})
	}
	logs := make(map[string][]agentkernel.Event)
	parents := make(map[string]string)
	sub := all[0].SubscribeAsync(func(ev agentkernel.Event) {
		logs[ev.RunID] = append(logs[ev.RunID], ev)
		parents[ev.RunID] = ev.ParentRunID
	}, agentkernel.AsyncOptions{})
	for _, agent := range all[1:] {
		sub.Follow(agent.Agent)
	}
	var group sync.WaitGroup
	for _, agent := range all {
		group.Go(func() {
			_, err := agent.Run(t.Context(), "hi")
			require.NoError(t, err)
		})
	}
	group.Wait()
	require.NoError(t, sub.Drain(t.Context()))

	children := 0
	for id, log := range logs {
		require.Equal(t, int(final(log).Seq), accounted(log))
		require.Equal(t, agentkernel.EventAgentEnd, final(log).Type)
		if parent := parents[id]; parent != "" {
			children++
			require.Contains(t, logs, parent)
			require.Empty(t, parents[parent])
		}
	}
	require.Equal(t, agents, children)
	for _, agent := range all {
		checker := &agenttest.Checker{AllowCoalesced: true}
		byRun := make(map[string]int)
		for _, ev := range agent.events() {
			byRun[ev.RunID]++
		}
		for id, n := range byRun {
			require.Equal(t, n, accounted(logs[id]))
			if parents[id] == "" {
				for _, ev := range logs[id] {
					checker.Listen(ev)
				}
			}
		}
		require.NoError(t, checker.Finish())
	}
}
