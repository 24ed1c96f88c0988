package openai

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	goopenai "github.com/sashabaranov/go-openai"
)

// exchange is one request and its response as they go over the wire. The go-openai client
// above it builds the address and the headers; the body is ours, and the response stays
// here, since the client would lose most of it.
type exchange struct {
	body []byte
	// seen is told of the response as soon as its header is there, and returns the body to read.
	seen func(*http.Response) io.Reader

	resp    *http.Response
	failure []byte // the body of a response that is an error
	err     error  // why there is no response
}

type exchangeKey struct{}

// transport is what the client sends its requests through.
type transport struct{ next goopenai.HTTPDoer }

// newTransport returns the client's HTTPClient, which sends through next.
func (m *Model) newTransport(next goopenai.HTTPDoer) goopenai.HTTPDoer { return transport{next} }

// Do implements goopenai.HTTPDoer.
func (t transport) Do(req *http.Request) (*http.Response, error) {
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return t.next.Do(req)
	}
	x.setBody(req)
	x.resp, x.err = t.next.Do(req)
	switch {
	case x.err != nil:
		return nil, x.err
	case x.resp == nil || x.resp.Body == nil:
		x.err = errors.New("the HTTP client returned no response")
		return nil, x.err
	}
	return x.forClient(), nil
}

func (x *exchange) setBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close() // of the client's own body, which is in memory
	}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.body)), nil }
	req.Body, _ = req.GetBody()
	req.ContentLength = int64(len(x.body))
	req.Header.Del("Content-Length")
}

// mostFailure bounds what is read of the body of an error.
const mostFailure = 1 << 20

// forClient returns a response that lets the client make an error of its own of a failure,
// for those who look for one, and leaves the body of any other to us.
func (x *exchange) forClient() *http.Response {
	shown := *x.resp
	shown.Body = http.NoBody
	body := x.seen(x.resp)
	if !isSuccess(x.resp.StatusCode) {
		// What came of it is enough: the status counts.
		x.failure, _ = io.ReadAll(io.LimitReader(body, mostFailure))
		shown.Body = io.NopCloser(bytes.NewReader(x.failure))
	}
	return &shown
}

func isSuccess(status int) bool { return status >= 200 && status < 300 }

// clients are the HTTP clients of those who bring none, by their connect timeout: one
// each, so that all models share its connections.
var clients sync.Map

// sharedClient returns an HTTP client without a limit on the length of a response.
func sharedClient(connectTimeout time.Duration) *http.Client {
	if c, ok := clients.Load(connectTimeout); ok {
		return c.(*http.Client)
	}
	c, _ := clients.LoadOrStore(connectTimeout, newClient(connectTimeout))
	return c.(*http.Client)
}

func newClient(connectTimeout time.Duration) *http.Client {
	timeout := max(connectTimeout, 0)
	dialer := &net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second}
	return &http.Client{
		CheckRedirect: sameHost,
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         dialer.DialContext,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: 16,
			IdleConnTimeout:     90 * time.Second,
			TLSHandshakeTimeout: timeout,
			DisableCompression:  true, // some proxies hold a stream back to compress it
		},
	}
}

// sameHost follows a redirect that asks the same host the same thing. Any other would lose
// the request or show the key to somebody else.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > 3 || req.URL.Host != first.URL.Host || req.Method != first.Method {
		return http.ErrUseLastResponse
	}
	return nil
}
