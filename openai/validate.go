package openai

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/agentkernel-go/agentkernel"
)

// badField is the error for a field of [Config] that makes no sense.
func badField(field, format string, args ...any) *agentkernel.Error {
	return &agentkernel.Error{
		Kind: agentkernel.KindInvalidRequest,
		Op:   "openai config",
		Err:  fmt.Errorf("%s: "+format, append([]any{field}, args...)...),
	}
}

// check says which field of cfg, whose defaults are filled in, makes no sense.
func (cfg *Config) check() error {
	for _, check := range []func() error{
		cfg.checkEndpoint, cfg.checkHeader, cfg.checkSampling, cfg.checkThinking,
		cfg.ResponseFormat.check, cfg.Compat.check,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (cfg *Config) checkEndpoint() error {
	switch {
	case cfg.Client == nil:
		_, err := parseBase(cfg.BaseURL, "BaseURL")
		if err == nil && !validHeaderValue(cfg.APIKey) {
			err = badField("APIKey", "holds a line break or a control character")
		}
		return err
	case cfg.APIKey != "":
		return badField("APIKey", "contradicts Client, which has a key of its own")
	case cfg.BaseURL != "":
		return badField("BaseURL", "contradicts Client, which has a base URL of its own")
	case cfg.HTTPClient != nil:
		return badField("HTTPClient", "contradicts Client: set Client.HTTPClient")
	}
	_, err := parseBase(cfg.Client.BaseURL, "Client.BaseURL")
	return err
}

// parseBase reads a base URL. Its errors do not quote it: it may hold a key.
func parseBase(raw, field string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, badField(field, "is no URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, badField(field, "does not begin with http:// or https://")
	case u.Hostname() == "":
		return nil, badField(field, "names no host")
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions"):
		return nil, badField(field, "ends in /chat/completions; give what stands before")
	}
	return u, nil
}

func (cfg *Config) checkHeader() error {
	for name, values := range cfg.Header {
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == ':' || r > '~' }) {
			return badField("Header", "%q is no header name", name)
		}
		if http.CanonicalHeaderKey(name) != name {
			return badField("Header", "%q is not in canonical form: use Header.Set", name)
		}
		if !allOf(values, validHeaderValue) {
			return badField("Header", "the value of %q holds a line break or a control character", name)
		}
	}
	return nil
}

func validHeaderValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

func allOf[T any](items []T, ok func(T) bool) bool {
	return !slices.ContainsFunc(items, func(item T) bool { return !ok(item) })
}

func (cfg *Config) checkSampling() error {
	if bad := notNumber(cfg.Temperature); bad || cfg.Temperature != nil && *cfg.Temperature < 0 {
		return badField("Temperature", "is %v", *cfg.Temperature)
	}
	if bad := notNumber(cfg.TopP); bad || cfg.TopP != nil && (*cfg.TopP < 0 || *cfg.TopP > 1) {
		return badField("TopP", "is %v, not from 0 to 1", *cfg.TopP)
	}
	if slices.Contains(cfg.Stop, "") {
		return badField("Stop", "holds an empty text")
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.ExtraBody)) {
		if name == "" {
			return badField("ExtraBody", "has a field without a name")
		}
		if _, err := json.Marshal(cfg.ExtraBody[name]); err != nil {
			return badField("ExtraBody", "%q: %w", name, err)
		}
	}
	return nil
}

func notNumber(f *float64) bool { return f != nil && (math.IsNaN(*f) || math.IsInf(*f, 0)) }

func (cfg *Config) checkThinking() error {
	off := cfg.Thinking != nil && !*cfg.Thinking
	on := cfg.Thinking != nil && *cfg.Thinking
	effort := cfg.ReasoningEffort
	switch {
	case off && effort != "" && effort != effortNone:
		return badField("ReasoningEffort", "is %q, which contradicts Thinking false", effort)
	case on && effort == effortNone:
		return badField("ReasoningEffort", "is %q, which contradicts Thinking true", effort)
	case cfg.ThinkingBudget <= 0:
		return nil
	case off:
		return badField("ThinkingBudget", "contradicts Thinking false")
	case effort != "":
		return badField("ThinkingBudget", "contradicts ReasoningEffort: set one of them")
	case !cfg.Compat.Thinking.hasBudget():
		return badField("ThinkingBudget", "has no form at this endpoint: see Compat.Thinking")
	}
	return nil
}
