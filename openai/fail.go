package openai

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/internal/redact"
)

const opStream = "openai"

// errOverfull: an answer holds more than any model writes.
var errOverfull = errors.New("the answer holds too many blocks, calls or reasoning details")

// statusError is the error of a response whose status says that it is one.
func (m *Model) statusError(status int, header http.Header, body []byte) *agentkernel.Error {
	r := readReport(body)
	r.status = status
	if r.message == "" {
		r.message = http.StatusText(status)
	}
	if to := header.Get("Location"); status < http.StatusBadRequest && to != "" {
		r.message = "the endpoint has moved to " + bareURL(to)
	}
	now := time.Now()
	e := m.reportError(r, nil)
	e.RetryAfter = max(e.RetryAfter, retryAfter(header, now))
	if e.RetryAfter == 0 && e.Kind == agentkernel.KindRateLimit {
		e.RetryAfter = rateLimitReset(header, now)
	}
	return e
}

// reportError is the error that a report comes to. cause, where there is one, stays reachable.
func (m *Model) reportError(r report, cause error) *agentkernel.Error {
	if r.message == "" {
		r.message = "the endpoint reported a failure and did not say which"
	}
	kind, retryable := classify(r)
	return &agentkernel.Error{
		Kind:       kind,
		Op:         opStream,
		Status:     r.status,
		Retryable:  retryable,
		RetryAfter: r.wait,
		Err:        redact.With(cause, m.cleanText(r.message)),
	}
}

// stopped is the error of a call whose context ended: whatever the client says then is an
// echo of that.
func stopped(ctx context.Context) *agentkernel.Error {
	cause := context.Cause(ctx)
	if e, ok := errors.AsType[*agentkernel.Error](cause); ok {
		return e
	}
	kind := agentkernel.KindCanceled
	if errors.Is(cause, context.DeadlineExceeded) {
		kind = agentkernel.KindTimeout
	}
	return &agentkernel.Error{Kind: kind, Op: opStream, Err: cause}
}

// brokenError is the error of a call that the network, or a limit, broke.
func (m *Model) brokenError(err error) *agentkernel.Error {
	e := &agentkernel.Error{Kind: agentkernel.KindNetwork, Op: opStream, Retryable: true, Err: m.clean(err)}
	switch {
	case isLimit(err, e):
	case errors.Is(err, errLineTooLong) || errors.Is(err, errOverfull):
		e.Kind, e.Retryable = agentkernel.KindLimit, false
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		e.Kind = agentkernel.KindStreamTruncated
		e.Err = redact.With(e.Err, "the stream ended before the model was done")
	case isTimeout(err):
		e.Kind = agentkernel.KindTimeout
		if limit := m.clientTimeout(); limit > 0 {
			e.Err = redact.With(e.Err, fmt.Sprintf("the HTTP client's own Timeout of %v is over; it bounds a whole stream, unlike the limits of openai.Config", limit))
		}
	case isCertificate(err):
		e.Retryable = false
	}
	return e
}

// isLimit fills in e where err is a limit of the Config.
func isLimit(err error, e *agentkernel.Error) bool {
	limit, ok := errors.AsType[*limitError](err)
	if ok {
		e.Kind, e.Err = limit.kind, limit
	}
	return ok
}

func isTimeout(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

// isCertificate tells of a server whose certificate is not trusted, which no retry cures.
func isCertificate(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	return ok || unknown || host
}

// clientTimeout is the Timeout of the HTTP client that the user brought.
func (m *Model) clientTimeout() time.Duration {
	if e, ok := m.conf.HTTPClient.(*endpoint); ok {
		if c, ok := e.next.(*http.Client); ok {
			return c.Timeout
		}
	}
	return 0
}

// protocolError is the error of a body that is neither a stream nor an answer.
func (m *Model) protocolError(what string, retryable bool) *agentkernel.Error {
	return &agentkernel.Error{
		Kind:      agentkernel.KindProtocol,
		Op:        opStream,
		Retryable: retryable,
		Err:       errors.New(m.cleanText(what)),
	}
}
