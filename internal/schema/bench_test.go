package schema

import (
	"encoding/json"
	"testing"
)

func BenchmarkCheck(b *testing.B) {
	s := compile(b, `{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer","minimum":1},"tags":{"type":"array","items":{"type":"string"}}},"required":["path"],"additionalProperties":false}`)
	for name, args := range map[string]string{
		"valid":   `{"path":"a/b.txt","limit":10,"tags":["x","y"]}`,
		"invalid": `{"pth":"a/b.txt","limit":"10","tags":"x"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Check(json.RawMessage(args))
			}
		})
	}
}
