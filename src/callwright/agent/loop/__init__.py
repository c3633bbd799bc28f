"""The agent loop: decides what happens next, as a generator of effects, and performs nothing itself."""
