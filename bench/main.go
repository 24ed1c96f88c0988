// Command bench measures what the kernel costs, beside its peers and beside the floor. README.md
// tells how each workload is built, and how to add a library.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// group is workloads that belong together.
type group struct {
	name string
	// races returns what is compared. They are measured before figures is asked.
	races   func(b *bench) []race
	figures func(b *bench, res results) ([]figure, error)
}

// groups are all of them, in the order of the table.
var groups = []group{
	{"text", textRaces, textFigures},
	{"args", argsRaces, argsFigures},
	{"blocks", blocksRaces, blocksFigures},
	{"turns", turnsRaces, turnsFigures},
	{"listeners", listenersRaces, listenersFigures},
	{"wire", wireRaces, wireFigures},
	{"floor", floorRaces, floorFigures},
	{"memory", noRaces, memoryFigures},
	{"latency", noRaces, latencyFigures},
	{"state", noRaces, stateFigures},
	{"consumers", consumersRaces, consumersFigures},
}

func noRaces(*bench) []race { return nil }

// bench is one use of this program.
type bench struct {
	effort
	ctx context.Context
	// small makes every workload a twentieth of its size, for tests.
	small bool
	// closers end what the workloads began. They are called in the end.
	closers []func()
}

// size is how large a workload of nominally n is. The names of programs tell n.
func (b *bench) size(n int) int {
	if b.small {
		return max(n/20, 2)
	}
	return n
}

func (b *bench) close() {
	for _, fn := range b.closers {
		fn()
	}
}

// measure measures one group.
func (b *bench) measure(g group) ([]figure, error) {
	res := make(results)
	for _, r := range g.races(b) {
		if err := b.run(b.ctx, r, res); err != nil {
			return nil, err
		}
	}
	figures, err := g.figures(b, res)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", g.name, err)
	}
	return figures, nil
}

func main() {
	quick := flag.Bool("quick", false, "measure less, in under 40 s; leaves a few figures out")
	full := flag.Bool("full", false, "measure longer")
	guard := flag.Float64("guard", 0, "fail only where a figure is this much worse than its target, or than what was reached of it: see reached.go")
	only := flag.String("run", "", "measure only the groups that this regular expression matches")
	flag.Parse()
	wanted, err := regexp.Compile(*only)
	if err != nil || flag.NArg() > 0 || *guard != 0 && *guard < 1 || *quick && *full {
		fmt.Fprintln(os.Stderr, "bench: these arguments make no sense")
		flag.Usage()
		os.Exit(2)
	}
	b := &bench{ctx: context.Background(), effort: effort{rounds: 7, sample: 60 * time.Millisecond}}
	switch {
	case *quick:
		b.effort = effort{rounds: 5, sample: 15 * time.Millisecond, quick: true}
	case *full:
		b.effort = effort{rounds: 15, sample: 250 * time.Millisecond}
	}
	os.Exit(b.all(wanted, *guard))
}

// all measures the groups and returns the exit code: 1 where a target was missed or, with a
// guard, a figure is worse than that allows, 2 where something could not be measured.
func (b *bench) all(wanted *regexp.Regexp, guard float64) int {
	defer b.close()
	began := time.Now()
	var figures []figure
	for _, g := range groups {
		if !wanted.MatchString(g.name) {
			continue
		}
		measured, err := b.measure(g)
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			return 2
		}
		figures = append(figures, measured...)
	}
	fmt.Printf("%s, %d × %s, %d rounds, %d s\n\n", runtime.Version(), runtime.GOMAXPROCS(0), cpu(), b.rounds, int(time.Since(began).Seconds()))
	missed, worse := print(os.Stdout, figures, guard)
	if len(missed) > 0 {
		fmt.Println("\nmissed:", strings.Join(missed, ", "))
	}
	if len(worse) > 0 {
		fmt.Println("\nworse than the guard allows:", strings.Join(worse, ", "))
	}
	if len(worse) > 0 || guard == 0 && len(missed) > 0 {
		return 1
	}
	return 0
}

// cpu is the name of the processor, where the system tells.
func cpu() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
