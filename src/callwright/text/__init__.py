"""Incremental text: a source to read from, JSON as it streams, JSON mended. Knows nothing of models or calls."""
