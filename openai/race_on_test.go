//go:build race

package openai

// raced: the race detector is on, under which memory and time are not what they are.
const raced = true
