"""Grammars for constrained decoding: JSON schemas become GBNF rules, regular expressions and constraints. Pure."""
