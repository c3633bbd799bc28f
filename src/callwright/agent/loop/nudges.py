"""All messages that the loop itself sends to the model."""

from __future__ import annotations

import re

from callwright.agent.loop.answer_stream import COMPLETION_SIGNAL
from callwright.agent.session_events import CallDecided

__all__ = [
    "ANSWER_CUT_OFF",
    "CALL_CUT_OFF",
    "CALL_INTERRUPTED",
    "CONTINUE_OR_FINISH",
    "EMPTY_ANSWER",
    "NO_FILE_CHANGED",
    "WRITE_CONTENT",
    "describe_denial",
    "prepend_user_note",
    "strip_code_fence",
]

ANSWER_CUT_OFF = "Your answer was cut off at the token limit. Continue where it ends, in smaller steps."
CALL_CUT_OFF = (
    "This call was cut off at the token limit, and nothing was run. Make it smaller: edit the file in parts, or call "
    "write_file with a description instead of the content, and you will be asked for the content by itself."
)
NO_FILE_CHANGED = (
    "The task asks for changes, and no file has been changed yet. Make them now with the tools. "
    "If nothing needs to be changed, say why. The task is: {task}"
)
EMPTY_ANSWER = (
    f"Your answer was empty. Call a tool to continue, or describe what you did and end with {COMPLETION_SIGNAL}."
)
CONTINUE_OR_FINISH = (
    f"If the task is done, describe what you did and end with {COMPLETION_SIGNAL}. If not, call the next tool now."
)
CALL_INTERRUPTED = (
    "The program ended while this ran, so its outcome is unknown. It was not run again. "
    "Look at its traces before you decide what to do."
)
WRITE_CONTENT = (
    "You called: {view}. Now write the whole content of that file: {wanted}\n\n"
    "Answer with the content alone: no explanation, no fence around it, nothing left out."
)
_CODE_FENCE = re.compile(r"\A\s*(`{3,}|~{3,})[^\n`]*\n(.*?)\n?\1\s*\Z", re.DOTALL)


def strip_code_fence(text: str) -> str:
    """Remove the code fence that many models put around a file's content."""
    fenced = _CODE_FENCE.match(text)
    return f"{fenced[2]}\n" if fenced else text


def prepend_user_note(words: str, content: str) -> str:
    """Return the result of a call, after the user's note to the model."""
    return f"{words}\n\n{content}" if words else content


def describe_denial(decided: CallDecided) -> str:
    """Describe to the model why a call did not run."""
    why = decided.why.rstrip(".")
    decider = "The user" if decided.by == "person" else "The rules of this session"
    words = f" They say: {decided.words}" if decided.words and decided.by == "person" else ""
    return (
        f"{decider} did not allow this: {why}.{words} It was not run. Do not try the same in another form; "
        "use another approach, or say what is missing."
    )
