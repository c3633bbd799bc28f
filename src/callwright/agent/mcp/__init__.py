"""MCP servers: tools of other programs. `settings` says which, `servers` keeps them, `connection` speaks to one."""
