"""Adds a subcommand whose help line is also its description."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["add_subcommand"]


def add_subcommand(commands: Any, name: str, about: str) -> argparse.ArgumentParser:
    """Add a subcommand. `about` is its line in the list of commands, and as a sentence its description."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=about, description=f"{about[0].upper()}{about[1:]}."
    )
    return parser
