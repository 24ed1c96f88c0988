package agentkernel_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentkernel-go/agentkernel"
)

// fill gives every exported field below v a value that is not zero.
func fill(t testing.TB, v reflect.Value) {
	t.Helper()
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
		return
	case *json.RawMessage:
		*p = json.RawMessage(`{"x":1}`)
		return
	case *agentkernel.AgentMessage:
		var m agentkernel.Message
		fill(t, reflect.ValueOf(&m).Elem())
		*p = m
		return
	case *error:
		*p = &agentkernel.Error{Kind: agentkernel.KindRateLimit, Op: "model", Status: 429, Retryable: true,
			RetryAfter: 1500 * time.Microsecond, Err: errors.New("slow down")}
		return
	case **agentkernel.ModelRequest: // whose messages are counted
		*p = new(agentkernel.ModelRequest)
		fill(t, reflect.ValueOf(*p).Elem())
		(*p).Messages = make([]agentkernel.Message, 2)
		return
	case *any:
		*p = json.RawMessage(`{"d":1}`)
		return
	case *map[string]any:
		*p = map[string]any{"m": "x"}
		return
	}
	fillKind(t, v)
}

func fillKind(t testing.TB, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(7)
	case reflect.Float64:
		v.SetFloat(0.25)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, v.Field(i))
			}
		}
	default:
		t.Fatalf("fill does not know %v: teach it", v.Type())
	}
}

// fullEvent is an event in which every field is filled but Raw.
func fullEvent(t testing.TB) agentkernel.Event {
	var ev agentkernel.Event
	fill(t, reflect.ValueOf(&ev).Elem())
	ev.Type, ev.Raw = agentkernel.EventMessageEnd, nil
	return ev
}

func fullState(t testing.TB) agentkernel.AgentState {
	var s agentkernel.AgentState
	fill(t, reflect.ValueOf(&s).Elem())
	return s
}

// TestWireEveryField: no field of what goes over the wire is forgotten, whichever is added.
func TestWireEveryField(t *testing.T) {
	ev := fullEvent(t)
	var back agentkernel.Event
	require.NoError(t, json.Unmarshal([]byte(onWire(t, ev)), &back))
	require.Equal(t, ev, back)

	state := fullState(t)
	raw, err := json.Marshal(state)
	require.NoError(t, err)
	var again agentkernel.AgentState
	require.NoError(t, json.Unmarshal(raw, &again))
	require.Equal(t, state, again)
}

// TestWireMetadataNumbers become float64: what the doc comment of UnmarshalJSON says.
func TestWireMetadataNumbers(t *testing.T) {
	m := agentkernel.UserMessage("hi")
	m.Metadata = map[string]any{"n": 7}
	var back agentkernel.Event
	line := onWire(t, agentkernel.Event{Type: agentkernel.EventMessageEnd, RunID: "r", Seq: 1, Message: m})
	require.NoError(t, json.Unmarshal([]byte(line), &back))
	require.Equal(t, map[string]any{"n": 7.0}, back.Message.(agentkernel.Message).Metadata)
}
