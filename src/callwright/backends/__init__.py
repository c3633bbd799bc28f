"""Backends: how a model is reached, and what it can do there."""
