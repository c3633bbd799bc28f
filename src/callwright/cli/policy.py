"""`callwright policy`: check a command against the agent's policy, and list the rules."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callwright.cli.subcommands import add_subcommand
from callwright.config.sources import get_config_folder

if TYPE_CHECKING:
    from rich.console import Console

    from callwright.agent.policy import Judgement, Policy
    from callwright.agent.policy.policy_rules import CommandRule, RuleFile

__all__ = ["add_command", "load_effective_policy"]

_EXAMPLES = """\
examples:
  callwright policy check 'git push -f && ls'    explain each part of a command
  callwright policy check                        check each line of input
  callwright policy check --jsonl < cases.jsonl  check a batch
  callwright policy list                         list all rules

Your rules are in callwright/policy.toml in $XDG_CONFIG_HOME (~/.config), the
rules of a project in .callwright/policy.toml. Each line of a batch is an object
with id and command; each result has id, tier, decision and why.
"""
_COLOURS = {"allow": "green", "ask": "yellow", "deny": "red", "none": "dim", "medium": "cyan", "high": "yellow"}
_COLOURS["critical"] = "bold red"


def add_command(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "policy",
        help="check what the agent may run",
        description="Check a command against the agent's policy, or list the rules.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=lambda _: parser.print_help() or 0)
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")
    about = "check a command without running it"
    check = add_subcommand(verbs, "check", about)
    check.add_argument(
        "command", nargs="?", metavar="CMD", help="the command, quoted (default: lines of standard input)"
    )
    form = check.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="output JSON")
    form.add_argument("--jsonl", action="store_true", help="check a batch: one JSON object per line, in and out")
    check.set_defaults(run=_run_check)
    about = "list all rules: built-in, yours and the project's"
    listing = add_subcommand(verbs, "list", about)
    listing.add_argument("--json", action="store_true", help="output JSON")
    listing.set_defaults(run=_run_list)
    for verb in (check, listing):
        verb.add_argument("--policy", type=Path, metavar="FILE", help="policy file to use instead of yours")
        verb.add_argument(
            "--workspace", type=Path, default=Path(), metavar="DIR", help="folder of the project (default: this one)"
        )


def load_effective_policy(user_file: Path | None, workspace: Path) -> Policy:
    """Load the policy that applies in a folder. Raises `PolicyError`, also if `user_file` does not exist."""
    from callwright.agent.policy import load_policy
    from callwright.agent.policy.policy_rules import load_rules

    if user_file:
        load_rules(user_file)
    own = user_file or get_config_folder(os.environ) / "policy.toml"
    return load_policy(own, workspace / ".callwright" / "policy.toml", workspace=workspace.resolve())


def _run_check(arguments: argparse.Namespace) -> int:
    policy = load_effective_policy(arguments.policy, arguments.workspace)
    if arguments.jsonl:
        return _check_batch(policy, sys.stdin.buffer)
    from rich.console import Console

    console = Console(highlight=False)
    for command in [arguments.command] if arguments.command is not None else _read_commands(console):
        if arguments.json:
            judged = policy.judge_command(command)
            remember = {
                "commands": judged.commands,
                "reads_only": judged.is_read_only,
                "remember": judged.allow_patterns,
            }
            print(json.dumps({**_judgement_to_dict(judged), **remember}, ensure_ascii=False))
        else:
            _print_explanation(policy, command, console)
    return 0


def _read_commands(console: Console) -> Iterator[str]:
    """Yield the lines of standard input."""
    if sys.stdin.isatty():
        console.print("Type a command to check it; nothing is run. Press Ctrl-D to exit.", style="dim")
    while line := (input("> ") if sys.stdin.isatty() else sys.stdin.readline()):
        if line.strip():
            yield line.rstrip("\n")


def _judgement_to_dict(judged: Judgement) -> dict[str, Any]:
    return {"tier": judged.tier, "decision": judged.decision, "why": judged.why}


def _check_batch(policy: Policy, lines: Iterable[bytes]) -> int:
    """Check every line in order. A line that cannot be parsed gives an error and exit code 1."""
    code = 0
    for line in lines:
        if not line.strip():
            continue
        try:
            case = json.loads(line)
            answer = {"id": case["id"], **_judgement_to_dict(policy.judge_command(_require_text(case["command"])))}
        except (ValueError, KeyError, TypeError, RecursionError):
            answer = {"id": None, "error": 'the line must be a JSON object with "id" and "command", a string'}
            code = 1
        print(json.dumps(answer, ensure_ascii=False), flush=True)
    return code


def _require_text(command: Any) -> str:
    if not isinstance(command, str):
        raise TypeError
    return command.encode("utf-8", "replace").decode()


def _print_explanation(policy: Policy, command: str, console: Console) -> None:
    """Print the decision for each part of a command, then for the whole command."""
    from rich.table import Table
    from rich.text import Text

    judged = policy.judge_command(command)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("command", "tier", "decision", "why"):
        table.add_column(name, ratio=3 if name in ("command", "why") else None)
    for verdict in policy.judge_each_command(command):
        part = Text(" ".join(verdict.argv) or "(the text)", overflow="fold")
        tier = Text(verdict.tier, style=_COLOURS[verdict.tier])
        table.add_row(part, tier, Text(verdict.decision, style=_COLOURS[verdict.decision]), Text(verdict.why))
    console.print(table)
    ending = Text.assemble((judged.decision, _COLOURS[judged.decision]), " · ", (judged.tier, _COLOURS[judged.tier]))
    console.print(ending.append(f" · {judged.why}"))
    if judged.decision == "ask":
        patterns = ", ".join(judged.allow_patterns)
        note = f"“always allow” would store: {patterns}" if patterns else "this command cannot be allowed permanently"
        console.print(Text(note, style="dim"))


def _run_list(arguments: argparse.Namespace) -> int:
    policy = load_effective_policy(arguments.policy, arguments.workspace)
    if arguments.json:
        import msgspec

        rules = {owner: msgspec.to_builtins(rule_file) for owner, rule_file in policy.list_rules()}
        print(json.dumps(rules, ensure_ascii=False))
        return 0
    from rich.console import Console

    console = Console(highlight=False)
    for owner, rule_file in policy.list_rules():
        _print_rules(owner, rule_file, console)
    console.print(
        "\nThe strictest rule wins. Commands without a rule ask first; critical commands always ask.", style="dim"
    )
    return 0


def _print_rules(owner: str, rule_file: RuleFile, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, title=f"{owner} rules", title_justify="left", title_style="bold")
    table.add_column("decision", no_wrap=True)
    table.add_column("tier", no_wrap=True)
    table.add_column("applies to", ratio=3)
    table.add_column("why", ratio=2)
    for rule in rule_file.rule:
        decision = _format_decision(rule)
        tier = Text(rule.tier or "", style=_COLOURS.get(rule.tier or "", ""))
        label = Text(rule.label if len(rule.label) < 300 else f"{rule.label[:299]}…")
        table.add_row(Text(decision, style=_COLOURS.get(decision, "")), tier, label, Text(rule.why, style="dim"))
    for file in rule_file.file:
        access = ", ".join(f"{action} {word}" for action, word in (("read", file.read), ("edit", file.edit)) if word)
        table.add_row("", "", Text(f"files {file.pattern}"), Text(access, style="dim"))
    for tool in rule_file.tool:
        table.add_row(
            Text(tool.decision, style=_COLOURS[tool.decision]), tool.tier, Text(f"tools {tool.name}"), tool.why
        )
    if table.row_count:
        console.print(table)


def _format_decision(rule: CommandRule) -> str:
    return "project" if rule.runs_project_code else rule.decision or "asks"
