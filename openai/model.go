package openai

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	goopenai "github.com/sashabaranov/go-openai"
)

const userAgent = "agentkernel-go"

// Model is a model at an endpoint. It implements [agentkernel.ChatModel], keeps nothing
// between calls, and may be used by many runs at once.
//
// Like its [Config] it shows no key, whatever it is printed with.
type Model struct {
	// A pointer, because fmt follows one of an unexported field and asks no method there.
	*settings
}

// settings is all that a Model consists of. It is never changed.
type settings struct {
	// cfg has every default filled in. A duration or a size that is negative is no limit.
	cfg Config
	// conf is the client's configuration; its HTTPClient is the bare [endpoint].
	conf   goopenai.ClientConfig
	client *goopenai.Client
	// secrets are the texts that no error may show.
	secrets []string
}

// New returns the model that cfg describes. It makes no call. What makes no sense in cfg is
// an error of kind invalid_request that names the field.
func New(cfg Config) (*Model, error) {
	if strings.TrimSpace(cfg.Model) == "" {
		return nil, badField("Model", "is empty")
	}
	m, err := connect(cfg)
	if err != nil {
		return nil, err
	}
	conf := m.conf
	conf.HTTPClient = m.newTransport(conf.HTTPClient)
	m.client = goopenai.NewClientWithConfig(conf)
	return m, nil
}

// connect returns a model that may have no name and has no client.
func connect(cfg Config) (*Model, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	conf := cfg.clientConfig()
	base, err := url.Parse(conf.BaseURL)
	if err != nil {
		return nil, badField("BaseURL", "is no URL")
	}
	m := &Model{&settings{cfg: cfg, secrets: secretsOf(&cfg, conf, base)}}
	conf.HTTPClient = &endpoint{next: conf.HTTPClient, header: m.requestHeaders(), query: base.RawQuery}
	base.RawQuery, base.Fragment = "", ""
	conf.BaseURL = base.String()
	m.conf = conf
	return m, nil
}

// clientConfig returns the go-openai configuration to start from, with an HTTP client.
func (cfg *Config) clientConfig() goopenai.ClientConfig {
	var conf goopenai.ClientConfig
	if cfg.Client != nil {
		conf = *cfg.Client
	} else {
		conf = goopenai.DefaultConfig(cfg.APIKey)
		conf.BaseURL = cfg.BaseURL
		conf.HTTPClient = nil
		if cfg.HTTPClient != nil {
			conf.HTTPClient = cfg.HTTPClient
		}
	}
	if conf.HTTPClient == nil {
		conf.HTTPClient = sharedClient(cfg.ConnectTimeout)
	}
	return conf
}

// requestHeaders returns the headers that every request carries besides the client's own.
func (m *Model) requestHeaders() http.Header {
	header := http.Header{"User-Agent": {userAgent}}
	for name, values := range m.cfg.Header {
		header[name] = slices.Clone(values)
	}
	return header
}

// endpoint sends requests to an endpoint with the headers and the query that all of them
// carry. It is what stands between a Model's transport and the HTTP client.
type endpoint struct {
	next   goopenai.HTTPDoer
	header http.Header
	query  string
}

// Do sends a copy of req.
func (e *endpoint) Do(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	maps.Copy(req.Header, e.header)
	if e.query != "" {
		if req.URL.RawQuery != "" {
			req.URL.RawQuery += "&"
		}
		req.URL.RawQuery += e.query
	}
	return e.next.Do(req)
}

// secretsOf returns the texts of a configuration that no error may show: the key, passwords
// and the values of the base URL's query, and the values of headers that carry a secret.
func secretsOf(cfg *Config, conf goopenai.ClientConfig, base *url.URL) []string {
	secrets := []string{cfg.APIKey, base.RawQuery}
	if base.User != nil {
		password, _ := base.User.Password()
		secrets = append(secrets, password)
	}
	for name, values := range base.Query() {
		if name != "api-version" {
			secrets = append(secrets, values...)
		}
	}
	for _, header := range []http.Header{cfg.Header, authHeader(conf)} {
		for name, values := range header {
			if !isSecretHeader(name) {
				continue
			}
			for _, value := range values {
				_, token, _ := strings.Cut(value, " ")
				secrets = append(secrets, value, token)
			}
		}
	}
	// The longer first: a key that is part of another text must not leave its rest behind.
	secrets = slices.DeleteFunc(secrets, func(s string) bool { return len(s) < leastSecret })
	slices.SortFunc(secrets, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(secrets)
}

// leastSecret is the length below which a text is no secret: to take "1" out of an error
// would hide the error.
const leastSecret = 4

func isSecretHeader(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"auth", "key", "token", "secret", "cookie", "password"},
		func(word string) bool { return strings.Contains(name, word) })
}

// authHeader returns the headers that a client of conf sends. The key of a go-openai
// configuration can be had in no other way. Nothing leaves the process.
func authHeader(conf goopenai.ClientConfig) http.Header {
	var probe headerProbe
	conf.HTTPClient = &probe
	client := goopenai.NewClientWithConfig(conf)
	if _, err := client.ListModels(context.Background()); err == nil {
		return nil
	}
	return probe.header
}

// headerProbe keeps the header of a request in place of sending it.
type headerProbe struct{ header http.Header }

var errProbe = errors.New("not sent")

// Do implements goopenai.HTTPDoer.
func (p *headerProbe) Do(req *http.Request) (*http.Response, error) {
	p.header = req.Header
	return nil, errProbe
}
