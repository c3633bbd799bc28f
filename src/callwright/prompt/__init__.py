"""What the model is told, as pure functions from a request to a request. `prepare` puts them together."""
