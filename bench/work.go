package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// Library is a library under measurement. Its functions prepare one program each, outside of
// the measured time. README.md tells what each program must do.
type Library struct {
	Name string
	// Text: one message of n deltas of the text, each handed to one consumer.
	Text func(n int, delta string) Run
	// Args: one message that is one call, its arguments in the given pieces, each handed to
	// one consumer; then a turn that answers with one delta.
	Args func(pieces []string) Run
	// Turns: so many turns of so many calls of a tool that does nothing, one consumer; then a
	// turn that answers with one delta.
	Turns func(turns, calls int) Run
	// Wire: one message from an endpoint, each text delta handed to one consumer. Nil means that
	// the library is not measured with that workload; the other functions are needed.
	Wire func(url string, client *http.Client) Run
}

// Run makes one run of a program and tells what it did. It is called one at a time.
type Run func(ctx context.Context) (Done, error)

// Done is what a run did, so that nobody is measured who does something else.
type Done struct {
	// Deltas and Bytes are what the consumer saw: of text, and of arguments.
	Deltas, Bytes int
	// Turns counts the questions to the model, Calls what the tool was called.
	Turns, Calls int
	// Text is the last message's as the library assembled it, Args what the tool got last.
	Text, Args string
}

const (
	deltaText = "abcd"     // a delta of the text workloads
	deltaArgs = "abcdefgh" // as long as a piece of arguments
	answer    = "ok"       // the last turn's
)

// argPieces are n pieces of 8 bytes that are a JSON object together.
func argPieces(n int) []string {
	pieces := make([]string, n)
	for i := range pieces {
		pieces[i] = deltaArgs
	}
	pieces[0], pieces[n-1] = `{"a": "a`, `abcdef"}`
	return pieces
}

// compactArgs are the arguments without the blank in front of their value.
func compactArgs(n int) string {
	return strings.Replace(strings.Join(argPieces(n), ""), ": ", ":", 1)
}

// callIDs are ids for all calls of a run.
func callIDs(turns, calls int) [][]string {
	ids := make([][]string, turns)
	for i := range ids {
		for j := range calls {
			ids[i] = append(ids[i], fmt.Sprintf("call_%d_%d", i, j))
		}
	}
	return ids
}

// textDone is what a run of the text workload did.
func textDone(n int, delta string) Done {
	return Done{Deltas: n, Bytes: n * len(delta), Turns: 1, Text: strings.Repeat(delta, n)}
}

func argsDone(n int) Done {
	return Done{Deltas: n + 1, Bytes: n*len(deltaArgs) + len(answer), Turns: 2, Calls: 1, Text: answer, Args: compactArgs(n)}
}

// turnsDone counts the arguments of each call as one delta.
func turnsDone(turns, calls int) Done {
	n := turns * calls
	return Done{Deltas: n + 1, Bytes: n*len("{}") + len(answer), Turns: turns + 1, Calls: n, Text: answer, Args: "{}"}
}

// verify says in what way done is not what was wanted. What want leaves empty is not asked for.
func (want Done) verify(done Done) error {
	if want.Text == "" {
		done.Text = ""
	}
	// Some keep the blank that others compact away.
	done.Args = strings.Replace(done.Args, ": ", ":", 1)
	if done == want {
		return nil
	}
	if done.Text == want.Text && done.Args == want.Args {
		done.Text, done.Args, want.Text, want.Args = "", "", "", ""
		return fmt.Errorf("it did %+v, not %+v", done, want)
	}
	return fmt.Errorf("its text has %d bytes of %d, its arguments %d of %d, or they differ",
		len(done.Text), len(want.Text), len(done.Args), len(want.Args))
}
