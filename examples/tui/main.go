// Tui is a coding agent in a terminal: what streams is drawn in a live area, what is finished
// is printed above it and scrolls away as text of the terminal does. It works in one folder,
// asks before it changes anything, and keeps each session in a file, in the folder
// agentkernel-tui/sessions of the user's configuration where -sessions names no other.
//
// While it asks and the line is empty, the keys y, n and, where it is offered, a are answers at
// once; what is typed after another key is said to the model instead. /help tells the rest.
//
// Its tools do not leave the folder, with one exception: a command that it runs may do all that
// its user may. It is asked for each time; look before you say yes.
//
// It needs no endpoint: a scripted model works in a folder of its own. With OPENAI_API_KEY or
// OPENAI_BASE_URL set (and OPENAI_MODEL) it asks that endpoint, and works in the current folder.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/agentkernel-go/agentkernel"
	"github.com/agentkernel-go/agentkernel/examples/internal/demo"
	"github.com/agentkernel-go/agentkernel/examples/tui/workspace"
	"github.com/charmbracelet/x/term"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second one ends the program
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}

// options are the flags.
type options struct {
	workspace, sessions string
	resume              int
	check               bool
	pace                time.Duration
}

// run is main in a given world. It returns the exit code.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("tui", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.workspace, "workspace", "", "the folder to work in; by default the current one, and a sample where the model is the scripted one")
	flags.StringVar(&o.sessions, "sessions", "", "the folder of the sessions; one for the user by default")
	flags.IntVar(&o.resume, "resume", 0, "go on with a session: 1 is the last one, 2 the one before")
	flags.BoolVar(&o.check, "check", false, "have the scripted model's run printed, all of it allowed, and end")
	flags.DurationVar(&o.pace, "pace", 40*time.Millisecond, "time between two words of the scripted model")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "tui: unexpected argument %q\n", flags.Arg(0))
		return 2
	}
	if err := start(ctx, o, getenv, stdin, stdout); err != nil {
		fmt.Fprintf(stderr, "tui: %s\n", demo.OneLine(err))
		return 1
	}
	return 0
}

// start chooses model and folders, and shows the chat on the terminal, or checks it.
func start(ctx context.Context, o options, getenv func(string) string, stdin io.Reader, stdout io.Writer) (err error) {
	model, err := demo.Endpoint(getenv)
	if err != nil {
		return err
	}
	if o.check {
		model = nil // everything is allowed: that is for a script only
	}
	scripted, explores := model == nil, model
	if scripted {
		model, explores = script(o.pace), explorer(o.pace)
	}
	if scripted && o.workspace == "" || o.check {
		dir, err := os.MkdirTemp("", "agentkernel-tui-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if err := makeSample(filepath.Join(dir, "workspace")); err != nil {
			return err
		}
		o.workspace = filepath.Join(dir, "workspace")
		if o.check {
			o.sessions = filepath.Join(dir, "sessions")
		}
	}
	if o.sessions == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return err
		}
		o.sessions = filepath.Join(dir, "agentkernel-tui", "sessions")
	}
	folder, err := workspace.Open(o.workspace)
	if err != nil {
		return err
	}
	defer folder.Close()
	cfg, err := config(model, explores, folder)
	if err != nil {
		return err
	}
	if o.check {
		return check(ctx, cfg, store{o.sessions}, stdout)
	}
	return show(ctx, cfg, store{o.sessions}, o.resume, stdin, stdout)
}

// makeSample makes the scripted model's workspace.
func makeSample(dir string) (err error) {
	for name, text := range sample {
		file := filepath.Join(dir, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644))
	}
	return err
}

const (
	prompt = "You work on the files of one folder with the tools that you have. Read a file before you change it. " +
		"Have explore look at what you need not see yourself. A person allows your changes and commands, or does not. Answer in markdown."
	explorePrompt = "You answer one question on the files of a folder, which you can only read. Answer in a few lines."
)

// config is the agent: its tools, and a sub-agent that only reads.
func config(model, explores agentkernel.ChatModel, folder *workspace.Workspace) (agentkernel.Config, error) {
	explore, err := agentkernel.AgentTool(agentkernel.AgentToolConfig{
		Name:        "explore",
		Description: "Has questions on the files answered by agents that can only read.",
		Agents: []agentkernel.SubAgent{{
			Name:        "explorer",
			Description: "reads, lists and searches",
			Config: agentkernel.Config{Model: explores, SystemPrompt: explorePrompt, Tools: folder.ReadTools(),
				MaxTurns: 20},
		}},
		Forward: agentkernel.ForwardEvents,
	})
	explore.Label = "explore"
	explore.ReadOnly = agentkernel.Always // as its agents' tools are
	return agentkernel.Config{Model: model, SystemPrompt: prompt, Tools: append(folder.Tools(), explore)}, err
}

// show shows the chat on a terminal until the user quits or ctx ends.
func show(ctx context.Context, cfg agentkernel.Config, sessions store, resume int, stdin io.Reader, stdout io.Writer) (err error) {
	if !isTerminal(stdin) || !isTerminal(stdout) {
		return errors.New("it needs a terminal; -check does without one")
	}
	var program *tea.Program
	c, err := newChat(cfg, sessions, func(msg any) { program.Send(msg) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	var f feed
	if resume != 0 {
		list, err := sessions.list()
		if err != nil {
			return err
		}
		if resume < 0 || resume > len(list) {
			return fmt.Errorf("there is no session %d; stored: %d", resume, len(list))
		}
		var shown []block
		if f, shown, err = c.resume(list[resume-1].name); err != nil {
			return err
		}
		if err := printAll(stdout, resumed(c.session.name, shown)); err != nil {
			return err
		}
	}
	program = tea.NewProgram(newModel(c, f), tea.WithContext(ctx), tea.WithInput(stdin), tea.WithOutput(stdout), tea.WithoutSignalHandler())
	if _, err := program.Run(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// printAll prints blocks on a terminal, before there is a live area.
func printAll(stdout io.Writer, blocks []block) error {
	var p painter
	p.resize(80)
	if f, ok := stdout.(*os.File); ok {
		if width, _, err := term.GetSize(f.Fd()); err == nil {
			p.resize(width)
		}
	}
	for _, b := range blocks {
		if _, err := lipgloss.Fprintln(stdout, strings.Join(p.block(b), "\n")); err != nil {
			return err
		}
	}
	return nil
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(f.Fd())
}
