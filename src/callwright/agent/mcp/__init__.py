"""MCP servers: tools of other programs. `settings` names them, `servers` manages them, `connection` talks to one."""
