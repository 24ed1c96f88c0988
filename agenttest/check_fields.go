package agenttest

import (
	"reflect"

	"github.com/agentkernel-go/agentkernel"
)

type (
	event     = agentkernel.Event
	eventType = agentkernel.EventType
	message   = agentkernel.Message
)

// fieldUse says which event types fill a field, as the doc comments of [agentkernel.Event]
// do. A field that is not listed may not be filled at all; one with an empty list is on
// every event.
var fieldUse = map[string][]eventType{
	"Type": {}, "RunID": {}, "ParentRunID": {}, "Seq": {}, "Time": {}, "Turn": {},

	"Attempt": {
		agentkernel.EventModelRequest, agentkernel.EventMessageStart, agentkernel.EventMessageUpdate,
		agentkernel.EventMessageEnd, agentkernel.EventMessageDiscard, agentkernel.EventRetry,
	},
	"Message": {
		agentkernel.EventMessageStart, agentkernel.EventMessageUpdate, agentkernel.EventMessageEnd,
		agentkernel.EventMessageDiscard, agentkernel.EventModelResponse,
	},
	"Delta":        {agentkernel.EventMessageUpdate},
	"DeltaKind":    {agentkernel.EventMessageUpdate},
	"ContentIndex": {agentkernel.EventMessageUpdate},
	"Coalesced":    {agentkernel.EventMessageUpdate, agentkernel.EventToolExecUpdate},
	"ToolID": {
		agentkernel.EventMessageUpdate, agentkernel.EventToolExecStart,
		agentkernel.EventToolExecUpdate, agentkernel.EventToolExecEnd,
	},
	"Tool": {
		agentkernel.EventMessageUpdate, agentkernel.EventToolExecStart,
		agentkernel.EventToolExecUpdate, agentkernel.EventToolExecEnd,
	},
	"ToolLabel":   {agentkernel.EventToolExecStart, agentkernel.EventToolExecUpdate, agentkernel.EventToolExecEnd},
	"Args":        {agentkernel.EventToolExecStart, agentkernel.EventToolExecUpdate, agentkernel.EventToolExecEnd},
	"Result":      {agentkernel.EventToolExecEnd},
	"Progress":    {agentkernel.EventToolExecUpdate},
	"UpdateKind":  {agentkernel.EventToolExecUpdate},
	"IsError":     {agentkernel.EventToolExecEnd},
	"ToolResults": {agentkernel.EventModelResponse},
	"Err": {
		agentkernel.EventError, agentkernel.EventAgentEnd,
		agentkernel.EventMessageDiscard, agentkernel.EventRetry,
	},
	"NewMessages": {agentkernel.EventAgentEnd},
	"RetryInfo":   {agentkernel.EventRetry},
	"Request":     {agentkernel.EventModelRequest},
	"Context":     {agentkernel.EventContext},
	"Summary":     {agentkernel.EventAgentEnd},
	"Duration": {
		agentkernel.EventMessageEnd, agentkernel.EventToolExecEnd,
		agentkernel.EventModelResponse, agentkernel.EventAgentEnd,
	},
}

type fieldRule struct {
	index int
	name  string
	types map[eventType]bool
}

// fieldRules is fieldUse by the fields that Event has, without those of every event.
var fieldRules = func() []fieldRule {
	var rules []fieldRule
	for i, t := 0, reflect.TypeFor[event](); i < t.NumField(); i++ {
		use, listed := fieldUse[t.Field(i).Name]
		if listed && len(use) == 0 {
			continue
		}
		types := make(map[eventType]bool, len(use))
		for _, et := range use {
			types[et] = true
		}
		rules = append(rules, fieldRule{index: i, name: t.Field(i).Name, types: types})
	}
	return rules
}()

// checkFields finds a field that an event of this type does not fill.
func checkFields(ev *event) error {
	v := reflect.ValueOf(ev).Elem()
	for i := range fieldRules {
		f := &fieldRules[i]
		if !f.types[ev.Type] && !v.Field(f.index).IsZero() {
			return breach(ev, "fields", "field %s is set on an event that does not fill it", f.name)
		}
	}
	return nil
}
