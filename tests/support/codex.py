"""The real Codex for tests, and a provider for it: what a Responses server says, as bytes for `upstream.py`.

    python -m tests.support.codex        # fetches the pinned program below `.cache`, as `callwright codex install` does

Where it cannot be fetched its tests are skipped; in continuous integration (CI is set) that is a failure.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from callwright.backends.codex.binary import get_install_path
from callwright.cli.codex import install_codex
from callwright.errors import BackendError
from tests.support.upstream import Step, answer

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "codex"
PROGRAM = get_install_path(CACHE)
NEEDED = pytest.mark.skipif(not PROGRAM.is_file() and not os.environ.get("CI"), reason="codex is not installed")

USAGE = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 3},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 18,
}


def event(kind: str, **fields: Any) -> bytes:
    """One event of a response."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def item(step: str, kind: str, **fields: Any) -> bytes:
    """An item that is `added` or `done`."""
    return event(f"response.output_item.{step}", output_index=0, item={"type": kind, **fields})


CREATED = event("response.created", response={"id": "resp_1", "status": "in_progress", "output": []})
COMPLETED = event("response.completed", response={"id": "resp_1", "status": "completed", "output": [], "usage": USAGE})


def text(*pieces: str) -> list[bytes]:
    """A message, in these deltas."""
    whole = [{"type": "output_text", "text": "".join(pieces), "annotations": []}]
    return [
        item("added", "message", id="msg_1", role="assistant", status="in_progress", content=[]),
        *(event("response.output_text.delta", item_id="msg_1", content_index=0, delta=each) for each in pieces),
        item("done", "message", id="msg_1", role="assistant", status="completed", content=whole),
    ]


def reasoning(*parts: str, seal: str = "sealed") -> list[bytes]:
    """A summary of thoughts, in these parts, with what the provider wants back."""
    steps = [item("added", "reasoning", id="rs_1", summary=[])]
    for number, part in enumerate(parts):
        about = {"item_id": "rs_1", "summary_index": number}
        steps.append(event("response.reasoning_summary_part.added", **about, part={"type": "summary_text", "text": ""}))
        steps.append(event("response.reasoning_summary_text.delta", **about, delta=part))
    summary = [{"type": "summary_text", "text": part} for part in parts]
    return [*steps, item("done", "reasoning", id="rs_1", summary=summary, encrypted_content=seal)]


def call(call_id: str, name: str, arguments: str) -> list[bytes]:
    """A call of a function."""
    about = {"id": f"fc_{call_id}", "call_id": call_id, "name": name}
    return [
        item("added", "function_call", **about, arguments="", status="in_progress"),
        event("response.function_call_arguments.delta", item_id=about["id"], output_index=0, delta=arguments),
        item("done", "function_call", **about, arguments=arguments, status="completed"),
    ]


def ended(status: str, **fields: Any) -> bytes:
    """The last event of a response that did not complete."""
    return event(f"response.{status}", response={"id": "resp_1", "status": status, "output": [], **fields})


def responded(*steps: Step) -> list[Step]:
    """A whole response."""
    return answer(CREATED, *steps, COMPLETED)


def main() -> int:
    try:
        install_codex(CACHE)
    except (BackendError, OSError) as problem:
        print(f"codex cannot be fetched: {problem}", file=sys.stderr)
        return 1 if os.environ.get("CI") else 0
    (CACHE / ".stamp").touch()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
