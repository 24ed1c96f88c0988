package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

const toolName = "days_between"

type span struct {
	From string `json:"from" jsonschema:"the first date, as YYYY-MM-DD"`
	To   string `json:"to" jsonschema:"the second date, as YYYY-MM-DD"`
}

// Tool counts the days between two dates, which models are bad at.
func Tool() agentkernel.Tool {
	tool := agentkernel.MustTool(toolName, "Counts the days from one date to another.", daysBetween)
	tool.ReadOnly = func(json.RawMessage) bool { return true }
	return tool
}

func daysBetween(_ context.Context, in span) (string, error) {
	from, err := time.Parse(time.DateOnly, in.From)
	if err != nil {
		return "", fmt.Errorf("from: %w", err)
	}
	to, err := time.Parse(time.DateOnly, in.To)
	if err != nil {
		return "", fmt.Errorf("to: %w", err)
	}
	return fmt.Sprintf("%d days", to.Sub(from)/(24*time.Hour)), nil
}
