package main

import "testing"

// BenchmarkPrograms runs each program by itself, for profiles:
//
//	go test -run '^$' -bench 'Programs/text/text10000$/agent$' -cpuprofile cpu.prof
func BenchmarkPrograms(b *testing.B) {
	all := newBench(b)
	for _, g := range groups {
		for _, r := range g.races(all) {
			for _, p := range r.programs {
				b.Run(g.name+"/"+r.name+"/"+p.name, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						if _, err := p.run(b.Context()); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*p.units), "ns/unit")
				})
			}
		}
	}
}

// BenchmarkLatency is the delay of one delta, and that of a bare channel hop.
func BenchmarkLatency(b *testing.B) {
	b.Run("hop", func(b *testing.B) {
		for b.Loop() {
			hopDelays(latencyDeltas)
		}
	})
	b.Run("agent", func(b *testing.B) {
		for b.Loop() {
			if _, err := agentDelays(b.Context(), latencyDeltas); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkState is Agent.State beside a stream, with a long history and without one.
func BenchmarkState(b *testing.B) {
	for name, n := range map[string]int{"empty": 0, "long": longHistory} {
		b.Run(name, func(b *testing.B) {
			s, err := newStateful(n, false)
			if err != nil {
				b.Fatal(err)
			}
			err = s.during(b.Context(), func() {
				for b.Loop() {
					_ = s.agent.State()
				}
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkMemory holds a thousand runs at once, for heap profiles.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		if _, err := memoryFigures(newBench(b), nil); err != nil {
			b.Fatal(err)
		}
	}
}
