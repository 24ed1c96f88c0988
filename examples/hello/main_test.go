package main

import (
	"testing"

	"github.com/agentkernel-go/agentkernel/examples/internal/demotest"
)

func TestHello(t *testing.T) { demotest.Check(t, "hello", hello) }
