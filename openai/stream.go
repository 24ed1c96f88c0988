package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptrace"
	"time"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/internal/redact"
)

// Stream implements [agentkernel.ChatModel]: it makes one call, without retries, each time
// that the sequence is ranged over.
//
// Everything happens on the goroutine that ranges. Every error is an [*agentkernel.Error].
// When ctx ends the response's body is closed at once and the error is of kind canceled (or
// timeout), with the context's cause. The sequence ends with Done after a finish reason or
// "[DONE]"; what the network does after a finish reason is no failure.
func (m *Model) Stream(ctx context.Context, req agentkernel.ModelRequest) iter.Seq2[agentkernel.StreamEvent, error] {
	return func(yield func(agentkernel.StreamEvent, error) bool) {
		a := &reply{yield: yield}
		body, err := m.encodeRequest(req)
		if err != nil {
			a.fail(err)
			return
		}
		c := m.newCall(ctx, a)
		defer c.close()
		if err := c.open(body); err != nil {
			a.fail(err)
			return
		}
		if err := c.read(); err != nil {
			a.fail(err)
			return
		}
		if !a.left {
			a.done()
			c.drain()
		}
	}
}

// call is one call of the endpoint.
type call struct {
	m     *Model
	ctx   context.Context // the caller's
	reply *reply

	own    context.Context // the request's
	cancel context.CancelCauseFunc
	watch  *watch
	filter *filter
	resp   *http.Response
	// keep undoes that the end of own closes the body.
	keep func() bool
	// foreign: the body holds JSON that is neither a chunk nor an error.
	foreign bool
}

func (m *Model) newCall(ctx context.Context, a *reply) *call {
	c := &call{m: m, ctx: ctx, reply: a}
	c.own, c.cancel = context.WithCancelCause(ctx)
	c.watch = newWatch(&m.cfg, c.cancel)
	return c
}

// open sends the request and waits for the response.
func (c *call) open(body []byte) error {
	x := &exchange{body: body, seen: c.seen}
	ctx := httptrace.WithClientTrace(c.own, &httptrace.ClientTrace{
		GetConn: func(string) { c.watch.enter(phaseConnect) },
		GotConn: func(httptrace.GotConnInfo) { c.watch.enter(phaseHeader) },
	})
	_, err := c.m.client.CreateChatCompletionStream(
		context.WithValue(ctx, exchangeKey{}, x),
		goopenai.ChatCompletionRequest{Model: c.m.clientModel()},
	)
	switch {
	case c.ctx.Err() != nil:
		return stopped(c.ctx)
	case x.err != nil:
		return c.broken(x.err)
	case x.resp == nil:
		return &agentkernel.Error{Kind: agentkernel.KindInvalidRequest, Op: opStream, Err: c.m.clean(err)}
	case !isSuccess(x.resp.StatusCode):
		e := c.m.statusError(x.resp.StatusCode, x.resp.Header, x.failure)
		e.Err = redact.With(c.m.clean(err), e.Err.Error())
		return e
	}
	return nil
}

// clientModel is the model's name as far as the client needs it: for the address of an Azure
// deployment. It refuses names of models that it knows to be of another kind, which is not
// for it to say.
func (m *Model) clientModel() string {
	if m.conf.APIType == goopenai.APITypeAzure || m.conf.APIType == goopenai.APITypeAzureAD {
		return m.cfg.Model
	}
	return "model"
}

// seen takes the response over and returns its body.
func (c *call) seen(resp *http.Response) io.Reader {
	c.resp = resp
	c.keep = context.AfterFunc(c.own, func() { _ = resp.Body.Close() })
	if isSuccess(resp.StatusCode) {
		c.watch.enter(phaseBody)
	} else {
		c.watch.enter(phaseTail)
	}
	body := &watchedBody{resp.Body, c.watch}
	c.filter = newFilter(body, c.m.cfg.MaxLineBytes)
	return body
}

// watchedBody tells the watch of every read that brings bytes.
type watchedBody struct {
	src   io.Reader
	watch *watch
}

// Read implements [io.Reader].
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.src.Read(p)
	if n > 0 {
		b.watch.sawBytes()
	}
	return n, err
}

// read yields the answer up to its end. Its error is why there is no whole answer.
func (c *call) read() error {
	var f frame
	for !c.reply.left {
		ev, err := c.filter.next()
		switch {
		case c.ctx.Err() != nil:
			return stopped(c.ctx)
		case err != nil:
			return c.end(err)
		case ev.done:
			return nil
		}
		c.watch.sawFrame()
		if err := c.take(ev, &f); err != nil {
			return err
		}
	}
	return nil
}

// take takes one event in.
func (c *call) take(ev sseEvent, f *frame) error {
	err := decodeFrame(ev.data, f)
	switch {
	case errors.Is(err, errIncomplete) && !ev.last:
		c.filter.hold(ev)
		return nil
	case ev.failed:
		return c.m.reportError(readReport(ev.data), nil)
	case err != nil && (ev.cut || c.reply.finished()):
		return nil // the end of the body says the rest
	case err != nil:
		return c.m.protocolError(fmt.Sprintf("a frame of the stream is no JSON: %v: %.200s", err, ev.data), true)
	}
	waits := c.reply.finish == ""
	if r := c.reply.take(f); r != nil {
		return c.m.reportError(*r, nil)
	}
	c.foreign = c.foreign || !f.chunk
	if c.reply.overfull() {
		return c.m.brokenError(errOverfull)
	}
	if waits && c.reply.finish != "" {
		c.watch.enter(phaseTail)
	}
	return nil
}

// end judges the end of a body that came without [DONE].
func (c *call) end(err error) error {
	strange := c.filter.strange
	switch {
	case c.reply.finished():
		return nil
	case errors.Is(err, io.EOF) && c.filter.events == 0 && c.foreign:
		return c.m.protocolError("the response is JSON, but neither a completion nor an error", false)
	case !errors.Is(err, io.EOF) || c.filter.events > 0 || strange == nil:
		return c.broken(err)
	case strange[0] == '<' || !c.filter.unfinished:
		return c.m.protocolError("the response is no stream: "+plainText(strange), false)
	}
	return c.broken(err)
}

// broken is the error of what a transport reports. A limit of ours that is over comes first.
func (c *call) broken(err error) error {
	if limit, ok := errors.AsType[*limitError](context.Cause(c.own)); ok {
		err = limit
	}
	return c.m.brokenError(err)
}

// drainTime is how long the end of a body may take after the end of the stream. The
// connection can be used again only when the body was read to its end.
const drainTime = 20 * time.Millisecond

// drain reads the rest of the body if it comes at once.
func (c *call) drain() {
	if c.filter.err != nil || c.resp.ProtoMajor != 1 {
		return
	}
	timer := time.AfterFunc(drainTime, func() { c.cancel(errTailOver) })
	defer timer.Stop()
	_, _ = io.Copy(io.Discard, io.LimitReader(c.resp.Body, firstBuffer))
}

// close ends the call: the body is closed and nothing of it goes on.
func (c *call) close() {
	c.watch.stop()
	if c.keep != nil && c.keep() {
		_ = c.resp.Body.Close()
	}
	c.cancel(nil)
}
