"""Every way in which a model's server fails, as scripts, and the document that says what clients get to see of it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.integration.turns import CALL_BEGUN, CALL_ENDED, finish, said, text
from tests.support.upstream import CLOSE, DONE, HANG, READ, RESET, SILENCE, Step, answer, rate_limited, refused, sse

DOCUMENT = Path(__file__).parents[2] / "docs" / "errors.md"
WORDS = "Let me look."
LOOK: list[Step] = [*text(WORDS), READ]
"""Text that is read before the failure comes …"""
AT_ONCE = b"".join(text(WORDS))
"""… or with it: one chunk, one read."""
GARBAGE = b"data: {no json\n\n"
ERROR = sse({"error": {"message": "out of memory"}})
HALF_CALL = 'Failed to parse input at pos 12: <tool_call>{"name": "get_weather", "arguments": {"ci'

FAULTS: dict[str, list[Step]] = {
    "refuses the connection": [],
    "takes the request and says nothing": [SILENCE],
    "sends headers and nothing else": answer(SILENCE),
    "closes the connection without an answer": [CLOSE],
    "answers what is not HTTP": [b"SSH-2.0-OpenSSH_9.6\r\n", CLOSE],
    "sends garbage from the beginning": answer(GARBAGE, HANG),
    "reports an error from the beginning": answer(ERROR, HANG),
    "answers 400": refused(400, "temperature must be a number"),
    "answers 401": refused(401, "no such key"),
    "answers 404": refused(404, "no such model"),
    "answers 429": rate_limited("7"),
    "answers 500": refused(500, "out of memory"),
    "answers 500 and quotes half a call": refused(500, HALF_CALL),
    "answers 503": refused(503, "loading"),
    "falls silent in a call": answer(*LOOK, *CALL_BEGUN, SILENCE),
    "dies inside a chunk": [*answer(*LOOK, *CALL_BEGUN, end=False), READ, b"ff\r\ndata: {", READ, RESET],
    "sends garbage after text": answer(*LOOK, GARBAGE, HANG),
    "sends garbage in one read with text": answer(AT_ONCE + GARBAGE, HANG),
    "reports an error after text": answer(*LOOK, ERROR, DONE),
    "reports an error in one read with text": answer(AT_ONCE + ERROR, HANG),
    "sends text, an error and its end at once": [b"".join(answer(AT_ONCE + ERROR))],  # type: ignore[arg-type] # no pauses in it
    "closes the connection in a call": answer(*LOOK, *CALL_BEGUN, READ, CLOSE),
    "ends its answer in a call": answer(*LOOK, *CALL_BEGUN),
    "ends its answer in text": answer(*LOOK),
    "ends on `[DONE]` without a finish": answer(*LOOK, *CALL_BEGUN, *CALL_ENDED, DONE),
    "ends on a finish without `[DONE]`": answer(*LOOK, *CALL_BEGUN, *CALL_ENDED, finish("tool_calls")),
    "is reset after `[DONE]`": [*said(*LOOK, *CALL_BEGUN, *CALL_ENDED)[:-1], READ, RESET],
}


def documented(heading: str) -> dict[str, dict[str, str]]:
    """A table of the document: by the first cell of a row, then by the column's name."""
    section = DOCUMENT.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in section.splitlines() if "|" in line
    ]
    head, _, *body = rows
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in body}
