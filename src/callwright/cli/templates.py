"""`callwright templates`: list, show, check and eject the prompt templates."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from callwright.app import load_config
from callwright.cli.subcommands import add_subcommand
from callwright.config.template_files import TEMPLATE_SUFFIX, read_template_sources
from callwright.engine.builtin_templates import load_builtin_sources
from callwright.errors import ConfigError
from callwright.prompt.prompt_templates import (
    TEMPLATE_NAMES,
    TEMPLATE_VARIABLES,
    PromptTemplateName,
    TemplateSource,
    find_template_errors,
)

__all__ = ["add_command", "run_check", "run_eject", "run_list", "run_show"]

_DESCRIPTIONS: dict[PromptTemplateName, str] = {
    "first": "first prompt with tools, if system messages are folded",
    "continuing": "later prompt with tools, if the tools are repeated",
    "results": "results of tool calls, if tools are described in the prompt",
    "plain_first": "first prompt without tools, if system messages are folded",
    "plain": "later prompt without tools, if the backend keeps the conversation",
    "rules": "your rules, and how the model can finish",
}

_EXAMPLES = """\
examples:
  callwright templates list                  list the templates and their files
  callwright templates show first            show a template and its variables
  callwright templates eject prompts first   copy it to prompts/first.j2
  callwright templates check prompts         check the templates in a folder

To use a folder, set templates = "prompts" in [prompt], or in the prompt table
of a model.
"""


def add_command(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "templates",
        help="list, check and customize the prompt templates",
        description="List, show, check and eject the templates of the prompts that models get.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=lambda _: parser.print_help() or 0)
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, run, about in (
        ("list", run_list, "list the templates and their files"),
        ("show", run_show, "show a template and its variables"),
        ("check", run_check, "check templates; exit code 1 if one has an error"),
    ):
        verb = add_subcommand(verbs, name, about)
        if run is run_show:
            verb.add_argument("name", choices=TEMPLATE_NAMES, metavar="NAME", help=", ".join(TEMPLATE_NAMES))
        verb.add_argument(
            "folder", nargs="?", type=Path, metavar="DIR", help="folder (default: the one in the configuration)"
        )
        verb.set_defaults(run=run)
    about = "copy built-in templates into a folder; existing files are not overwritten"
    eject = add_subcommand(verbs, "eject", about)
    eject.add_argument("folder", type=Path, metavar="DIR", help="folder to write to")
    eject.add_argument(
        "names", nargs="*", metavar="NAME", help=f"templates to copy (default: all): {', '.join(TEMPLATE_NAMES)}"
    )
    eject.set_defaults(run=run_eject)


def _load_sources(folder: Path | None) -> dict[PromptTemplateName, TemplateSource]:
    if folder is None:
        configured = load_config(environment=os.environ).prompt.templates
        folder = Path(configured) if configured else None
    return read_template_sources(folder) if folder else load_builtin_sources()


def run_list(arguments: argparse.Namespace) -> int:
    """List the templates."""
    for name, source in _load_sources(arguments.folder).items():
        print(f"{name:12} {_DESCRIPTIONS[name]}\n{'':12} {source.origin}")
    return 0


def run_show(arguments: argparse.Namespace) -> int:
    """Print a template with its variables in a comment, so that the output can be saved as a template."""
    source = _load_sources(arguments.folder)[arguments.name]
    variables = "\n".join(f"  {name:13} {meaning}" for name, meaning in TEMPLATE_VARIABLES[arguments.name].items())
    print(f"{{# {arguments.name}: {_DESCRIPTIONS[arguments.name]}\n{variables}\n#}}\n{source.text}", end="")
    return 0


def run_check(arguments: argparse.Namespace) -> int:
    """Render the templates with sample data and print the errors."""
    sources = _load_sources(arguments.folder)
    errors = [error for name, source in sources.items() for error in find_template_errors(name, source)]
    custom = sum(source is not load_builtin_sources()[name] for name, source in sources.items())
    print("\n".join(errors) or f"ok: {len(sources)} templates, {custom} custom")
    return 1 if errors else 0


def run_eject(arguments: argparse.Namespace) -> int:
    """Write built-in templates into files."""
    if unknown := [name for name in arguments.names if name not in TEMPLATE_NAMES]:
        raise ConfigError([f"unknown template {name!r}; available: {', '.join(TEMPLATE_NAMES)}" for name in unknown])
    names = [name for name in TEMPLATE_NAMES if name in arguments.names or not arguments.names]
    files = {name: arguments.folder / f"{name}{TEMPLATE_SUFFIX}" for name in names}
    if existing := [str(file) for file in files.values() if file.exists()]:
        raise ConfigError([f"{file} already exists and was not changed; move it away first" for file in existing])
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name, file in files.items():
        file.write_text(load_builtin_sources()[name].text, encoding="utf-8")
        print(f"Wrote {file}")
    print(f"Edit them, then run: callwright templates check {arguments.folder}")
    print(f'To use them, set templates = "{arguments.folder}" in [prompt].')
    return 0
