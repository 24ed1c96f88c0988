package openai

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/agentkernel-go/agentkernel"
)

// classify decides what kind of failure a report is and whether the same request may succeed
// later. A typed code that says it counts first, then the status, then a type that means a
// status. The text of a message decides only where those leave it open: within what
// textKinds allows a status, and where there is none.
func classify(r report) (agentkernel.Kind, bool) {
	kind := kindOf(r)
	switch kind {
	case agentkernel.KindRateLimit, agentkernel.KindOverloaded, agentkernel.KindTimeout:
		return kind, true
	case agentkernel.KindServer:
		return kind, r.status != http.StatusNotImplemented && r.status != http.StatusHTTPVersionNotSupported
	}
	return kind, false
}

func kindOf(r report) agentkernel.Kind {
	if r.status == http.StatusRequestEntityTooLarge {
		return agentkernel.KindContextOverflow // also where its code speaks of a rate: waiting does not cure it
	}
	for _, code := range r.codes {
		if kind, ok := codeKinds[code]; ok {
			return kind
		}
	}
	status := r.status
	for _, code := range r.codes {
		status = cmp.Or(status, typeStatus[code])
	}
	text := strings.ToLower(r.message + " " + strings.Join(r.codes, " "))
	for _, p := range phrases {
		if allowed(status, p.kind) && containsAny(text, p.words) {
			return p.kind
		}
	}
	return statusKind(status)
}

func containsAny(text string, words []string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// codeKinds are the typed codes that say what happened by themselves, whatever the status.
var codeKinds = map[string]agentkernel.Kind{
	"context_length_exceeded":       agentkernel.KindContextOverflow,
	"context_window_exceeded":       agentkernel.KindContextOverflow,
	"model_context_window_exceeded": agentkernel.KindContextOverflow,
	"exceed_context_size_error":     agentkernel.KindContextOverflow,
	"string_above_max_length":       agentkernel.KindContextOverflow,
	"request_too_large":             agentkernel.KindContextOverflow,
	"prompt_too_long":               agentkernel.KindContextOverflow,

	"insufficient_quota":           agentkernel.KindQuota,
	"insufficient_balance":         agentkernel.KindQuota,
	"insufficient_credits":         agentkernel.KindQuota,
	"quota_exceeded":               agentkernel.KindQuota,
	"exceeded_current_quota_error": agentkernel.KindQuota,
	"billing_hard_limit_reached":   agentkernel.KindQuota,
	"billing_not_active":           agentkernel.KindQuota,
	"billing_error":                agentkernel.KindQuota,
	"payment_required":             agentkernel.KindQuota,

	"rate_limit_exceeded":      agentkernel.KindRateLimit,
	"rate_limit_error":         agentkernel.KindRateLimit,
	"rate_limit_reached_error": agentkernel.KindRateLimit,
	"ratelimitreached":         agentkernel.KindRateLimit,
	"rate_limited":             agentkernel.KindRateLimit,
	"too_many_requests":        agentkernel.KindRateLimit,
	"too_many_requests_error":  agentkernel.KindRateLimit,
	"request_quota_exceeded":   agentkernel.KindRateLimit, // per second or minute
	"token_quota_exceeded":     agentkernel.KindRateLimit,
	"resource_exhausted":       agentkernel.KindRateLimit,
	"throttling":               agentkernel.KindRateLimit,
	"throttlingexception":      agentkernel.KindRateLimit,

	"overloaded_error":        agentkernel.KindOverloaded,
	"engine_overloaded":       agentkernel.KindOverloaded,
	"engine_overloaded_error": agentkernel.KindOverloaded,
	"server_overloaded":       agentkernel.KindOverloaded,
	"model_overloaded":        agentkernel.KindOverloaded,
	"capacity_exceeded":       agentkernel.KindOverloaded,
	"slow_down":               agentkernel.KindOverloaded,

	"invalid_api_key":                          agentkernel.KindAuth,
	"authentication_error":                     agentkernel.KindAuth,
	"invalid_authentication_error":             agentkernel.KindAuth,
	"incorrect_api_key_error":                  agentkernel.KindAuth,
	"permission_error":                         agentkernel.KindAuth,
	"permission_denied":                        agentkernel.KindAuth,
	"unauthenticated":                          agentkernel.KindAuth,
	"account_deactivated":                      agentkernel.KindAuth,
	"unsupported_country_region_territory":     agentkernel.KindAuth,
	"unsupported_country_region_territory_err": agentkernel.KindAuth,

	"content_filter":               agentkernel.KindRefusal,
	"content_filtered":             agentkernel.KindRefusal,
	"content_policy_violation":     agentkernel.KindRefusal,
	"responsibleaipolicyviolation": agentkernel.KindRefusal,
	"moderation_blocked":           agentkernel.KindRefusal,
	"data_inspection_failed":       agentkernel.KindRefusal,
	"cyber_policy_violation":       agentkernel.KindRefusal,

	"model_not_found":       agentkernel.KindInvalidRequest,
	"deploymentnotfound":    agentkernel.KindInvalidRequest,
	"unsupported_parameter": agentkernel.KindInvalidRequest,
	"unsupported_value":     agentkernel.KindInvalidRequest,
	"tool_use_failed":       agentkernel.KindInvalidRequest,
	"json_validate_failed":  agentkernel.KindInvalidRequest,
}

// typeStatus are the types that say no more than a status does.
var typeStatus = map[string]int{
	"invalid_request_error": http.StatusBadRequest,
	"invalid_request":       http.StatusBadRequest,
	"bad_request":           http.StatusBadRequest,
	"bad_request_error":     http.StatusBadRequest,
	"badrequesterror":       http.StatusBadRequest,
	"badrequest":            http.StatusBadRequest,
	"bad request":           http.StatusBadRequest,
	"invalid_argument":      http.StatusBadRequest,
	"failed_precondition":   http.StatusBadRequest,
	"validation_error":      http.StatusUnprocessableEntity,
	"unauthorized":          http.StatusUnauthorized,
	"forbidden":             http.StatusForbidden,
	"access_denied":         http.StatusForbidden,
	"not_found":             http.StatusNotFound,
	"not_found_error":       http.StatusNotFound,
	"notfounderror":         http.StatusNotFound,
	"timeout_error":         http.StatusGatewayTimeout,
	"deadline_exceeded":     http.StatusGatewayTimeout,
	"server_error":          http.StatusInternalServerError,
	"internal_server_error": http.StatusInternalServerError,
	"internalservererror":   http.StatusInternalServerError,
	"internal_error":        http.StatusInternalServerError,
	"internal":              http.StatusInternalServerError,
	"api_error":             http.StatusInternalServerError,
	"upstream_error":        http.StatusBadGateway,
	"bad_gateway":           http.StatusBadGateway,
	"service_unavailable":   http.StatusServiceUnavailable,
	"unavailable":           http.StatusServiceUnavailable,
}

// Statuses that net/http does not name.
const (
	statusCapacity   = 498
	statusOverloaded = 529
)

// statusKind is the kind of a failure of which no more than the status is known.
func statusKind(status int) agentkernel.Kind {
	switch status {
	case 0:
		return agentkernel.KindProvider
	case http.StatusUnauthorized, http.StatusForbidden:
		return agentkernel.KindAuth
	case http.StatusPaymentRequired:
		return agentkernel.KindQuota
	case http.StatusRequestTimeout:
		return agentkernel.KindTimeout
	case http.StatusConflict, http.StatusTooEarly:
		return agentkernel.KindServer // another request is in the way
	case http.StatusTooManyRequests:
		return agentkernel.KindRateLimit
	case statusCapacity, statusOverloaded:
		return agentkernel.KindOverloaded
	}
	switch {
	case status >= 500:
		return agentkernel.KindServer
	case status >= 400:
		return agentkernel.KindInvalidRequest
	}
	return agentkernel.KindProtocol
}

// textKinds are the kinds that the text of a failure with that status may still make it.
var textKinds = map[int][]agentkernel.Kind{
	http.StatusBadRequest: {
		agentkernel.KindContextOverflow, agentkernel.KindRefusal, agentkernel.KindQuota, agentkernel.KindAuth,
	},
	http.StatusUnprocessableEntity: {agentkernel.KindContextOverflow, agentkernel.KindRefusal},
	http.StatusForbidden:           {agentkernel.KindQuota, agentkernel.KindRateLimit, agentkernel.KindRefusal},
	http.StatusTooManyRequests:     {agentkernel.KindQuota},
	http.StatusInternalServerError: {agentkernel.KindContextOverflow},
	http.StatusServiceUnavailable:  {agentkernel.KindOverloaded},
}

// allowed tells whether a text may make a failure of that status that kind. Without a status
// there is nothing but the text.
func allowed(status int, kind agentkernel.Kind) bool {
	if status == 0 {
		return true
	}
	return slices.Contains(textKinds[status], kind)
}

// phrases are the words, lower-case, by which a text is told apart. The first that fits counts.
var phrases = []struct {
	kind  agentkernel.Kind
	words []string
}{
	{agentkernel.KindContextOverflow, []string{
		"context length", "context window", "context_length", "context size", "maximum context", "max context",
		"prompt is too long", "prompt too long", "input is too long", "input too long",
		"input token count", "maximum prompt length", "maximum input length", "reduce the length of the",
		"too many input tokens", "exceeds the maximum number of tokens allowed",
	}},
	{agentkernel.KindQuota, []string{
		"insufficient_quota", "insufficient quota", "exceeded your current quota", "quota exceeded", "quota has been exceeded",
		"insufficient balance", "balance is insufficient", "insufficient account balance", "credit balance",
		"insufficient credit", "requires more credits", "out of credits", "run out of credit", "no credits",
		"billing details", "billing limit", "billing hard limit", "payment required", "spending limit", "spend limit", "usage limit for this month",
	}},
	{agentkernel.KindRateLimit, []string{
		"rate limit", "rate-limit", "ratelimit", "rate_limit", "too many requests", "requests per", "tokens per min",
		"throttl", "slow down",
	}},
	{agentkernel.KindOverloaded, []string{
		"overloaded", "overload", "capacity", "server is busy", "server busy", "high demand", "no available",
	}},
	{agentkernel.KindAuth, []string{
		"api key", "api_key", "apikey", "unauthorized", "unauthenticated", "authentication", "permission denied",
		"access denied", "forbidden", "invalid token",
	}},
	{agentkernel.KindRefusal, []string{
		"content filter", "content_filter", "content management policy", "content policy", "usage policy",
		"safety system", "moderation", "flagged",
	}},
	{agentkernel.KindServer, []string{
		"internal server error", "internal error", "server had an error", "server error", "bad gateway",
		"gateway timeout", "gateway time-out", "service unavailable", "upstream error", "upstream connect",
	}},
}
