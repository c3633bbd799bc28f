"""The gateway: the engine behind the HTTP APIs that clients speak."""
