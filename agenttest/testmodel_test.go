package agenttest_test

import (
	"testing"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

func TestModelAcceptsTheScript(t *testing.T) {
	agenttest.TestModel(t, func(t *testing.T, s agenttest.Scenario) agentkernel.ChatModel {
		replies := make([]agenttest.Reply, 32)
		for i := range replies {
			replies[i] = s.Reply()
		}
		return agenttest.Script(replies...)
	})
}
