package openai

import (
	"maps"
	"net/http"
	"slices"
	"time"

	goopenai "github.com/sashabaranov/go-openai"
)

// Config says which model to ask, where, and how. The zero value of a field is its
// documented default; a negative duration or size is no limit, any other negative number
// none. A field with a default of its endpoint is not sent where it is zero. What a request
// itself asks for (its ThinkingLevel, Temperature and CacheKey) wins over the fields here.
//
// A Config holds a key. Printed with any verb, logged or marshalled it shows the model, the
// endpoint without its query and whether there is a key, and nothing else.
type Config struct {
	// Model is the model's name at the endpoint; with Azure, the deployment's. Required.
	Model string
	// APIKey is sent as a bearer token. Empty sends none, as local servers like it.
	APIKey string
	// BaseURL is the endpoint's address up to "/chat/completions". A query string in it goes
	// with every request. Empty means "https://api.openai.com/v1".
	BaseURL string
	// HTTPClient makes the calls. Its own Timeout, if it has one, cuts healthy streams: leave
	// it zero and use the limits below. Nil means a client that the models of a program share.
	HTTPClient *http.Client
	// Client is a go-openai client configuration to use in place of APIKey, BaseURL and
	// HTTPClient, as for Azure. It is copied.
	Client *goopenai.ClientConfig
	// Header is sent with every request, in place of what would be sent under its names.
	Header http.Header
	// Compat is what the endpoint takes and refuses. Nil means [GuessCompat] of the base URL.
	Compat *Compat

	// ConnectTimeout is how long a connection may take. Zero means 30 s.
	ConnectTimeout time.Duration
	// HeaderTimeout is how long the response's header may take once the request can be sent.
	// Zero means 2 min.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a stream may send no byte. Zero means 2 min.
	IdleTimeout time.Duration
	// KeepAliveLimit is how long keep-alive comments alone count as life of a stream. Zero
	// means 5 min.
	KeepAliveLimit time.Duration
	// TailTimeout is how long to wait for the usage after the finish reason; then the message
	// is finished without. Zero means 5 s.
	TailTimeout time.Duration
	// MaxLineBytes bounds one line of a stream. Zero means 16 MiB.
	MaxLineBytes int

	// Temperature and TopP steer the sampling. Nil leaves them to the endpoint.
	Temperature, TopP *float64
	// Stop ends the answer before any of these texts.
	Stop []string
	// Seed makes the sampling repeatable where the endpoint can do that.
	Seed *int
	// MaxTokens bounds the answer, the thinking included.
	MaxTokens int
	// ToolChoice is "auto", "none", "required" or the name of a tool that the model must
	// call. It is sent only with tools. "required" and a name hold for every turn of a run.
	ToolChoice string
	// ParallelToolCalls says whether one message may hold several calls. It is sent only
	// with tools.
	ParallelToolCalls *bool
	// ReasoningEffort is how much to think in the endpoint's words: "none", "low", "high", …
	ReasoningEffort string
	// Thinking switches thinking on or off, in the form that Compat.Thinking names.
	Thinking *bool
	// ThinkingBudget bounds the thinking in tokens where Compat.Thinking has a form for it.
	ThinkingBudget int
	// ResponseFormat asks for JSON. Nil leaves it to the endpoint, which means text.
	ResponseFormat *ResponseFormat
	// PromptCacheKey ties requests with a common beginning to one cache.
	PromptCacheKey string
	// User is an id of the end user for the endpoint's abuse checks.
	User string
	// ExtraBody holds further fields of the body. They win over every field above, whole
	// values at a time; nil is sent as null.
	ExtraBody map[string]any
}

const (
	defaultBaseURL        = "https://api.openai.com/v1"
	defaultConnectTimeout = 30 * time.Second
	defaultHeaderTimeout  = 2 * time.Minute
	defaultIdleTimeout    = 2 * time.Minute
	defaultKeepAliveLimit = 5 * time.Minute
	defaultTailTimeout    = 5 * time.Second
	defaultMaxLineBytes   = 16 << 20
)

// withDefaults returns a copy of cfg, sharing no slice or map of its own, with every default
// filled in.
func (cfg Config) withDefaults() Config {
	if cfg.Client != nil {
		client := *cfg.Client
		cfg.Client = &client
	} else {
		orDefault(&cfg.BaseURL, defaultBaseURL)
	}
	if cfg.Compat == nil {
		cfg.Compat = guess(cfg)
	}
	compat := *cfg.Compat
	compat.Omit = slices.Clone(compat.Omit)
	compat.Efforts = slices.Clone(compat.Efforts)
	cfg.Compat = &compat

	orDefault(&cfg.ConnectTimeout, defaultConnectTimeout)
	orDefault(&cfg.HeaderTimeout, defaultHeaderTimeout)
	orDefault(&cfg.IdleTimeout, defaultIdleTimeout)
	orDefault(&cfg.KeepAliveLimit, defaultKeepAliveLimit)
	orDefault(&cfg.TailTimeout, defaultTailTimeout)
	orDefault(&cfg.MaxLineBytes, defaultMaxLineBytes)

	cfg.Header = cfg.Header.Clone()
	cfg.Stop = slices.Clone(cfg.Stop)
	cfg.ExtraBody = maps.Clone(cfg.ExtraBody)
	return cfg
}

// orDefault gives a field that is zero its default.
func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
