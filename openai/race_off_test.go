//go:build !race

package openai

const raced = false
