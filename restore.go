package agentkernel

// Restore gives the agent a state that was folded from the stream of an earlier one, for
// example by package journal. It returns ErrAlreadyRunning while a run is active.
//
// What was open in the state when its stream broke off never happened: no run is active
// afterwards, no message open and no call pending. Calls that the history leaves unanswered are
// answered by the next run; those that are suspended can still be resumed. Nothing is announced:
// the agent's stream goes on where the other one ended, so that both, one after the other,
// rebuild its state. Use [Agent.SetMessages] where the consumers do not know the other one.
func (a *Agent) Restore(state AgentState) error {
	if err := checkMessages("state", state.Messages); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.active != nil {
		return ErrAlreadyRunning
	}
	a.state, a.head = interruptedState(state), nil
	a.state.Suspended = stillOpen(state.Suspended, state.Messages)
	return nil
}
