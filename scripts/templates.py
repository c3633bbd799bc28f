"""Render known calls with real chat templates, and parse them with the dialect of each family.

    make templates                                    # all templates; writes docs/templates.md
    python scripts/templates.py --show Qwen3-Coder    # some templates, with the text that they render

The templates are in the source archive of the package `llama-cpp-python`; none of it is in this repository. For each
template, a conversation is rendered with and without the model's turn. The difference is what the model would write,
and the end of the prompt is the prefill.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from itertools import product, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import SandboxedEnvironment

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from download import downloaded, store

from callwright import Dialect, collect, get_dialect
from callwright.dialects import find_model_dialect
from callwright.dialects.base import build_tool_schema
from callwright.model import ToolSpec
from tests.support.harness import PING, SIZES, WEATHER, WRITE, drive, pieces

CACHE = ROOT / ".cache" / "templates"
ARCHIVE = "llama-cpp-python==0.3.36"
INSIDE = "vendor/llama.cpp/models/templates/"
PAGE = ROOT / "docs" / "templates.md"

# Templates whose files are not named like the models.
NAMES = {"Cohere2MoE": "cohere", "StepFun3.5-Flash": "qwen3_coder"}

# Where a template changes what the scene asks for, found by reading it; of such a turn only the calls are judged.
LOSSY = {
    ("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "text"): "writes the text as a second turn, after the call",
    ("NVIDIA-Nemotron-Nano-v2", "text"): "writes the text as a turn of its own",
    ("NVIDIA-Nemotron-Nano-v2", "reasoning"): "writes the reasoning as a turn of its own",
    ("openai-gpt-oss-120b", "text"): "writes text before a call as reasoning",
}

# What templates raise when they are given something that they do not expect.
TROUBLE = (jinja2.TemplateError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

DROPS_TEXT = "drops text beside calls"
DROPS_REASONING = "drops reasoning beside calls"
CHUNK = re.compile(r"""["']thinking["']: ["']""")
ASKED = "Hello"
ANSWERED = "Goodbye"
STANDING = 30
"""Length above which a common ending of two conversations is more than an end-of-turn token."""


class Scene(NamedTuple):
    """One turn of the model."""

    calls: list[tuple[str, dict[str, Any]]]
    text: str = ""
    reasoning: str = ""


FORECAST = ("get_weather", {"city": 'Oslo "N" \\ ☃', "days": 2})
CODE = ("write_file", {"path": "a.py", "content": "def f(x):\n\treturn '<b>' + \"x\"\n"})
SCENES = {
    "one call": Scene([FORECAST]),
    "no arguments": Scene([("ping", {})]),
    "two calls": Scene([FORECAST, CODE]),
    "text": Scene([CODE], text="Let me look."),
    "reasoning": Scene([FORECAST], reasoning="They want the weather."),
}


class Written(NamedTuple):
    """A scene as rendered by a template, and what the template omits."""

    prefill: str
    text: str
    end: str
    calls: list[tuple[str, dict[str, Any]]]
    lost: tuple[str, ...]


class Verdict(NamedTuple):
    """The result of a scene. `good`: everything that the template rendered was parsed."""

    good: bool
    note: str = ""
    shown: str = ""


class NotWrittenError(Exception):
    """A template cannot render a scene."""


class RefusedError(jinja2.TemplateError):
    """The template reports that it does not support this."""


# ── the templates ────────────────────────────────────────────────────────────────────────────────


def templates() -> Iterator[Path]:
    """Return the template files, downloaded once."""
    if not CACHE.exists():
        with downloaded(ARCHIVE, "--no-binary", "llama-cpp-python") as path, tarfile.open(path) as tar:
            inside = [one for one in tar if one.isfile() and INSIDE in one.name and one.name.endswith(".jinja")]
            store(((Path(one.name).name, tar.extractfile(one).read()) for one in inside), CACHE)
    yield from sorted(CACHE.glob("*.jinja"))


def compiled(source: str) -> jinja2.Template:
    """Compile a template in the environment of transformers and llama.cpp. Some templates append to lists."""
    environment = SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = _to_json
    environment.filters["from_json"] = json.loads
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC).strftime(form)
    # Transformers' tag for what the model wrote; it prints nothing.
    return environment.from_string(re.sub(r"\{%-?\s*(?:end)?generation\s*-?%\}", "", source))


def _to_json(value: Any, **options: Any) -> str:
    kept = {key: options[key] for key in ("indent", "separators", "sort_keys") if key in options}
    return json.dumps(value, ensure_ascii=False, default=list, **kept)


def _refuse(message: str) -> None:
    raise RefusedError(message)


def render(
    template: jinja2.Template, messages: list[dict[str, Any]], *, thinking: bool, generation: bool = False
) -> str:
    """Render a conversation, with all variables that any of the templates needs."""
    tools = [_described(tool) for tool in (WEATHER, PING, WRITE)]
    variables = {
        **dict.fromkeys(("bos_token", "eos_token", "pad_token", "unk_token"), ""),
        **dict.fromkeys(("thinking", "enable_thinking"), thinking),
        "reasoning_effort": "high" if thinking else "no_think",
        "functions": json.dumps(tools),
        "datetime": "2026-01-02",
    }
    return template.render(messages=messages, tools=tools, add_generation_prompt=generation, **variables)


def _described(tool: ToolSpec) -> dict[str, Any]:
    """Return a tool whose parameters have descriptions, which a few templates need."""
    properties = {name: {**body, "description": name} for name, body in tool.parameters["properties"].items()}
    return build_tool_schema(ToolSpec(tool.name, tool.description, {**tool.parameters, "properties": properties}))


# ── what a template writes of a scene ─────────────────────────────────────────────────────────────


def written(template: jinja2.Template, it: Dialect, scene: Scene) -> Written:
    """Return what the model would write, from the rendering that omits the least."""
    best: Written | None = None
    problem: Exception = NotWrittenError("drops calls beside text" if scene.text else "drops calls")
    for assistant in messages(it, scene):
        try:
            prefill, text, end = turn_of(template, assistant, scene)
        except TROUBLE as trouble:
            problem = trouble
            continue
        calls = [call for call in scene.calls if call[0] in text]
        lost = tuple(losses(scene, calls, prefill + text))
        if calls and (best is None or len(lost) < len(best.lost)):
            best = Written(prefill, text, end, calls, lost)
    if best is None:
        raise NotWrittenError from problem
    return best


def messages(it: Dialect, scene: Scene) -> Iterator[dict[str, Any]]:
    """Yield the model's turn in the forms that templates expect, which differ in arguments and reasoning."""
    contents: list[Any] = [scene.text] if scene.text else [None, ""]
    thought: dict[str, Any] = {}
    if scene.reasoning:
        thought = dict.fromkeys(("reasoning_content", "reasoning", "thinking"), scene.reasoning)
        contents.append([{"type": "thinking", "thinking": scene.reasoning}])
        contents += [think.open + scene.reasoning + think.close for think in it.reasoning_tags[:1]]
    for content, as_text in product(contents, (False, True)):
        calls = [
            {
                "id": it.make_call_id(tool, at),
                "type": "function",
                "function": {"name": tool, "arguments": json.dumps(given, ensure_ascii=False) if as_text else given},
            }
            for at, (tool, given) in enumerate(scene.calls)
        ]
        yield {"role": "assistant", "content": content, "tool_calls": calls} | ({} if content else thought)


def turn_of(template: jinja2.Template, assistant: dict[str, Any], scene: Scene) -> tuple[str, str, str]:
    """Return the prefill, the text of the model, and the end-of-turn token."""
    user = {"role": "user", "content": ASKED}
    answer = {"role": "assistant", "content": ANSWERED}
    thinking = bool(scene.reasoning)
    plain = render(template, [user], thinking=thinking)
    prompt = render(template, [user], thinking=thinking, generation=True)
    full = render(template, [user, assistant], thinking=thinking)
    end = render(template, [user, answer], thinking=thinking).rpartition(ANSWERED)[2].strip()
    standing = full[len(full) - _shared(plain[::-1], full[::-1]) :]
    if len(standing) > STANDING:
        full = full.removesuffix(standing)
        if not full.startswith(plain):
            prompt = plain.removesuffix(standing) + prompt.removeprefix(plain)
    begin = prompt.rindex(ASKED) + len(ASKED)
    common = _shared(prompt, full)
    if common == len(prompt):
        return prompt[begin:], full[common:], end
    if thinking and scene.reasoning in full:
        # The prompt opens the reasoning in words that the history does not repeat.
        return prompt[begin:], full[full.rindex(scene.reasoning) :], end
    # The prompt closes reasoning that the history does not show. Not in the middle of a marker that both begin alike.
    common = max(prompt.rfind(last, 0, common) + 1 for last in ">\n]")
    return prompt[begin:common], full[common:], end


def _shared(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def losses(scene: Scene, calls: list[tuple[str, dict[str, Any]]], text: str) -> Iterator[str]:
    """Return what a template omits from a scene or changes."""
    if len(calls) < len(scene.calls):
        yield "writes the first call of a turn only"
    if "None" in text or any(given and str(given) in text for _, given in calls):
        yield "writes values as Python"
    if scene.text not in text:
        yield DROPS_TEXT
    if scene.reasoning not in text or CHUNK.search(text):
        yield DROPS_REASONING


# ── judging ──────────────────────────────────────────────────────────────────────────────────────


def judged(name: str, source: str) -> dict[str, Verdict]:
    """Run every scene with one template."""
    if "tool_calls" not in source:
        return {}
    it = family(name)
    if it is None:
        return dict.fromkeys(SCENES, Verdict(False, "no dialect goes by this name"))
    try:
        template = compiled(source)
    except jinja2.TemplateError as problem:
        return dict.fromkeys(SCENES, Verdict(False, f"the template does not compile: {problem}"))
    return {label: _read(template, it, scene, LOSSY.get((name, label), "")) for label, scene in SCENES.items()}


def family(name: str) -> Dialect | None:
    """Return the dialect of a template's models, looked up by name."""
    return get_dialect(NAMES[name]) if name in NAMES else find_model_dialect(name)


def _read(template: jinja2.Template, it: Dialect, scene: Scene, lossy: str) -> Verdict:
    """Check that the dialect parses what the template rendered, with any chunk size."""
    try:
        prefill, text, end, wanted, lost = written(template, it, scene)
    except NotWrittenError as failure:
        problem = failure.__cause__
        if isinstance(problem, RefusedError):
            return Verdict(True, f"refuses: {problem}")
        return Verdict(isinstance(problem, NotWrittenError) and bool(scene.text), f"{problem}")
    shown = f"{prefill!r} + {text!r}"
    for size in SIZES:
        turn = collect(drive(it, pieces(text, size), prefill=prefill))
        got = [(call.name, json.loads(call.arguments) if call.complete else None) for call in turn.tool_calls]
        if got != wanted:
            return Verdict(False, f"read {got}", shown)
        said = turn.text.strip().removesuffix(end).strip(), turn.reasoning.strip()
        expected = scene.text * (DROPS_TEXT not in lost), scene.reasoning * (DROPS_REASONING not in lost)
        if said != expected and not lossy:
            return Verdict(False, f"text and reasoning {said}", shown)
    return Verdict(True, ", ".join(filter(None, (lossy, *lost))), shown)


# ── the table ────────────────────────────────────────────────────────────────────────────────────

INTRODUCTION = """# Chat templates of real models

Written by `make templates`. The {total} chat templates inside the source archive of PyPI's `llama-cpp-python` render
turns whose calls are known. The dialect for the template's name reads the model's part back, after the prefill
that the prompt ends with, in pieces of {sizes} and all characters.

{read} turns were read back completely: names, values, text and reasoning. {lossy} more were refused or shortened by the
template itself; what it did write was read. {none} templates write no calls at all.

✓ read back completely · ~ read back as far as the template wrote it · ✗ wrong
"""


def row(name: str, source: str, verdicts: dict[str, Verdict]) -> str:
    """Return the row of a template."""
    it = family(name) if verdicts else None
    why = "; ".join(f"{label}: {one.note}" for label, one in verdicts.items() if one.note)
    if not verdicts:
        why = "lists the tools, leaves calls to the text of the turn" if "tools" in source else "knows no tools"
    marks = [("~" if one.note else "✓") if one.good else "✗" for one in verdicts.values()] or [""] * len(SCENES)
    return f"| {name} | {f'`{it.name}`' if it else ''} | {' | '.join(marks)} | {why.replace('|', '&#124;')} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", metavar="NAME", help="only these templates, with the text that they render")
    show = parser.parse_args().show
    rows = [
        f"| template | dialect | {' | '.join(SCENES)} | what the template does |",
        "| --- " * (len(SCENES) + 3) + "|",
    ]
    tally: Counter[str] = Counter()
    for path in templates():
        if show and show not in path.stem:
            continue
        source = path.read_text(encoding="utf-8")
        verdicts = judged(path.stem, source)
        rows.append(row(path.stem, source, verdicts))
        tally["total"] += 1
        tally["none"] += not verdicts
        for label, verdict in verdicts.items():
            tally["wrong" if not verdict.good else "lossy" if verdict.note else "read"] += 1
            if show or not verdict.good:
                print(f"{path.stem}, {label}: {verdict.note or 'ok'}\n    {verdict.shown}")
    if not show:
        numbers = {"sizes": ", ".join(map(str, SIZES[:-1])), **dict.fromkeys(("lossy", "none"), 0), **tally}
        PAGE.write_text(INTRODUCTION.format(**numbers) + "\n" + "\n".join(rows) + "\n", encoding="utf-8")
    print(f"{tally['total']} templates, {tally['none']} of them without calls; turns: {tally['read']} read back whole,")
    print(f"{tally['lossy']} read as far as the template wrote them, {tally['wrong']} wrong")
    return 1 if tally["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
