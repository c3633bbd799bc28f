"""Compare the strategies for tool calls with a model that was not trained for them.

    make embedded                                 # a hundred prompts with each strategy; writes docs/how-it-decides.md
    python scripts/embedded.py --prompts 10       # fewer prompts; writes no file

The script starts a gateway with the embedded model, SmolLM2-135M, and requests calls of four tools over Chat
Completions. Each answer must consist of calls of these tools with valid arguments. The script fails unless all answers
that a grammar constrains do. It takes up to an hour on one core, most of it for answers without calls.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import openai

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.embedded.trial import MAX_TOKENS, MISFIT, MODEL, NAMES, PROMPTS, asked, problem
from tests.support.served import Served

PAGE = ROOT / "docs" / "how-it-decides.md"
TABLE = re.compile(r"(?<=<!-- embedded:begin -->\n).*?(?=<!-- embedded:end -->)", re.DOTALL)
BACKEND = '[[backends]]\nname = "own"\nkind = "embedded"\n'
WAYS = {"constrained": "auto", "taught": "taught", "native": "native"}
"""The name of each strategy in the settings; `auto` chooses the first one for this model."""
SECONDS = 600


class Row(NamedTuple):
    """One kind of request."""

    strategy: str
    choice: str
    stream: bool = False

    @property
    def must_fit(self) -> bool:
        return self.strategy == "constrained" and self.choice != "auto"

    def __str__(self) -> str:
        return f"{self.strategy}, {self.choice}, {'streamed' if self.stream else 'whole'}"


ROWS = (
    Row("constrained", "required"),
    Row("constrained", "required", stream=True),
    Row("constrained", "named"),
    Row("constrained", "auto", stream=True),
    Row("taught", "required"),
    Row("native", "required"),
)


class Count(NamedTuple):
    """The results of a row: the reasons why answers are not valid calls; empty for valid ones."""

    row: Row
    verdicts: Counter[str]
    seconds: float

    @property
    def is_bad(self) -> bool:
        """Return whether an invalid call got through, or a call is missing that must be there."""
        fit = self.verdicts[""] == self.verdicts.total()
        return self.row.strategy == "constrained" and (self.verdicts[MISFIT] > 0 or (self.row.must_fit and not fit))

    @property
    def others(self) -> str:
        return ", ".join(f"{count} {why}" for why, count in self.verdicts.most_common() if why)


def counted(api: openai.OpenAI, row: Row, prompts: Sequence[str]) -> Count:
    """Send all requests and count the results."""
    verdicts: Counter[str] = Counter()
    seconds = []
    for number, prompt in enumerate(prompts):
        begun = time.perf_counter()
        verdict = judged(api, row, prompt, NAMES[number % len(NAMES)])
        seconds.append(time.perf_counter() - begun)
        verdicts[verdict.partition(":")[0]] += 1
        if verdict and row.must_fit:
            print(f"  {prompt!r}: {verdict}", flush=True)
    return Count(row, verdicts, median(seconds))


def judged(api: openai.OpenAI, row: Row, prompt: str, name: str) -> str:
    """Return why an answer does not consist of valid calls; empty if it does."""
    choice: Any = {"type": "function", "function": {"name": name}} if row.choice == "named" else row.choice
    try:
        answer = asked(api, row.strategy, prompt, choice, stream=row.stream)
    except openai.InternalServerError as refusal:
        return f"no call in three tries: {refusal}"
    if row.choice == "named" and any(called != name for called, _ in answer.calls):
        return f"{MISFIT}: {name} was asked for, and not {answer.calls}"
    return problem(answer, words=row.choice == "auto")


def check_strategies(log: str) -> None:
    """Check that every turn used the strategy of its row."""
    turns = [json.loads(line) for line in log.splitlines() if '"event":"turn"' in line]
    assert turns
    assert not [turn for turn in turns if turn["strategy"] != turn["model"]]


INTRODUCTION = """
Written by `make embedded` on {date}: {prompts} prompts in many languages, four tools with enumerations, ranges,
patterns and nested objects, at most {tokens} tokens for an answer, on the embedded model, SmolLM2-135M. An answer
counts if it is calls of offered tools whose arguments fit their schemas, and nothing else. Whether they are what the
user wanted is another matter: this model is too small for that.

| strategy | `tool_choice` | streamed | calls that fit | all others | median seconds |
| --- | --- | --- | --- | --- | --- |
"""


def table(counts: Sequence[Count]) -> str:
    prompts = counts[0].verdicts.total()
    lines = [
        f"| `{row.strategy}` | {row.choice if row.choice == 'named' else f'`{row.choice}`'} |"
        f" {'yes' if row.stream else 'no'} | {verdicts['']} of {prompts} | {count.others} | {seconds:.1f} |\n"
        for count in counts
        for row, verdicts, seconds in (count,)
    ]
    date = datetime.datetime.now(datetime.UTC).date()
    return INTRODUCTION.format(date=date, prompts=prompts, tokens=MAX_TOKENS) + "".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--prompts", type=int, default=len(PROMPTS), metavar="N", help="number of prompts (default: all)"
    )
    wanted = parser.parse_args().prompts
    prompts = PROMPTS[:: len(PROMPTS) // wanted][:wanted]
    models = "".join(f'[[models]]\nname = "{name}"\nmodel = "{MODEL}"\ntools = "{how}"\n' for name, how in WAYS.items())
    counts = []
    with tempfile.TemporaryDirectory() as folder, Served(Path(folder), BACKEND + models) as gateway:
        with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="unused", max_retries=0, timeout=SECONDS) as api:
            for row in ROWS:
                count = counted(api, row, prompts)
                counts.append(count)
                print(f"{'BAD' if count.is_bad else 'ok '} {row}: {count.verdicts['']} of {len(prompts)} fit", end="")
                print(f"; {count.others or 'no others'}; {count.seconds:.1f} s", flush=True)
        check_strategies(gateway.log.read_text(encoding="utf-8"))
    if len(prompts) == len(PROMPTS):
        page, found = TABLE.subn(lambda _: table(counts), PAGE.read_text(encoding="utf-8"))
        assert found == 1
        PAGE.write_text(page, encoding="utf-8")
    return 1 if any(count.is_bad for count in counts) else 0


if __name__ == "__main__":
    raise SystemExit(main())
