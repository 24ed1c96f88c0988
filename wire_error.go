package agentkernel

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/agentkernel-go/agentkernel/internal/redact"
)

// WireProblem is what is wrong with a record of a wire stream. It is an error itself, so
// that errors.Is(err, agentkernel.WireGap) works.
type WireProblem string

// The problems.
const (
	// WireGarbage: the record is no JSON, or lacks what its type must carry.
	WireGarbage WireProblem = "garbage"
	// WireVersionMismatch: the record's "v" is not [WireVersion].
	WireVersionMismatch WireProblem = "version"
	// WireGap: records before this one are missing.
	WireGap WireProblem = "gap"
	// WireDuplicate: the record, or a part of it, came before.
	WireDuplicate WireProblem = "duplicate"
	// WireSkipped: the record cannot be used, since records before it are missing.
	WireSkipped WireProblem = "skipped"
	// WireReference: the record refers to messages or results that did not come.
	WireReference WireProblem = "reference"
)

// Error returns the problem's name.
func (p WireProblem) Error() string { return string(p) }

// WireError says which record of a wire stream is wrong, and how.
type WireError struct {
	Problem WireProblem
	// RunID and Seq are those of the record, as far as they could be read.
	RunID string
	Seq   uint64
	// After is the last seq of that run that was taken, where a [Decoder] reports.
	After uint64
	// Err says more. It may be nil.
	Err error
}

// Error returns the error on one line.
func (e *WireError) Error() string {
	text := fmt.Sprintf("agentkernel: wire %s at seq %d of run %q, after seq %d", string(e.Problem), e.Seq, e.RunID, e.After)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Is reports whether target is this error's problem.
func (e *WireError) Is(target error) bool {
	p, ok := target.(WireProblem)
	return ok && p == e.Problem
}

// Unwrap returns the cause.
func (e *WireError) Unwrap() error { return e.Err }

// wireError is an error as JSON.
type wireError struct {
	Kind       Kind   `json:"kind"`
	Op         string `json:"op,omitempty"`
	Message    string `json:"message"`
	Retryable  bool   `json:"retryable"`
	RetryAfter millis `json:"retry_after_ms,omitzero"`
	Status     int    `json:"status,omitempty"`
}

// errorToWire flattens err: the outermost [*Error] in it, and as message what that one wraps.
// An error that is none, or that has no kind, has the kind "internal".
// What crashes while it is asked is told by its crash.
func errorToWire(err error) *wireError {
	if err == nil {
		return nil
	}
	w, crash := askHarness(func() (*wireError, error) { return flatten(err), nil })
	if crash != nil {
		return &wireError{Kind: KindInternal, Message: validText(crash.Error())}
	}
	return w
}

func flatten(err error) *wireError {
	e, ok := err.(*Error)
	switch inner, found := errors.AsType[*Error](err); {
	case !ok && !found:
		return &wireError{Kind: KindInternal, Message: validText(redact.Text(err))}
	case !ok: // what wraps it has more to say
		e = &Error{Kind: inner.Kind, Status: inner.Status, Retryable: inner.Retryable, RetryAfter: inner.RetryAfter, Err: err}
	}
	w := &wireError{Kind: cmp.Or(e.Kind, KindInternal), Op: validText(e.Op), Retryable: e.Retryable, RetryAfter: millis(e.RetryAfter), Status: e.Status}
	if e.Err != nil {
		w.Message = validText(redact.Text(e.Err))
	}
	return w
}

// UnmarshalJSON refuses an error without what the schema requires.
func (w *wireError) UnmarshalJSON(data []byte) error {
	type plainError wireError
	var read struct {
		plainError
		Message   *string `json:"message"`
		Retryable *bool   `json:"retryable"`
	}
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	if read.Kind == "" || read.Message == nil || read.Retryable == nil {
		return errors.New("an error without kind, message or retryable")
	}
	*w = wireError(read.plainError)
	w.Message, w.Retryable = *read.Message, *read.Retryable
	return nil
}

// err is the error that the record tells of, with the text of the original.
func (w *wireError) err() error {
	if w == nil {
		return nil
	}
	e := &Error{Kind: w.Kind, Op: w.Op, Status: w.Status, Retryable: w.Retryable, RetryAfter: time.Duration(w.RetryAfter)}
	if w.Message != "" {
		e.Err = errors.New(w.Message)
	}
	return e
}

// millis is a duration as JSON: a decimal number of milliseconds, exact to the nanosecond.
type millis time.Duration

// MarshalJSON writes the number without trailing zeros.
func (d millis) MarshalJSON() ([]byte, error) {
	n, sign := uint64(d), ""
	if d < 0 {
		n, sign = -n, "-"
	}
	text := fmt.Sprintf("%s%d.%06d", sign, n/1e6, n%1e6)
	return []byte(strings.TrimSuffix(strings.TrimRight(text, "0"), ".")), nil
}

// UnmarshalJSON reads any JSON number; what is finer than a nanosecond is cut off.
func (d *millis) UnmarshalJSON(data []byte) error {
	text := string(data)
	if text == "null" {
		return nil
	}
	whole, fraction, _ := strings.Cut(text, ".")
	if len(fraction) > 6 {
		fraction = fraction[:6]
	}
	n, err := strconv.ParseInt(whole+(fraction + "000000")[:6], 10, 64)
	if err == nil && !strings.ContainsAny(text, "eE") {
		*d = millis(n)
		return nil
	}
	f, err := strconv.ParseFloat(text, 64) // an exponent
	if f *= 1e6; err != nil || math.Abs(f) >= math.MaxInt64 {
		return fmt.Errorf("%.40s is no duration in milliseconds", text)
	}
	*d = millis(f)
	return nil
}
