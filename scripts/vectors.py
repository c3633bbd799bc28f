"""Write the rendered vectors of a dialect: a standard set of difficult calls in its format.

    python scripts/vectors.py hermes qwen3_coder     # no names: all dialects

Lines whose id does not begin with `rendered/` were written by hand and are not changed. A rendered vector expects the
call that it was rendered from, not the result of our parser.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from callwright import Dialect
from callwright.dialects import REGISTRY
from callwright.model import ToolCall
from tests.support.harness import VECTORS, markers_of

Said = tuple[str, dict[str, Any]]
WEATHER: Said = ("get_weather", {"city": "Oslo", "days": 2})
PING: Said = ("ping", {})


def _write(content: str) -> Said:
    return "write_file", {"path": "src/a b.py", "content": content}


def cases(dialect: Dialect) -> dict[str, tuple[str, list[Said]]]:
    """Return the text before the calls, and the calls, by the name of the case."""
    marker = markers_of(dialect)[-1]
    nulls = {} if dialect.nested_format == "elements" else {"maybe": None}
    return {
        "one-call": ("", [WEATHER]),
        "no-arguments": ("", [PING]),
        "no-arguments-then-arguments": ("", [PING, WEATHER]),
        "same-call-twice": ("", [WEATHER, WEATHER]),
        "three-calls": ("", [WEATHER, PING, _write("x")]),
        "text-before": ("Let me look.", [WEATHER]),
        "quotes": ("", [_write("say \"hi\", it's 'ok'")]),
        "backslashes": ("", [_write("C:\\new\\table \\n \\\\ end\\")]),
        "tabs-and-indents": ("", [_write("def f():\n\treturn 1\n    # four")]),
        "newlines-at-both-ends": ("", [_write("\n\nmiddle\n\n")]),
        "unicode": ("", [_write("naïve ☃ 😀 日本 \u2028")]),
        "json-looking": ("", [_write('{"a": [1, null, "b"]}')]),
        "number-as-string": ("", [_write("42")]),
        "word-as-string": ("", [_write("null")]),
        "empty-string": ("", [_write("")]),
        "html": ("", [_write('<a href="x">a < b &amp; c</a>')]),
        "own-marker": ("", [_write(f"before {marker} after")]),
        "typed": (
            "",
            [
                (
                    "typed",
                    {
                        "text": "3",
                        "count": -7,
                        "ratio": 0.5,
                        "flag": True,
                        "tags": ["a", "b c"],
                        "options": {"a": "x", **({"deep": None} if nulls else {})},
                        **nulls,
                    },
                )
            ],
        ),
    }


def rendered(dialect: Dialect) -> list[dict[str, Any]]:
    """Return the vectors of all cases."""
    lines = []
    for name, (before, said) in cases(dialect).items():
        calls = [
            ToolCall(dialect.make_call_id(tool, at), tool, json.dumps(given, ensure_ascii=False))
            for at, (tool, given) in enumerate(said)
        ]
        expect: dict[str, Any] = {"calls": said, "finish": "tool_calls"}
        if before:
            expect["content"] = before
        if dialect.late_ids:
            expect["repairs"] = ["late_id"] * len(said)
        text = (dialect.render_text(before) if before else "") + dialect.render_call(*calls)
        lines.append({"id": f"rendered/{name}", "text": text, "prefill": dialect.call_prefill, "expect": expect})
        if not lines[-1]["prefill"]:
            del lines[-1]["prefill"]
    return lines


def main(names: list[str]) -> None:
    for name in names or list(REGISTRY):
        path = VECTORS / f"{name}.jsonl"
        old = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
        by_hand = [line for line in old if line.strip() and not json.loads(line)["id"].startswith("rendered/")]
        new = [json.dumps(line, ensure_ascii=False) for line in rendered(REGISTRY[name])]
        path.write_text("\n".join([*by_hand, *new]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
