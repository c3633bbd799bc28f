"""The engine: one turn, from a `Request` to events that hold on every law."""
