"""User interfaces: terminal, web page, editor protocol, scripts."""
