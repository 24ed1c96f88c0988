package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/agentkernel-go/agentkernel"
)

// ModelInfo is what an endpoint tells of a model. What it does not tell is zero.
type ModelInfo struct {
	// ID is what Config.Model names.
	ID string `json:"id"`
	// Name is for people.
	Name    string    `json:"name,omitempty"`
	OwnedBy string    `json:"owned_by,omitempty"`
	Created time.Time `json:"created,omitzero"`
	// ContextWindow and MaxOutput are in tokens.
	ContextWindow int `json:"context_window,omitempty"`
	MaxOutput     int `json:"max_output,omitempty"`
	// Raw is all that the endpoint sent of the model.
	Raw json.RawMessage `json:"raw,omitempty"`
}

// Models returns the models that the endpoint of cfg offers, in the endpoint's order.
// cfg.Model may be empty. The call as a whole has cfg.ConnectTimeout and cfg.HeaderTimeout
// together, and the answer at most cfg.MaxLineBytes. Every error is an [*agentkernel.Error].
func Models(ctx context.Context, cfg Config) ([]ModelInfo, error) {
	m, err := connect(cfg)
	if err != nil {
		return nil, err
	}
	wait, cancel := m.modelsDeadline(ctx)
	defer cancel()
	answer := catcher{next: m.conf.HTTPClient, limit: m.cfg.MaxLineBytes}
	conf := m.conf
	conf.HTTPClient = &answer
	_, err = goopenai.NewClientWithConfig(conf).ListModels(wait)
	switch {
	case ctx.Err() != nil:
		return nil, stopped(ctx)
	case wait.Err() != nil:
		return nil, modelsError(agentkernel.KindTimeout, errors.New("no list within the time limit"))
	case answer.err != nil:
		return nil, m.listError(answer.err)
	case answer.status == 0:
		return nil, modelsError(agentkernel.KindInternal, m.clean(err))
	case !isSuccess(answer.status):
		return nil, m.statusError(answer.status, answer.header, answer.body)
	}
	return decodeModels(answer.body)
}

func (m *Model) modelsDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if m.cfg.ConnectTimeout < 0 || m.cfg.HeaderTimeout < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, m.cfg.ConnectTimeout+m.cfg.HeaderTimeout)
}

func modelsError(kind agentkernel.Kind, err error) *agentkernel.Error {
	retryable := kind == agentkernel.KindTimeout || kind == agentkernel.KindNetwork
	return &agentkernel.Error{Kind: kind, Op: "openai models", Retryable: retryable, Err: err}
}

// catcher keeps a response whole, of whatever form it is, before the client can lose it.
type catcher struct {
	next  goopenai.HTTPDoer
	limit int

	status int
	header http.Header
	body   []byte
	err    error
}

var errTooLong = errors.New("the answer is longer than MaxLineBytes")

// Do implements goopenai.HTTPDoer. The client gets an empty list.
func (c *catcher) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.next.Do(req)
	if err != nil {
		c.err = err
		return nil, err
	}
	defer resp.Body.Close()
	body := io.Reader(resp.Body)
	if c.limit > 0 {
		body = io.LimitReader(body, int64(c.limit)+1)
	}
	if c.body, c.err = io.ReadAll(body); c.err == nil && c.limit > 0 && len(c.body) > c.limit {
		c.err = errTooLong
	}
	c.status, c.header = resp.StatusCode, resp.Header
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{},
		Body:       io.NopCloser(bytes.NewReader([]byte("{}"))),
	}, c.err
}

// decodeModels reads a list of models: under "data" or "models", or bare.
func decodeModels(body []byte) ([]ModelInfo, error) {
	var list struct{ Data, Models []json.RawMessage }
	entries := []json.RawMessage(nil)
	if err := json.Unmarshal(body, &list); err == nil && (list.Data != nil || list.Models != nil) {
		entries = append(list.Data, list.Models...)
	} else if json.Unmarshal(body, &entries) != nil {
		return nil, modelsError(agentkernel.KindProtocol, errors.New("the answer is no list of models"))
	}
	infos := make([]ModelInfo, 0, len(entries))
	for _, raw := range entries {
		if info, ok := modelInfo(raw); ok {
			infos = append(infos, info)
		}
	}
	return infos, nil
}

// modelInfo reads one model. Endpoints agree on the id and on little else.
func modelInfo(raw json.RawMessage) (ModelInfo, bool) {
	var members map[string]any
	if json.Unmarshal(raw, &members) != nil {
		return ModelInfo{}, false
	}
	text := func(name string) string { s, _ := members[name].(string); return s }
	info := ModelInfo{ID: text("id"), Name: text("name"), OwnedBy: text("owned_by"), Raw: raw}
	if info.ID == "" {
		info.ID = info.Name
	}
	if seconds := number(members["created"]); seconds > 0 {
		info.Created = time.Unix(int64(seconds), 0).UTC()
	}
	info.ContextWindow = firstNumber(members, "context_length", "context_window", "max_context_length",
		"max_model_len", "meta.n_ctx", "meta.n_ctx_train")
	info.MaxOutput = firstNumber(members, "max_completion_tokens", "max_output_tokens",
		"top_provider.max_completion_tokens")
	return info, info.ID != ""
}

// firstNumber returns the first of the named members that is a positive number. A dot leads
// into a member that is an object.
func firstNumber(members map[string]any, names ...string) int {
	for _, name := range names {
		from := members
		if outer, inner, nested := strings.Cut(name, "."); nested {
			from, _ = members[outer].(map[string]any)
			name = inner
		}
		if n := number(from[name]); n >= 1 {
			return int(n)
		}
	}
	return 0
}

const maxNumber = 1 << 53

// number reads a number, also one in quotes; of anything else 0.
func number(v any) float64 {
	switch v := v.(type) {
	case float64:
		return min(v, maxNumber)
	case string:
		f, err := strconv.ParseFloat(v, 64)
		if err == nil && !math.IsNaN(f) {
			return min(f, maxNumber)
		}
	}
	return 0
}

// listError is what a list that did not arrive whole is reported as.
func (m *Model) listError(err error) *agentkernel.Error {
	switch {
	case errors.Is(err, errTooLong):
		return modelsError(agentkernel.KindLimit, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return modelsError(agentkernel.KindNetwork, m.clean(err))
	}
	return m.brokenError(err)
}
