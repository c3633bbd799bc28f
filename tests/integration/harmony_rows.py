"""What gpt-oss and its servers make of Harmony in the wild, and what a client must hear of each.

One row for each line of the table in the reference on Harmony; the reports are named there and in the vectors. The
prompt has written `<|start|>assistant` already.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.integration.wires import Call

__all__ = ["ROWS", "Row"]

OSLO = Call("get_weather", {"city": "Oslo"})
PING = Call("ping", {})
BODY = '{"city": "Oslo"}'
TO = "to=functions.get_weather"
NEXT = "<|start|>assistant"
FINAL = "<|channel|>final<|message|>"
DONE = f"{NEXT}{FINAL}Done.<|return|>"


class Row(NamedTuple):
    """What the server sends, and what the client hears."""

    sent: str
    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()

    @property
    def heard(self) -> tuple[str, str, tuple[Call, ...], str]:
        return self.text, self.reasoning, self.calls, "tool_calls" if self.calls else "stop"


def _thought(rest: str) -> str:
    return f"<|channel|>analysis<|message|>Hm.<|end|>{NEXT}{rest}"


ROWS: dict[str, Row] = {
    "as it should be": Row(
        _thought(f"<|channel|>commentary {TO} <|constrain|>json<|message|>{BODY}<|call|>"), "", "Hm.", (OSLO,)
    ),
    "a preamble, then a call": Row(
        f"<|channel|>commentary<|message|>Let me look.<|end|>{NEXT}<|channel|>commentary {TO} <|constrain|>json"
        f"<|message|>{BODY}<|call|>",
        "Let me look.",
        "",
        (OSLO,),
    ),
    "two calls": Row(
        f"<|channel|>commentary {TO} <|constrain|>json<|message|>{BODY}<|call|>{NEXT}<|channel|>commentary "
        "to=functions.ping <|constrain|>json<|message|>{}<|call|>",
        calls=(OSLO, PING),
    ),
    "a call on the analysis channel": Row(
        _thought(f"<|channel|>analysis {TO} code<|message|>{BODY}<|call|>"), "", "Hm.", (OSLO,)
    ),
    "channel for constrain": Row(f" {TO}<|channel|>commentary<|channel|>json<|message|>{BODY}<|call|>", calls=(OSLO,)),
    "channel glued to the recipient": Row(
        f"<|channel|>commentary {TO}<|channel|>commentary<|message|>{BODY}<|call|>", calls=(OSLO,)
    ),
    "channel twice": Row(
        f"<|channel|>analysis<|channel|>commentary {TO} <|constrain|>json<|message|>{BODY}<|call|>", calls=(OSLO,)
    ),
    "recipient in both sections": Row(
        f" {TO}<|channel|>commentary {TO} <|constrain|>json<|message|>{BODY}<|call|>", calls=(OSLO,)
    ),
    "recipient twice": Row(
        f"<|channel|>commentary {TO} {TO} <|constrain|>json<|message|>{BODY}<|call|>", calls=(OSLO,)
    ),
    "no constrain": Row(f"<|channel|>commentary {TO} json<|message|>{BODY}<|call|>", calls=(OSLO,)),
    "no type": Row(f"<|channel|>commentary {TO}<|message|>{BODY}<|call|>", calls=(OSLO,)),
    "a space after constrain": Row(
        f"<|channel|>commentary {TO} <|constrain|> json<|message|>{BODY}<|call|>", calls=(OSLO,)
    ),
    "prose after constrain": Row(
        f"<|channel|>commentary {TO} <|constrain|>json with the city<|message|>{BODY}<|call|>", calls=(OSLO,)
    ),
    "type glued to the name": Row(f"<|channel|>commentary {TO}json<|message|>{BODY}<|call|>", calls=(OSLO,)),
    "no message before the arguments": Row(
        f"<|channel|>commentary {TO} <|constrain|>json{BODY}<|call|>", calls=(OSLO,)
    ),
    "recipient in the role section alone": Row(
        f" {TO}<|channel|>commentary <|constrain|>json<|message|>{BODY}<|call|>", calls=(OSLO,)
    ),
    "a typed final": Row('<|channel|>final <|constrain|>json<|message|>{"a": 1}<|return|>', '{"a": 1}'),
    "no message after final": Row("<|channel|>final The answer is 3.<|return|>", "The answer is 3."),
    "a bare refusal": Row("I'm sorry, but I can't help with that.<|return|>", "I'm sorry, but I can't help with that."),
    "no markup at all": Row("It is 3 degrees.", "It is 3 degrees."),
    "no end before the next message": Row(
        f"<|channel|>analysis<|message|>Hm.{NEXT}{FINAL}Done.<|return|>", "Done.", "Hm."
    ),
    "channel inside content": Row(f"<|channel|>analysis<|message|>Hm.{FINAL}Done.<|return|>", "Done.", "Hm."),
    "no start before the next message": Row(
        f"<|channel|>analysis<|message|>Hm.<|end|>{FINAL}Done.<|return|>", "Done.", "Hm."
    ),
    "a newline after the end": Row(f"<|channel|>analysis<|message|>Hm.<|end|>\n{DONE}", "Done.", "Hm."),
    "free text after the call": Row(
        f"<|channel|>commentary {TO} <|constrain|>json<|message|>{BODY}<|call|>commentary", calls=(OSLO,)
    ),
    "stop after stop": Row(f"<|channel|>analysis<|message|>Hm.<|end|><|end|>{DONE}", "Done.", "Hm."),
    "start after start": Row(f"<|channel|>analysis<|message|>Hm.<|end|><|start|>{DONE}", "Done.", "Hm."),
    "an empty channel": Row("<|channel|><|message|>Done.<|return|>", "Done."),
    "junk for a channel": Row(f"<|channel|>??<|end|>{DONE}", "Done."),
    "a channel with junk": Row(
        f"<|channel|>commentary?commentary? {TO} <|constrain|>json<|message|>{BODY}<|call|>", calls=(OSLO,)
    ),
    "a word glued to the channel": Row("<|channel|>finalx<|message|>Done.<|return|>", "Done."),
    "a recipient that is no tool": Row(
        "<|channel|>commentary to=assistant<|channel|>final<|message|>Done.<|return|>", "Done."
    ),
    "a channel for a role": Row(
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>final<|message|>Done.<|return|>", "Done.", "Hm."
    ),
    "a call closed by return": Row(
        f"<|channel|>commentary {TO} <|constrain|>json<|message|>{BODY}<|return|>", calls=(OSLO,)
    ),
    "a call closed by end": Row(f"<|channel|>commentary {TO} <|constrain|>json<|message|>{BODY}<|end|>", calls=(OSLO,)),
    "a final closed by call": Row(f"{FINAL}Done.<|call|>", "Done."),
    "no functions before the name": Row(
        f"<|channel|>commentary to=get_weather <|constrain|>json<|message|>{BODY}<|call|>", calls=(OSLO,)
    ),
    "the role again": Row(
        f"{NEXT}<|channel|>commentary {TO} <|constrain|>json<|message|>{BODY}<|call|>", calls=(OSLO,)
    ),
    "call eaten by the server": Row(
        _thought(f"<|channel|>commentary {TO} <|constrain|>json<|message|>{BODY}"), "", "Hm.", (OSLO,)
    ),
    "return eaten by the server": Row(_thought(f"{FINAL}Done."), "Done.", "Hm."),
    "all special tokens stripped, a call": Row(
        f"analysisWe need the weather.assistantcommentary {TO} json{BODY}", "", "We need the weather.", (OSLO,)
    ),
    "all special tokens stripped, a final": Row("analysisWe know it.assistantfinalDone.", "Done.", "We know it."),
    "words about a marker": Row(
        f"{FINAL}Write <|start|> before a message.<|return|>", "Write <|start|> before a message."
    ),
    "filler outside any message, beside a call": Row(
        f"<|channel|>commentary {TO} <|constrain|>json<|message|>{BODY}<|call|>The task is now in progress.",
        calls=(OSLO,),
    ),
}
