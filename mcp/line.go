package mcp

import (
	"context"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// line is a transport that knows the connection which was made of it, and who waits for an answer
// over it. The SDK waits for what it writes, and closes nothing before that: a server that does
// not read would hold everybody.
type line struct {
	sdk.Transport
	asking sync.WaitGroup // goroutines that wait for the server; the end of the connection ends them

	mu   sync.Mutex
	conn sdk.Connection
	over bool // it was cut
}

// Connect makes the connection.
func (l *line) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := l.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.conn = conn
	over := l.over
	l.mu.Unlock()
	if over {
		_ = conn.Close()
	}
	return conn, nil
}

// cut ends the connection, whatever is under way on it.
func (l *line) cut() {
	l.mu.Lock()
	conn := l.conn
	l.over = true
	l.mu.Unlock()
	if conn != nil {
		_ = conn.Close()
	}
}

// ask calls what asks the server, and does not wait past the end of ctx: what is written to a
// server that does not read waits for it, or for the end of the connection.
func ask[R any](ctx context.Context, l *line, question func(context.Context) (R, error)) (got R, err error) {
	type answer struct {
		got R
		err error
	}
	back := make(chan answer, 1)
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return got, sdk.ErrConnectionClosed
	}
	l.asking.Go(func() { // ends with its answer, or with the connection; Close waits for it
		got, err := question(ctx)
		back <- answer{got, err}
	})
	l.mu.Unlock()
	select {
	case a := <-back:
		return a.got, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-back: // it was there as well
		return a.got, a.err
	default:
		return got, context.Cause(ctx)
	}
}
