"""Prompt templates from the folders that the settings name; each file replaces the built-in template of its name."""

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
    """The templates of every folder that is named, by that name. Raises `ConfigError`."""
    folders = {merge_prompt_settings(config.prompt, model.prompt).templates for model in config.models}
    return {
        name: PromptTemplates(read_template_sources(Path(name))) for name in {config.prompt.templates, *folders} if name
    }


def read_template_sources(folder: Path) -> dict[PromptTemplateName, TemplateSource]:
    """All templates, as a folder has them. Raises `ConfigError` for a folder or a file that is not right."""
    try:
        found = {
            path.name.removesuffix(TEMPLATE_SUFFIX): path
            for path in folder.iterdir()
            if path.name.endswith(TEMPLATE_SUFFIX)
        }
        own = {
            name: TemplateSource(found[name].read_text("utf-8"), str(found[name]))
            for name in TEMPLATE_NAMES
            if name in found
        }
    except OSError as problem:
        raise ConfigError([f"the templates in {folder} cannot be read: {(problem.strerror or '').lower()}"]) from None
    except UnicodeDecodeError:
        raise ConfigError([f"a template in {folder} is not UTF-8 text; save it as that"]) from None
    if strangers := sorted(found.keys() - set(TEMPLATE_NAMES)):
        raise ConfigError(
            [
                f"{found[name]} is no template that there is; the names are {', '.join(TEMPLATE_NAMES)}"
                for name in strangers
            ]
        )
    return load_builtin_sources() | own
