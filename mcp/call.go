package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/internal/schema"
)

// call asks the server to run one of its tools. What the server reports as an error, and a
// connection that breaks, is an error result for the model. The end of ctx is passed on.
func (s *Session) call(ctx context.Context, name string, args json.RawMessage, output *schema.Schema) (agentkernel.ToolResult, error) {
	params := &sdk.CallToolParams{Name: name, Arguments: args}
	token := fmt.Sprint("call-", s.tokens.Add(1))
	params.SetProgressToken(token)
	s.running.Store(token, ctx)
	defer s.running.Delete(token)
	got, err := ask(ctx, s.line, func(ctx context.Context) (*sdk.CallToolResult, error) { return s.conn.CallTool(ctx, params) })
	if err != nil {
		return agentkernel.ToolResult{}, failure(ctx, "call", err)
	}
	return result(got, output)
}

// progressed shows a server's notification on the stream of the run, if its call still runs.
// The server's last one may come behind its result; then it is dropped.
func (s *Session) progressed(p *sdk.ProgressNotificationParams) {
	token, ok := p.ProgressToken.(string) // a server may send anything here, also what is no key
	if !ok {
		return
	}
	ctx, ok := s.running.Load(token)
	if !ok {
		return
	}
	payload := agentkernel.ProgressPayload{
		Kind: agentkernel.ProgressSummary, Text: p.Message, Count: whole(p.Progress), Of: whole(p.Total),
	}
	payload.Data, _ = json.Marshal(map[string]float64{"progress": p.Progress, "total": p.Total})
	agentkernel.ReportProgress(ctx.(context.Context), payload)
}

// whole is a position as a number that people read: JSON has no NaN, and a server no manners.
func whole(x float64) int {
	if x < 0 {
		return 0
	}
	return int(min(x, math.MaxInt32))
}
