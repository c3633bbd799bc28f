"""Incremental parsing of text: a source, streaming JSON, and JSON repair. Independent of models and tool calls."""
