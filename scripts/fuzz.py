"""Fuzz the dialects of a shape with damaged calls and random markers, until the time is up or a law fails.

    make fuzz                                   # every shape for a minute
    python scripts/fuzz.py --shape X1 --seconds 600

An example is a turn of rendered calls with random edits (truncated, doubled, swapped, dropped, markers inserted) or of
random markers, split at random places, with a random policy for truncated calls. The laws: nothing raises, the events
follow the grammar, and the splits do not change the events. A failure is minimized and printed with the seed that
reproduces it.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from callwright import Dialect
from callwright.dialects import REGISTRY
from callwright.events import merge_deltas
from tests.support.harness import calls, cut, drive, pieces, soup

SHAPES = tuple(dict.fromkeys(dialect.shape for dialect in REGISTRY.values()))
PLACES = st.lists(st.integers(0, 4000), max_size=16)


@st.composite
def damaged(draw: st.DrawFn, dialect: Dialect) -> str:
    """Return rendered calls with a few edits."""
    text = dialect.render_text(draw(st.sampled_from(["", "Hm. ", "a\n"]))) + dialect.render_call(*draw(calls(dialect)))
    markers = (
        *dialect.markers,
        *(think.open for think in dialect.reasoning_tags),
        *(think.close for think in dialect.reasoning_tags),
    )
    for _ in range(draw(st.integers(0, 4))):
        start, size = draw(st.integers(0, len(text))), draw(st.integers(0, 12))
        middle = text[start : start + size]
        edit = draw(st.sampled_from(["drop", "double", "insert", "cut", "swap"]))
        match edit:
            case "drop":
                middle = ""
            case "double":
                middle *= 2
            case "insert":
                middle += draw(st.sampled_from([*markers, '"', "\\", "{", "}", "<", ">", "\n", " ", "'", "```"]))
            case "cut":
                return text[:start]
            case _:
                middle = middle[::-1]
        text = text[:start] + middle + text[start + size :]
    return text


def law(dialect: Dialect, data: st.DataObject) -> None:
    """Check the laws that hold for any text."""
    text = data.draw(st.one_of(damaged(dialect), soup(dialect)))
    options: dict[str, Any] = {
        "truncated": data.draw(st.sampled_from(["partial", "drop", "repair"])),
        "unknown_tool": data.draw(st.sampled_from(["text", "pass"])),
        "prefill": data.draw(st.sampled_from(["", dialect.call_prefill])),
    }
    whole = merge_deltas(drive(dialect, [text], **options))
    assert merge_deltas(drive(dialect, cut(text, data.draw(PLACES)), **options)) == whole
    assert merge_deltas(drive(dialect, pieces(text, 1), **options)) == whole


def fuzzed(shape: str, seconds: float) -> int:
    """Fuzz the dialects of one shape in turn until the time is up; return the number of examples that passed."""
    dialects = [dialect for dialect in REGISTRY.values() if dialect.shape == shape]
    end = time.monotonic() + seconds
    count = round_number = 0
    while time.monotonic() < end:
        for dialect in dialects:
            each = 50

            @seed(round_number)
            @settings(
                max_examples=each,
                deadline=None,
                database=None,
                print_blob=True,
                suppress_health_check=list(HealthCheck),
                phases=(Phase.generate, Phase.shrink),
            )
            @given(data=st.data())
            def run(data: st.DataObject) -> None:
                law(dialect, data)  # noqa: B023  # it runs before the next round

            try:
                run()
            except BaseException:
                print(f"\n{dialect.name} failed with seed {round_number}", file=sys.stderr)
                raise
            count += each
            if time.monotonic() > end:
                break
        round_number += 1
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, help="only this shape (default: every shape)")
    parser.add_argument("--seconds", type=float, default=60, help="time for each shape (default: %(default)s)")
    arguments = parser.parse_args()
    for shape in [arguments.shape] if arguments.shape else SHAPES:
        count = fuzzed(shape, arguments.seconds)
        print(f"ok {shape}: {count} examples in {arguments.seconds:.0f} s, no exception, no law broken", flush=True)


if __name__ == "__main__":
    main()
