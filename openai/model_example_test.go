package openai_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/openai"
)

// An agent on an endpoint that speaks the OpenAI wire: here a server in the same program, which
// says two chunks and how many tokens they took.
func ExampleNew() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, data := range []string{
			`{"choices":[{"index":0,"delta":{"role":"assistant","content":"Good "}}]}`,
			`{"choices":[{"index":0,"delta":{"content":"morning."},"finish_reason":"stop"}]}`,
			`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`,
			`[DONE]`,
		} {
			fmt.Fprintf(w, "data: %s\n\n", data)
		}
	}))
	defer server.Close()
	model, err := openai.New(openai.Config{Model: "example", APIKey: "sk-example", BaseURL: server.URL, HTTPClient: server.Client()})
	if err != nil {
		panic(err)
	}
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: model})
	if err != nil {
		panic(err)
	}
	record, err := agent.Run(context.Background(), "hi")
	fmt.Println(record.Answer, record.Summary.Usage.Total, err)
	// Output: Good morning. 12 <nil>
}
