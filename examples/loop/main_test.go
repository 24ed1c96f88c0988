package main

import (
	"testing"

	"github.com/agentkernel-go/agentkernel/examples/internal/demotest"
)

func TestLoop(t *testing.T) { demotest.Check(t, "loop", loop) }
