// Package openai is an [agentkernel.ChatModel] over any endpoint that speaks the OpenAI
// Chat Completions API: OpenAI, Azure, OpenRouter, DeepSeek, Groq, Mistral, xAI, Ollama,
// llama.cpp, vLLM and gateways of that kind.
//
//	model, err := openai.New(openai.Config{
//		Model:  "gpt-4o-mini",
//		APIKey: os.Getenv("OPENAI_API_KEY"),
//	})
//
// A [Config] names the model, the endpoint and the request's parameters. What an endpoint
// takes and what it refuses is a [Compat], guessed from the base URL by [GuessCompat] or
// given: a preset such as [PresetDeepSeek], changed where it does not fit.
//
// # What is sent
//
// The request's body is this package's own encoding. The same history is the same bytes in
// every turn, and the messages come last, so that the body of a turn is a prefix of the next
// one's up to the end of its messages.
//
// Every message has a content, or calls: one with neither is left out. The arguments of a
// call are a JSON object in text, "{}" where the model wrote none or wrote no object. A tool
// result without text says "(no output)". Opaque data of the provider goes back as it came:
// the Extra of a block is merged into what the block becomes, and thinking is sent back in
// the form that [Compat.Replay] names.
//
// What a request asks for wins over the Config. Its thinking level becomes the nearest that the
// endpoint knows, and its places to keep are marked where the endpoint can be told.
//
// # What is received
//
// A response is read by this package itself: as a stream of chunks, or as the completion or
// the error that some endpoints send in its place. What an endpoint leaves out, repeats or
// writes in a way of its own is set right where that can be done without guessing: calls
// without ids or indexes are told apart, thinking that comes under several names counts once,
// the last usage that counts anything holds. Arguments are passed on as they come.
//
// An answer is whole with a finish reason or with "[DONE]"; a stream that ends before is
// truncated, and what happens to the connection afterwards is no failure. The limits of the
// Config bound every wait and no stream that is alive. An error is classified by a typed code,
// then by the status, then by its text.
//
// # Secrets
//
// A key, the query string of a base URL and the values of headers show in no error of this
// package and in no printed, logged or marshalled form of its types.
package openai
