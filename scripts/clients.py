"""Real coding agents against a real gateway, with a model that writes its calls as text.

    make clients                                  # all of them; writes docs/clients.md
    make clients-quick                            # the quick ones
    python scripts/clients.py codex --show        # some of them, with what they print

Each client of `scripts/clients.toml` is installed by npm below `.cache`, and run in folders of its own: it must write a
file, read another and tell what that one says, all by calls that the model wrote in some dialect. Needs Node and npm.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.clients.agents import agents, runs
from tests.clients.sandbox import Outcome, perform

PAGE = ROOT / "docs" / "clients.md"
INTRODUCTION = """\
# Coding agents

Written by `make clients` on {date}. Each agent was installed from its public package and run without a terminal
against a gateway whose model writes its calls as text. Its task: write a file, read another, and tell what that one
says. A run is good when the file holds exactly what the model wrote, the answer tells the secret, and the client did
not ask more often than it should; the exit code alone counts for nothing.

| client | version | wire | the model's dialect | requests | seconds | result |
| --- | --- | --- | --- | --- | --- | --- |
"""


def page(outcomes: Iterable[Outcome]) -> str:
    rows = [
        f"| {each.run.name} | {each.run.agent.version} | {each.run.wire} | `{each.run.dialect}` | {each.requests} |"
        f" {each.seconds:.1f} | {'; '.join(each.problems) or 'good'} |\n"
        for each in outcomes
    ]
    return INTRODUCTION.format(date=datetime.datetime.now(datetime.UTC).date()) + "".join(rows)


def main() -> int:
    known = agents()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*known, []], metavar="NAME", help="which clients; all if none")
    parser.add_argument("--quick", action="store_true", help="only the quick ones")
    parser.add_argument("--show", action="store_true", help="print what the clients print")
    options = parser.parse_args()
    names = options.names or [name for name, agent in known.items() if agent.quick or not options.quick]
    outcomes = []
    for run in (run for name in names for run in runs(name, known[name])):
        outcome = perform(run)
        outcomes.append(outcome)
        verdict = "; ".join(outcome.problems) or "good"
        print(f"{run}: {outcome.requests} requests, {outcome.seconds:.1f} s: {verdict}", flush=True)
        if options.show or outcome.problems:
            print(outcome.output)
    if names == list(known):
        PAGE.write_text(page(outcomes), encoding="utf-8")
    return 1 if any(outcome.problems for outcome in outcomes) else 0


if __name__ == "__main__":
    raise SystemExit(main())
