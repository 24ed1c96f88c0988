//go:build !latest

package main

import (
	"context"
	"net/http"

	"charm.land/fantasy/providers/openai"
)

// fantasyWire is fantasy with its own provider for OpenAI's endpoints.
func fantasyWire() func(url string, client *http.Client) Run {
	return func(url string, client *http.Client) Run {
		provider, err := openai.New(openai.WithBaseURL(url), openai.WithAPIKey("none"), openai.WithHTTPClient(client))
		if err != nil {
			return failed(err)
		}
		m, err := provider.LanguageModel(context.Background(), wireModel)
		if err != nil {
			return failed(err)
		}
		return fantasyOf(m, new(fantasySource))
	}
}
