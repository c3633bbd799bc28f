"""The built-in prompt templates: files beside `callwright.prompt`, which reads none itself."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from callwright.prompt.templates import NAMES, Source, TemplateName, Templates

__all__ = ["built_in", "built_in_templates"]


@cache
def built_in() -> dict[TemplateName, Source]:
    """The text of each."""
    folder = files("callwright.prompt").joinpath("templates")
    return {name: Source(folder.joinpath(f"{name}.j2").read_text("utf-8"), f"built-in {name}.j2") for name in NAMES}


@cache
def built_in_templates() -> Templates:
    """All of them, compiled."""
    return Templates(built_in())
