"""`callwright templates`: the prompts that models are told by: list, show, check, and write out to be changed."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from callwright.config import load_config
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
    "first": "the first prompt of a conversation with tools, where system messages are folded",
    "continuing": "a later message with tools, where the tools are told again",
    "results": "what the tools gave, where tools are told in words",
    "plain_first": "the first prompt of a conversation without tools, where system messages are folded",
    "plain": "a later message without tools, where the backend keeps the conversation",
    "rules": "the house rules, and how the model may close",
}

_EXAMPLES = """\
examples:
  callwright templates list                       the six templates, and where each comes from
  callwright templates show first                 its text, and the variables that it has
  callwright templates eject prompts first        write it to prompts/first.j2, to be changed
  callwright templates check prompts              try the templates of a folder

A folder counts when the settings name it: templates = "prompts" under [prompt], or in a model's prompt table.
"""


def add_command(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "templates",
        help="list, show, check and change the prompts that models are told by",
        description="The templates of what models are told.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=lambda _: parser.print_help() or 0)
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")
    listed = verbs.add_parser("list", help="the templates, and where each comes from")
    shown = verbs.add_parser("show", help="a template's text and its variables")
    shown.add_argument("name", choices=TEMPLATE_NAMES, metavar="NAME", help=", ".join(TEMPLATE_NAMES))
    checked = verbs.add_parser("check", help="try templates; exit code 1 if one has a mistake")
    for verb, run in ((listed, run_list), (shown, run_show), (checked, run_check)):
        what = "the folder, instead of the one in the settings"
        verb.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help=what)
        verb.set_defaults(run=run)
    eject = verbs.add_parser("eject", help="write built-in templates into a folder; none is written over")
    eject.add_argument("folder", type=Path, metavar="FOLDER", help="where to")
    eject.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which; all of them otherwise ({', '.join(TEMPLATE_NAMES)})"
    )
    eject.set_defaults(run=run_eject)


def _load_sources(folder: Path | None) -> dict[PromptTemplateName, TemplateSource]:
    if folder is None:
        named = load_config(None, os.environ).prompt.templates
        folder = Path(named) if named else None
    return read_template_sources(folder) if folder else load_builtin_sources()


def run_list(arguments: argparse.Namespace) -> int:
    """Name them."""
    for name, source in _load_sources(arguments.folder).items():
        print(f"{name:12} {_DESCRIPTIONS[name]}\n{'':12} {source.origin}")
    return 0


def run_show(arguments: argparse.Namespace) -> int:
    """Print one as it is, with its variables in a comment, so that the output can be saved as a template."""
    source = _load_sources(arguments.folder)[arguments.name]
    variables = "\n".join(f"  {name:13} {meaning}" for name, meaning in TEMPLATE_VARIABLES[arguments.name].items())
    print(f"{{# {arguments.name}: {_DESCRIPTIONS[arguments.name]}\n{variables}\n#}}\n{source.text}", end="")
    return 0


def run_check(arguments: argparse.Namespace) -> int:
    """Try them with sample data."""
    sources = _load_sources(arguments.folder)
    found = [mistake for name, source in sources.items() for mistake in find_template_errors(name, source)]
    own = sum(source is not load_builtin_sources()[name] for name, source in sources.items())
    print("\n".join(found) or f"ok: {len(sources)} templates, {own} of your own")
    return 1 if found else 0


def run_eject(arguments: argparse.Namespace) -> int:
    """Write the built-in ones into files."""
    if strangers := [name for name in arguments.names if name not in TEMPLATE_NAMES]:
        raise ConfigError(
            [f"there is no template {name!r}; the names are {', '.join(TEMPLATE_NAMES)}" for name in strangers]
        )
    wanted = [name for name in TEMPLATE_NAMES if name in arguments.names or not arguments.names]
    files = {name: arguments.folder / f"{name}{TEMPLATE_SUFFIX}" for name in wanted}
    if there := [str(file) for file in files.values() if file.exists()]:
        raise ConfigError([f"{file} is there already and was left as it is; move it away first" for file in there])
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name, file in files.items():
        file.write_text(load_builtin_sources()[name].text, encoding="utf-8")
        print(f"{file} is written")
    print(f'change them, then: callwright templates check {arguments.folder}; to use them: templates = "…" in [prompt]')
    return 0
