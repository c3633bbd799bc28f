"""Build the prompt of a model, as pure functions from a request to a request. `request_prompt` combines them."""
