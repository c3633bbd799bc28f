"""Loads the built-in prompt templates: files in `callwright.prompt`, which itself reads no files."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from callwright.prompt.prompt_templates import TEMPLATE_NAMES, PromptTemplateName, PromptTemplates, TemplateSource

__all__ = ["load_builtin_sources", "load_builtin_templates"]


@cache
def load_builtin_sources() -> dict[PromptTemplateName, TemplateSource]:
    """Load the text of each template."""
    folder = files("callwright.prompt").joinpath("templates")
    return {
        name: TemplateSource(folder.joinpath(f"{name}.j2").read_text("utf-8"), f"built-in {name}.j2")
        for name in TEMPLATE_NAMES
    }


@cache
def load_builtin_templates() -> PromptTemplates:
    """Load and compile all templates."""
    return PromptTemplates(load_builtin_sources())
