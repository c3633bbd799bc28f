"""User interfaces: terminal, web page, editor protocol and scripts."""
