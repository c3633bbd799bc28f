"""Commands: the terminal, its sandbox, and the processing of its output."""
