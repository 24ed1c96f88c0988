package openai_test

import (
	"fmt"

	"github.com/agentkernel-go/agentkernel/openai"
)

// A preset that nearly fits is changed where it does not.
func ExampleGuessCompat() {
	compat := openai.GuessCompat("https://api.deepseek.com/beta")
	compat.NoStrict = false // its beta address takes strict tools

	model, err := openai.New(openai.Config{
		Model:   "deepseek-chat",
		APIKey:  "sk-example",
		BaseURL: "https://api.deepseek.com/beta",
		Compat:  compat,
	})
	fmt.Println(model, err)
	// Output: deepseek-chat (api.deepseek.com) <nil>
}
