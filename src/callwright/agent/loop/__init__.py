"""The agent loop: decides what happens next as a generator of effects, and does nothing itself."""
