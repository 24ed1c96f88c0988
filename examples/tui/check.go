package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/agentkernel-go/agentkernel"
)

const checkPrompt = "Show me what you can do."

// check has one prompt answered without a terminal: it allows everything, and writes what the
// screen would print, without styles, on w.
func check(ctx context.Context, cfg agentkernel.Config, sessions store, w io.Writer) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("the run does not end"))
	defer cancel()
	var f feed
	var p painter
	p.resize(100)
	printer := func(msg any) { // events come one at a time; questions from other goroutines
		switch msg := msg.(type) {
		case askMsg:
			msg.give(answerYes)
		case eventMsg:
			for _, b := range f.fold(agentkernel.Event(msg)) {
				for _, line := range p.block(b) {
					fmt.Fprintln(w, strings.TrimRight(plainText(line), " "))
				}
			}
		}
	}
	cfg.MaxParallelTools = 1 // so that the cards end in one order
	c, err := newChat(cfg, sessions, printer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	run, err := c.agent.Prompt(ctx, checkPrompt)
	if err != nil {
		return err
	}
	if _, err := run.Wait(ctx); err != nil {
		return err
	}
	return c.screen.Drain(ctx)
}
