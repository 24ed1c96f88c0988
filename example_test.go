package agentkernel_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/openai"
)

func Example() {
	model, err := openai.New(openai.Config{
		Model:   "gpt-4.1-mini",
		APIKey:  os.Getenv("OPENAI_API_KEY"),
		BaseURL: os.Getenv("OPENAI_BASE_URL"), // empty: OpenAI's
	})
	if err != nil {
		log.Fatal(err)
	}
	clock := agentkernel.MustTool("clock", "Tells the time.", func(context.Context, struct{}) (string, error) {
		return time.Now().Format(time.Kitchen), nil
	})
	agent, err := agentkernel.NewAgent(agentkernel.Config{Model: model, Tools: []agentkernel.Tool{clock}})
	if err != nil {
		log.Fatal(err)
	}
	agent.Subscribe(func(ev agentkernel.Event) {
		if ev.Type == agentkernel.EventMessageUpdate && ev.DeltaKind == agentkernel.DeltaText {
			fmt.Print(ev.Delta)
		}
	})
	if _, err := agent.Run(context.Background(), "What time is it?"); err != nil {
		log.Fatal(err)
	}
}
