"""The workspace: the folder that the agent works in, and the only paths that it can access."""
