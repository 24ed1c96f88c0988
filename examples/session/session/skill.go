package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/agentkernel-go/agentkernel"
)

// Skill is a set of instructions that the model asks for when it needs them, by the tool
// "use_skill". Within a run it gets them once; the next run begins without skills.
type Skill struct {
	Name         string
	Description  string
	Instructions string
}

// skillTool is the name of the tool.
const skillTool = "use_skill"

// skills is the skills of a session and which of them the current run uses.
type skills struct {
	all []Skill

	mu     sync.Mutex
	active []string
}

// Skills returns the names of the skills that the current run uses, in the order in which it
// asked for them.
func (s *Session) Skills() []string {
	s.skills.mu.Lock()
	defer s.skills.mu.Unlock()
	return slices.Clone(s.skills.active)
}

// tool returns the tool that hands out the instructions.
func (s *skills) tool() agentkernel.Tool {
	var text strings.Builder
	text.WriteString("Gives you the instructions of a skill, for the rest of this run. The skills:")
	names := make([]string, len(s.all))
	for i, skill := range s.all {
		names[i] = skill.Name
		fmt.Fprintf(&text, "\n- %s: %s", skill.Name, skill.Description)
	}
	return agentkernel.Tool{
		Name:        skillTool,
		Description: text.String(),
		Schema: map[string]any{
			"type":                 "object",
			"properties":           map[string]any{"name": map[string]any{"type": "string", "enum": names}},
			"required":             []string{"name"},
			"additionalProperties": false,
		},
		Execute:    s.use,
		ReadOnly:   agentkernel.Always,
		Idempotent: true,
	}
}

func (s *skills) use(_ context.Context, args json.RawMessage) (agentkernel.ToolResult, error) {
	var in struct{ Name string }
	if err := json.Unmarshal(args, &in); err != nil {
		return agentkernel.ToolResult{}, err
	}
	i := slices.IndexFunc(s.all, func(skill Skill) bool { return skill.Name == in.Name })
	if i < 0 {
		return agentkernel.ToolResult{}, fmt.Errorf("there is no skill %q", in.Name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.active, in.Name) {
		return agentkernel.TextResult("You have the instructions of this skill already."), nil
	}
	s.active = append(s.active, in.Name)
	return agentkernel.TextResult(s.all[i].Instructions), nil
}

// reset forgets which skills are in use.
func (s *skills) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = nil
}
