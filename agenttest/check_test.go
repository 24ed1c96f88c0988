package agenttest

import "testing"

func TestCheckAcceptsValidLogs(t *testing.T) {
	for name, l := range validLogs() {
		t.Run(name, func(t *testing.T) {
			if err := CheckEvents(l.events); err != nil {
				t.Errorf("CheckEvents: %v\n%s", err, Format(l.events))
			}
			if err := l.check(l.events); err != nil {
				t.Errorf("CheckRun: %v\n%s", err, Format(l.events))
			}
		})
	}
}
