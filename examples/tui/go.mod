module github.com/agentkernel-go/agentkernel/examples/tui

go 1.26.0

require (
	github.com/agentkernel-go/agentkernel v0.0.0
	github.com/aymanbagabas/go-udiff v0.4.2
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
)

require (
	github.com/google/jsonschema-go v0.4.3 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/agentkernel-go/agentkernel => ../..
