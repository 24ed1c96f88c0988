//go:build latest

package main

import "net/http"

// fantasyWire is nil: fantasy's provider does not compile with the openai-go of latest.mod.
func fantasyWire() func(url string, client *http.Client) Run { return nil }
