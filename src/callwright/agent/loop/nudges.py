"""What the model is told on our own account, in one place, so that it is one voice."""

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

ANSWER_CUT_OFF = "Your answer was cut off at the token limit. Go on from where it ends, in smaller steps."
CALL_CUT_OFF = (
    "This call was cut off at the token limit, and nothing was run. Make it smaller: edit the file in parts, or call "
    "write_file with a description instead of the content, and you will be asked for the content by itself."
)
NO_FILE_CHANGED = (
    "The task asks for changes, and no file has been changed yet. Make them now with the tools. "
    "If nothing needs to be changed, say why. The task is: {task}"
)
EMPTY_ANSWER = f"You said nothing. Call a tool to go on, or tell what you did and end with {COMPLETION_SIGNAL}."
CONTINUE_OR_FINISH = (
    f"If the task is done, tell what you did and end with {COMPLETION_SIGNAL}. If not, go on: call the next tool now."
)
CALL_INTERRUPTED = (
    "The program was ended while this ran, so nobody knows how far it came. It was not run again. "
    "Look at its traces before you decide what to do."
)
WRITE_CONTENT = (
    "You called: {view}. Now write the whole content of that file: {wanted}\n\n"
    "Answer with the content alone: no explanation, no fence around it, nothing left out."
)
_CODE_FENCE = re.compile(r"\A\s*(`{3,}|~{3,})[^\n`]*\n(.*?)\n?\1\s*\Z", re.DOTALL)


def strip_code_fence(text: str) -> str:
    """The content that a model wrote, without the fence that many put around it all the same."""
    fenced = _CODE_FENCE.match(text)
    return f"{fenced[2]}\n" if fenced else text


def prepend_user_note(words: str, content: str) -> str:
    """What came of a call, after what the person wants the model to know of it."""
    return f"{words}\n\n{content}" if words else content


def describe_denial(decided: CallDecided) -> str:
    """Why a call did not run, for the model."""
    why = decided.why.rstrip(".")
    who = "The person" if decided.by == "person" else "The rules of this session"
    words = f" They say: {decided.words}" if decided.words and decided.by == "person" else ""
    return (
        f"{who} did not allow this: {why}.{words} It was not run. Do not try the same in another form; "
        "find another way, or say what is missing."
    )
