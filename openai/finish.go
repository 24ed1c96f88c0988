package openai

import (
	"strings"

	"github.com/agentkernel-go/agentkernel"
)

// finishReasons maps the finish reasons of all endpoints. What is not here is a normal stop.
var finishReasons = map[string]agentkernel.StopReason{
	"tool_calls":    agentkernel.StopReasonToolUse,
	"tool_use":      agentkernel.StopReasonToolUse,
	"function_call": agentkernel.StopReasonToolUse,

	"length":                        agentkernel.StopReasonLength,
	"max_tokens":                    agentkernel.StopReasonLength,
	"max_output_tokens":             agentkernel.StopReasonLength,
	"max_length":                    agentkernel.StopReasonLength,
	"model_length":                  agentkernel.StopReasonLength,
	"model_context_window_exceeded": agentkernel.StopReasonLength,

	"content_filter":       agentkernel.StopReasonRefusal,
	"content_filtered":     agentkernel.StopReasonRefusal,
	"refusal":              agentkernel.StopReasonRefusal,
	"safety":               agentkernel.StopReasonRefusal,
	"recitation":           agentkernel.StopReasonRefusal,
	"prohibited_content":   agentkernel.StopReasonRefusal,
	"blocklist":            agentkernel.StopReasonRefusal,
	"spii":                 agentkernel.StopReasonRefusal,
	"sensitive":            agentkernel.StopReasonRefusal,
	"guardrail_intervened": agentkernel.StopReasonRefusal,

	"error":                        agentkernel.StopReasonError,
	"network_error":                agentkernel.StopReasonError,
	"insufficient_system_resource": agentkernel.StopReasonError,
	"malformed_function_call":      agentkernel.StopReasonError,
}

// stopReasonOf is the kernel's word for a finish reason; none at all is a stop.
func stopReasonOf(finish string) agentkernel.StopReason {
	if stop, ok := finishReasons[strings.ToLower(finish)]; ok {
		return stop
	}
	return agentkernel.StopReasonStop
}
