module github.com/agentkernel-go/agentkernel/examples/cli

go 1.26.0

replace github.com/agentkernel-go/agentkernel => ../../

require (
	github.com/agentkernel-go/agentkernel v0.0.0
	github.com/expr-lang/expr v1.17.8
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
)

require (
	github.com/google/jsonschema-go v0.4.3 // indirect
	github.com/sashabaranov/go-openai v1.43.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
