package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/mcp"
)

// TestSchemasThatNeverEnd: neither a schema that refers to itself nor one whose references double
// at each step takes this process with it.
func TestSchemasThatNeverEnd(t *testing.T) {
	var defs strings.Builder
	defs.WriteString(`"a0":{"type":"object"}`)
	for i := 1; i <= 60; i++ {
		defs.WriteString(fmt.Sprintf(`,"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`, i, i-1, i-1))
	}
	itself := json.RawMessage(`{"type":"object","allOf":[{"$ref":"#"}]}`)
	doubles := json.RawMessage(`{"type":"object","$defs":{` + defs.String() + `},"$ref":"#/$defs/a60"}`)
	object := json.RawMessage(`{"type":"object"}`)
	server := listing(func(string) *sdk.ListToolsResult {
		return &sdk.ListToolsResult{Tools: []*sdk.Tool{
			{Name: "in", InputSchema: itself}, {Name: "out", InputSchema: object, OutputSchema: itself},
			{Name: "in2", InputSchema: doubles}, {Name: "x", InputSchema: object, OutputSchema: doubles},
		}}
	})
	server.AddTool(&sdk.Tool{Name: "x", InputSchema: object}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: map[string]any{}}, nil
	})
	session := connect(t, server, mcp.Config{Prefix: "-"})
	all, err := mcp.Tools(t.Context(), session)
	require.ErrorContains(t, err, `tool "in": `)
	require.ErrorContains(t, err, `tool "out": its output schema: # refers to itself`)
	require.Len(t, all, 2)
	require.Equal(t, agentkernel.ToolInvalid, resultOf(t, run(t, t.Context(), call("in2", `{}`), all...)).Cause)
	result := resultOf(t, run(t, t.Context(), call("x", `{}`), all...))
	require.Equal(t, agentkernel.ToolFailed, result.Cause)
	require.Contains(t, result.TextContent(), "too costly")
}

// wire is a server that is written down: what it answers to each method, as raw lines, with
// "ID" for the request's id. It reads no more after a method with no answer where deaf is set.
type wire struct {
	answers map[string]string
	deaf    bool
	mute    bool // it never reads
}

// serve begins the server and returns the client's transport.
func (w wire) serve(t *testing.T) sdk.Transport {
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer fromServer.Close()
		if w.mute {
			<-t.Context().Done()
			return
		}
		in := bufio.NewScanner(toServer)
		in.Buffer(nil, 4<<20)
		for in.Scan() {
			var req struct {
				ID     json.RawMessage
				Method string
			}
			_ = json.Unmarshal(in.Bytes(), &req)
			answer, ok := w.answers[req.Method]
			switch {
			case !ok && req.Method == "server/discover":
				answer = `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no such method"}}`
			case !ok && w.deaf && req.ID != nil:
				<-t.Context().Done()
				return
			}
			if answer != "" {
				if _, err := io.WriteString(fromServer, strings.ReplaceAll(answer, "ID", string(req.ID))+"\n"); err != nil {
					return
				}
			}
		}
	}()
	t.Cleanup(func() {
		_ = fromClient.Close()
		_ = toServer.Close()
		_ = toClient.Close()
		<-done
	})
	return &sdk.IOTransport{Reader: toClient, Writer: fromClient}
}

const hello = `{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"w","version":"1"}}}`

const oneTool = `{"jsonrpc":"2.0","id":ID,"result":{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}}`

// TestAnswersThatAreNone: whatever a server says instead of an answer is an error of the call.
func TestAnswersThatAreNone(t *testing.T) {
	for name, answer := range map[string]string{
		"null":         `{"jsonrpc":"2.0","id":ID,"result":null}`,
		"nothing":      `{"jsonrpc":"2.0","id":ID}`,
		"text":         `{"jsonrpc":"2.0","id":ID,"result":"hi"}`,
		"null content": `{"jsonrpc":"2.0","id":ID,"result":{"content":null}}`,
		"nulls":        `{"jsonrpc":"2.0","id":ID,"result":{"content":[null]}}`,
		"odd kind":     `{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"hologram"}]}}`,
		"no resource":  `{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"resource"}]}}`,
		"number":       `{"jsonrpc":"2.0","id":ID,"result":{"content":[],"structuredContent":1e400}}`,
		"garbage":      `this is no JSON`,
		"other id":     `{"jsonrpc":"2.0","id":"nobody","result":{"content":[]}}` + "\n" + `{"jsonrpc":"2.0","id":ID,"error":{"code":-1,"message":"no"}}`,
		"null error":   `{"jsonrpc":"2.0","id":ID,"error":null}`,
		"twice":        `{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}` + "\n" + `{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`,
		"array":        `[]`,
		"progress":     `{"jsonrpc":"2.0","method":"notifications/progress","params":null}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{"a":[1]},"progress":-1e308}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":null}` + "\n" + `{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			transport := wire{answers: map[string]string{"initialize": hello, "tools/list": oneTool, "tools/call": answer}}.serve(t)
			session, err := mcp.Connect(t.Context(), transport, mcp.Config{})
			require.NoError(t, err)
			all, err := mcp.Tools(t.Context(), session)
			require.NoError(t, err)
			want := agentkernel.ToolFailed
			switch name {
			case "null", "null content", "no resource", "twice", "progress": // the SDK lets it pass
				want = agentkernel.ToolOK
			}
			require.Equal(t, want, resultOf(t, run(t, t.Context(), call("w_x", `{}`), all...)).Cause)
			_ = session.Close()
		})
	}
}

// TestDeafServer: a server that stays there but reads no more holds nobody past their context, and
// the session can be closed.
func TestDeafServer(t *testing.T) {
	big := json.RawMessage(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`)
	soon := func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	for name, w := range map[string]wire{
		"from the first":         {mute: true},
		"behind the first words": {deaf: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := mcp.Connect(soon(t), w.serve(t), mcp.Config{})
			require.ErrorIs(t, err, agentkernel.KindTimeout)
		})
	}
	t.Run("behind the list", func(t *testing.T) {
		answers := map[string]string{"initialize": hello, "tools/list": oneTool}
		session, err := mcp.Connect(t.Context(), wire{answers: answers, deaf: true}.serve(t), mcp.Config{})
		require.NoError(t, err)
		all, err := mcp.Tools(t.Context(), session)
		require.NoError(t, err)
		for range 2 { // the second one cannot even be written
			_, err = all[0].Execute(soon(t), big)
			require.ErrorIs(t, err, agentkernel.KindTimeout)
		}
		failed := make(chan error, 1)
		go func() {
			_, err := all[0].Execute(t.Context(), big)
			failed <- err
		}()
		_ = session.Close()
		require.Error(t, <-failed, "a call that runs fails")
		_, err = all[0].Execute(t.Context(), big)
		require.ErrorIs(t, err, agentkernel.KindNetwork)
	})
}

// TestCloseWhileACallRuns: Close waits for no server that takes its time.
func TestCloseWhileACallRuns(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	server := listing(func(string) *sdk.ListToolsResult {
		return &sdk.ListToolsResult{Tools: []*sdk.Tool{{Name: "x", InputSchema: json.RawMessage(`{"type":"object"}`)}}}
	})
	server.AddTool(&sdk.Tool{Name: "x", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			close(begun)
			<-end
			return &sdk.CallToolResult{}, nil
		})
	session := connect(t, server, mcp.Config{})
	t.Cleanup(func() { close(end) }) // before the one of connect
	all, err := mcp.Tools(t.Context(), session)
	require.NoError(t, err)
	failed := make(chan error, 1)
	go func() {
		_, err := all[0].Execute(t.Context(), json.RawMessage(`{}`))
		failed <- err
	}()
	<-begun
	require.NoError(t, session.Close())
	require.ErrorIs(t, <-failed, agentkernel.KindNetwork)
	require.NoError(t, session.Close(), "twice")
}
