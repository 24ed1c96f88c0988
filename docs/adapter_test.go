package docs_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/agenttest"
)

// TestAdapterOfThePage proves that the adapter in adapters.md passes the suite.
func TestAdapterOfThePage(t *testing.T) {
	agenttest.TestModel(t, func(t *testing.T, s agenttest.Scenario) agentkernel.ChatModel {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if s.Status != 0 {
				http.Error(w, "no", s.Status)
				return
			}
			play(w, r, s)
		}))
		t.Cleanup(server.Close)
		t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
		return Lines{URL: server.URL}
	})
}

// play answers with a scenario in lines, one rune of text at a time.
func play(w http.ResponseWriter, r *http.Request, s agenttest.Scenario) {
	out := json.NewEncoder(w)
	say := func(v map[string]any) {
		_ = out.Encode(v)
		w.(http.Flusher).Flush()
	}
	for _, c := range s.Thinking {
		say(map[string]any{"think": string(c)})
	}
	for _, c := range s.Text {
		say(map[string]any{"text": string(c)})
	}
	for _, call := range s.Calls {
		args := string(call.Args)
		for len(args) > 0 {
			_, n := utf8.DecodeRuneInString(args)
			say(map[string]any{"id": call.ID, "name": call.Name, "args": args[:n]})
			args = args[n:]
		}
	}
	switch {
	case s.Stalls:
		<-r.Context().Done()
	case !s.Truncated:
		say(map[string]any{"stop": s.Stop, "usage": s.Usage})
	}
}

// TestAdapterStandsOnThePage: adapters.md shows the adapter that the test above tries.
func TestAdapterStandsOnThePage(t *testing.T) {
	_, code, _ := strings.Cut(read(t, "lines_test.go"), "// Lines asks")
	require.Contains(t, read(t, "adapters.md"), "// Lines asks"+code)
	require.LessOrEqual(t, strings.Count(code, "\n"), 65)
}
