"""What the played sessions of the web face's tests do: a failing test is mended, with two questions on the way."""

from __future__ import annotations

from callwright.agent.changes.diff import Hunk
from callwright.agent.session_events import (
    ApprovalRequested,
    BranchCreated,
    CallDecided,
    CallProgress,
    CheckpointSaved,
    FilesChanged,
    FileStat,
    GroupClosed,
    GroupOpened,
    HistoryCondensed,
    ModelAnswered,
    ModelNudged,
    SessionEvent,
    TextAppended,
    ThinkingAppended,
    ThinkingEnded,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnStarted,
    WarningIssued,
)
from callwright.model import Message, Text, ToolCall, Usage

SAID = """The test expects amounts to be **rounded half up**, and `total` leaves it to `round`, which is half even:

```python
def total(prices: list[Decimal]) -> Decimal:
    return round(sum(prices), 2)
```

I will

1. quantize with `ROUND_HALF_UP`,
2. run the tests again.

See [the decimal module](https://docs.python.org/3/library/decimal.html).
"""

TOTAL = """@@ -1,3 +1,5 @@
-from decimal import Decimal
+from decimal import ROUND_HALF_UP, Decimal
+
+CENT = Decimal("0.01")
 def parse(text: str) -> Decimal:
     return Decimal(text.strip())
"""
ROUND = """@@ -12,3 +14,3 @@ def total(prices: list[Decimal]) -> Decimal:
     if not prices:
         return Decimal(0)
-    return round(sum(prices), 2)
+    return sum(prices).quantize(CENT, ROUND_HALF_UP)
"""
NOTES = """@@ -3,2 +3,3 @@ Unreleased
 - Prices may have a currency sign.
+- Totals are rounded half up.
 - The basket can be emptied.
"""
FILES = {
    "src/shop/total.py": [
        Hunk(id="a1", before=(0, 1), after=(0, 1), text=TOTAL, added=3, removed=1),
        Hunk(id="b2", before=(0, 1), after=(0, 1), text=ROUND, added=1, removed=1),
    ],
    "CHANGELOG.md": [Hunk(id="c3", before=(0, 1), after=(0, 1), text=NOTES, added=1, removed=0)],
}
"""What is to be reviewed when the story is over."""

COMMAND = ApprovalRequested(
    approval="approval-1",
    call="call-3",
    subject="command",
    title="Run a command",
    why="`pip install` changes what is installed, and runs code of the package.",
    tier="medium",
    command="pip install pytest-randomly && pytest -q tests/test_total.py",
    folder="~/project",
    remember=('["pip", "install"]', '["pytest", "-q"]'),
)
EDIT = ApprovalRequested(
    approval="approval-2",
    call="call-4",
    subject="edit",
    title="Edit .env",
    why=".env is protected: files of this name often hold secrets.",
    tier="high",
    diff="--- .env\n+++ .env\n@@ -1,2 +1,3 @@\n DEBUG=0\n-CURRENCY=EUR\n+CURRENCY=CHF\n+ROUNDING=half-up\n",
)


def saying(text: str, size: int = 7) -> list[SessionEvent]:
    """Words as they stream, in pieces."""
    return [TextAppended(text[at : at + size]) for at in range(0, len(text), size)]


def answered(text: str = "") -> ModelAnswered:
    usage = Usage(prompt_tokens=900, completion_tokens=120)
    message = Message("assistant", (Text(text),))
    return ModelAnswered(purpose="turn", message=message, finish="stop", usage=usage, seconds=2.5)


def tool(call: str, name: str, view: str, content: str, **ended: object) -> list[SessionEvent]:
    """A call that the policy allows."""
    allowed = CallDecided(call=ToolCall(call, name, "{}"), verdict="allow", by="policy", why="Reading is allowed.")
    end = {"status": "ok", "seconds": 0.3, **ended}
    return [
        allowed,
        CheckpointSaved(call=call, paths=()),
        ToolStarted(call=call, name=name, view=view),
        ToolFinished(call=call, name=name, view=view, content=content, **end),  # type: ignore[arg-type]
    ]


def asking(asked: ApprovalRequested, name: str, view: str, told: str, content: str) -> list[SessionEvent]:
    """A call that a person is asked about."""
    return [
        asked,
        ToolStarted(call=asked.call, name=name, view=view, command=asked.command),
        *([ToolOutput(call=asked.call, text=line) for line in told.splitlines(keepends=True)]),
        ToolFinished(
            call=asked.call, name=name, view=view, status="ok", content=content or told, seconds=4.2, exit_code=0
        ),
    ]


EDITED = (
    FileStat(path="src/shop/total.py", added=4, removed=2),
    FileStat(path="CHANGELOG.md", added=1, removed=0),
)
PYTEST = "".join(f"tests/test_total.py::test_{number} PASSED\n" for number in range(24)) + "24 passed in 0.31s\n"

STORY: list[SessionEvent] = [
    BranchCreated(branch="agent/rounding", previous="main"),
    TurnStarted(number=1),
    *[
        ThinkingAppended(piece)
        for piece in ("The failure is about ", "rounding: 0.125 becomes 0.12. ", "Look at total first.")
    ],
    ThinkingEnded(3.4),
    *saying("I look at the code and at the failing test first."),
    answered(),
    GroupOpened(title="Look around", calls=2),
    *tool("call-1", "read_file", "Read src/shop/total.py, lines 1 to 40", "from decimal import Decimal\n" * 30),
    *tool("call-2", "search_workspace", "Search for “half_up”", "tests/test_total.py:14: half_up\n"),
    GroupClosed(),
    TurnStarted(number=2),
    *saying(SAID),
    *[CallProgress(name="edit_file", characters=count) for count in (40, 180, 420)],
    answered(SAID),
    GroupOpened(title="Round half up", calls=3),
    *tool("call-5", "edit_file", "Edit src/shop/total.py", "Edited.", files=EDITED[:1], diff=TOTAL + ROUND, wrote=True),
    *tool("call-6", "edit_file", "Edit CHANGELOG.md", "Edited.", files=EDITED[1:], diff=NOTES, wrote=True),
    FilesChanged(files=EDITED),
    *asking(COMMAND, "run_terminal_command", "Run pip install pytest-randomly && pytest", PYTEST, ""),
    GroupClosed(),
    HistoryCondensed(before=12_400, after=5_100),
    ModelNudged("The tests passed; say what you did."),
    WarningIssued("Commands run without a sandbox: bubblewrap is not installed."),
    TurnStarted(number=3),
    *saying("Totals are now rounded half up, and all 24 tests pass."),
    answered(),
]
"""Every kind of event that a session has while it works, but for the ones about its beginning and its end."""
