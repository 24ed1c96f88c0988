package openai

import (
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/agentkernel-go/agentkernel/internal/redact"
)

// String returns the model, the endpoint without its query, and whether there is a key. A
// Config in an unexported field of another type is out of its reach there.
func (cfg Config) String() string { return cfg.conceal() }

// Format prints [Config.String], whatever the verb.
func (cfg Config) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(cfg.String())) }

// MarshalText returns [Config.String]. A Config is not made to be read back.
func (cfg Config) MarshalText() ([]byte, error) { return []byte(cfg.String()), nil }

// LogValue is [Config.String] for log/slog.
func (cfg Config) LogValue() slog.Value { return slog.StringValue(cfg.String()) }

// String returns the name of the model, short enough for a line on a screen, such as
// "gpt-4o", and behind it the host of another endpoint than that of OpenAI:
// "deepseek-chat (api.deepseek.com)". It is what RetryInfo and the like call the model.
func (m Model) String() string {
	if m.settings == nil {
		return "openai.Model{}"
	}
	name := m.cfg.Model
	if strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) }) {
		name = strconv.Quote(name)
	}
	if host := m.cfg.host(); host != officialHost {
		name += " (" + host + ")"
	}
	return name
}

// officialHost is that of the endpoint where Config names none.
const officialHost = "api.openai.com"

// Format prints [Model.String], whatever the verb.
func (m Model) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(m.String())) }

// MarshalText returns [Model.String].
func (m Model) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// LogValue is [Model.String] for log/slog.
func (m Model) LogValue() slog.Value { return slog.StringValue(m.String()) }

func (cfg *Config) conceal() string {
	var b strings.Builder
	fmt.Fprintf(&b, "openai.Config{Model: %q", cfg.Model)
	address, key := cfg.address(), cfg.APIKey != "" || cfg.Client != nil
	if address != "" {
		fmt.Fprintf(&b, ", BaseURL: %q", bareURL(address))
	}
	if key {
		b.WriteString(", APIKey: [redacted]")
	}
	if cfg.Compat != nil && cfg.Compat.Name != "" {
		fmt.Fprintf(&b, ", Compat: %s", cfg.Compat.Name)
	}
	b.WriteString("}")
	return b.String()
}

func (cfg *Config) address() string {
	if cfg.Client != nil {
		return cfg.Client.BaseURL
	}
	return cfg.BaseURL
}

// host is that of the endpoint, with its port.
func (cfg *Config) host() string {
	u, err := url.Parse(cfg.address())
	if err != nil || u.Host == "" {
		return "no URL"
	}
	return u.Host
}

// bareURL returns scheme, host and path of an address; of one that is none, nothing.
func bareURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" {
		return "[no URL]"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// clean returns err without secrets. The errors of the HTTP client and of go-openai that hold
// an address or a body come out as copies, so that nobody finds there what the text hides; an
// error of another type stays reachable as it is.
func (m *Model) clean(err error) error {
	switch e := err.(type) {
	case nil:
		return nil
	case *url.Error:
		return &url.Error{Op: e.Op, URL: m.cleanText(e.URL), Err: m.clean(e.Err)}
	case *goopenai.APIError:
		c := *e
		c.Message, c.Type = m.cleanText(c.Message), m.cleanText(c.Type)
		if code, ok := c.Code.(string); ok {
			c.Code = m.cleanText(code)
		}
		if c.Param != nil {
			c.Param = new(m.cleanText(*c.Param))
		}
		return &c
	case *goopenai.RequestError:
		c := *e
		c.Body, c.Err = []byte(m.cleanText(string(c.Body))), m.clean(c.Err)
		return &c
	}
	return redact.Error(err, m.secrets...)
}

func (m *Model) cleanText(text string) string { return redact.Clean(text, m.secrets...) }
