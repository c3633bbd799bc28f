"""The gateway: the engine behind the HTTP APIs of OpenAI, Anthropic and Ollama."""
