module github.com/agentkernel-go/agentkernel

go 1.26.0

require (
	github.com/google/jsonschema-go v0.4.3
	github.com/sashabaranov/go-openai v1.43.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
