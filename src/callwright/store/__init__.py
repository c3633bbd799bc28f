"""Persistent storage: the journal, conversations of backends, and the agent's sessions and snapshots.

Use `open`. Only it and the modules that it imports load the database libraries.
"""
