"""Reads prompt templates from the configured folders. Each file replaces the built-in template of its name."""

from __future__ import annotations

from pathlib import Path

from callwright.config.settings import Config
from callwright.engine.builtin_templates import load_builtin_sources
from callwright.errors import ConfigError
from callwright.prompt.prompt_templates import TEMPLATE_NAMES, PromptTemplateName, PromptTemplates, TemplateSource
from callwright.prompt.settings import merge_prompt_settings

__all__ = ["TEMPLATE_SUFFIX", "load_templates", "read_template_sources"]

TEMPLATE_SUFFIX = ".j2"


def load_templates(config: Config) -> dict[str, PromptTemplates]:
    """Load the templates of every configured folder, by folder. Raises `ConfigError`."""
    folders = {merge_prompt_settings(config.prompt, model.prompt).templates for model in config.models}
    return {
        name: PromptTemplates(read_template_sources(Path(name))) for name in {config.prompt.templates, *folders} if name
    }


def read_template_sources(folder: Path) -> dict[PromptTemplateName, TemplateSource]:
    """Read the templates of a folder; the built-in ones fill the gaps. Raises `ConfigError`."""
    try:
        paths = {
            path.name.removesuffix(TEMPLATE_SUFFIX): path
            for path in folder.iterdir()
            if path.name.endswith(TEMPLATE_SUFFIX)
        }
        own = {
            name: TemplateSource(paths[name].read_text("utf-8"), str(paths[name]))
            for name in TEMPLATE_NAMES
            if name in paths
        }
    except OSError as problem:
        raise ConfigError([f"cannot read the templates in {folder}: {(problem.strerror or '').lower()}"]) from None
    except UnicodeDecodeError:
        raise ConfigError([f"a template in {folder} is not UTF-8; save it as UTF-8"]) from None
    if unknown := sorted(paths.keys() - set(TEMPLATE_NAMES)):
        names = ", ".join(TEMPLATE_NAMES)
        raise ConfigError([f"{paths[name]} is not a known template; known names: {names}" for name in unknown])
    return load_builtin_sources() | own
