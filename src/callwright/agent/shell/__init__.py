"""Commands: the terminal, the sandbox around it, and what is shown of its output."""
