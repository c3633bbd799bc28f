"""The faults of law 11: each changes one rendered call the way that models do, in every dialect that it fits.

A turn has words, a call with the fault, words, and a good call. The good call must be read right, no word may be lost,
and what becomes of the faulty call must be right, named or marked, never silently wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from callwright import Collected, Dialect
from callwright.dialects import REGISTRY
from callwright.turn import collect
from tests.support.harness import TOOLS, drive, pieces

CITY, DAYS = "Oslo", 2
FAULTY: tuple[str, dict[str, Any]] = ("get_weather", {"city": CITY, "days": DAYS})
GOOD: tuple[str, dict[str, Any]] = ("write_file", {"path": "b.txt", "content": "second file"})
BEFORE, BETWEEN, AFTER = "Let me look.", "Now the next one.", "That is all."

_TAG = re.compile(
    r"\]<\]minimax\[>\[</?[^<>\n]*>"  # minimax_m3
    r"|<\|(?:open|close)\|>[^<>]*<\|sep\|>"  # kimi_k3
    r"|<\|\"\|>|<escape>"  # Gemma's quotes
    r"|<\|[^<>|]*\|>|<｜[^<>]*｜>"  # tokens
    r"|<\|tool_call>|<tool_call\|>"
    r"|</?[｜|A-Za-z_][^<>\n]*>"
    r"|\[/?[A-Z_]{2,}\]"
    r"|```\w*"
)
_CLOSING = re.compile(
    r"</|<\|close\|>|\]<\]minimax\[>\[</|\[/|.*(?:[▁_:.]end|end_|/|END_|suffix|\bcalls\|>|\bcall\|>)|<\|e[on][mtd]|```\Z"
)
_QUOTES = ('<|"|>', "<escape>")
_TOKEN_CALLS = ("<|call|>", "<|calls|>", "<tool_call|>")


@dataclass(frozen=True)
class Tag:
    """One tag of a rendered call."""

    start: int
    end: int
    text: str

    @property
    def closes(self) -> bool:
        text = self.text
        if text in _TOKEN_CALLS:
            return True
        if text in ("<|tool_calls|>", "<|tool_call|>", "<|tool_call>"):
            return False
        return bool(_CLOSING.match(text))


@dataclass(frozen=True)
class Sample:
    """A rendered call and its tags."""

    dialect: Dialect
    text: str
    second: str
    """A second call of the same turn, rendered alone."""
    tags: tuple[Tag, ...]

    @property
    def closers(self) -> list[Tag]:
        return [tag for tag in self.tags if tag.closes]

    @property
    def openers(self) -> list[Tag]:
        return [tag for tag in self.tags if not tag.closes]

    @property
    def outer_closer(self) -> Tag | None:
        """The closer at the end of the block."""
        last = self.tags[-1] if self.tags else None
        return last if last and last.closes and last.end == len(self.text.rstrip()) else None

    @property
    def inner_closers(self) -> list[Tag]:
        return [tag for tag in self.closers if tag is not self.outer_closer]

    @property
    def inner_openers(self) -> list[Tag]:
        return [tag for tag in self.openers if tag.start > 0]

    @property
    def outer_opener(self) -> Tag | None:
        return self.tags[0] if self.tags and self.tags[0].start == 0 and not self.tags[0].closes else None

    def swap(self, tag: Tag, new: str) -> str:
        return self.text[: tag.start] + new + self.text[tag.end :]

    @property
    def arguments(self) -> tuple[int, int] | None:
        """Where the JSON object of the arguments stands."""
        written = json.dumps(FAULTY[1])
        at = self.text.find(written)
        return (at, at + len(written)) if at >= 0 else None


@cache
def sample(dialect: Dialect) -> Sample:
    """The call that gets the fault, as this dialect writes it."""
    text = dialect.render_call(dialect.build_sample_call(*FAULTY))
    second = dialect.render_call(dialect.build_sample_call(*GOOD))
    return Sample(dialect, text, second, _tags(text, dialect))


Change = Callable[[Sample], Iterator[str] | list[str] | None]


@dataclass(frozen=True)
class Fault:
    """One kind of fault: what it does to a call, and which arguments are right for it."""

    name: str
    change: Change
    right: tuple[Any, ...] = (FAULTY[1],)
    """Arguments that are right for the faulty call."""
    both: bool = False
    """Whether the changed text holds the second call too."""
    extra: tuple[tuple[str, Any], ...] = ()
    """Further calls that are right where they come out as well."""

    def texts(self, dialect: Dialect) -> list[str]:
        """The faulty forms of the call in this dialect, at most three; none where the fault does not fit."""
        one = sample(dialect)
        found = dict.fromkeys(text for text in self.change(one) or () if text != one.text)
        return list(found)[:3]


FAULTS: dict[str, Fault] = {}


def fault(name: str, **options: Any) -> Callable[[Change], Change]:
    def add(change: Change) -> Change:
        FAULTS[name] = Fault(name, change, **options)
        return change

    return add


def _misspell(tag: str) -> str:
    """The tag with one letter changed, in the middle of its longest word."""
    words = re.findall(r"[A-Za-z]+", re.sub(r"<\|[^<>]*?\|>|\]<\]minimax\[>\[", "", tag))
    if not words:
        return tag
    word = max(words, key=len)
    at = tag.rindex(word) + len(word) // 2
    return tag[:at] + ("x" if tag[at] != "x" else "y") + tag[at + 1 :]


def _foreign(tag: str) -> str:
    return "</function_call>" if tag != "</function_call>" else "</tool_call>"


@fault("closing tag twice")
def _(one: Sample) -> Iterator[str]:
    if tag := one.outer_closer:
        yield one.swap(tag, tag.text * 2)
        yield one.swap(tag, f"{tag.text}\n{tag.text}")


@fault("closing tag missing")
def _(one: Sample) -> Iterator[str]:
    if tag := one.outer_closer:
        yield one.swap(tag, "").rstrip()


@fault("closing tag of another family")
def _(one: Sample) -> Iterator[str]:
    if tag := one.outer_closer:
        yield one.swap(tag, _foreign(tag.text))


@fault("closing tag misspelt")
def _(one: Sample) -> Iterator[str]:
    if tag := one.outer_closer:
        yield one.swap(tag, _misspell(tag.text))


@fault("closing tag cut short")
def _(one: Sample) -> Iterator[str]:
    if tag := one.outer_closer:
        yield one.swap(tag, tag.text[:-1])
        yield one.swap(tag, tag.text[:-2])


@fault("all closers missing")
def _(one: Sample) -> Iterator[str]:
    if len(one.closers) > 1 and one.outer_closer:
        last = one.inner_closers[-1]
        yield one.text[: last.start].rstrip()


@fault("a stray closer of a foreign family")
def _(one: Sample) -> Iterator[str]:
    yield one.text + "\n</function_call>" if "function_call" not in one.text else one.text + "\n</tool_call>"
    if tag := one.outer_closer:
        foreign = "</invoke>" if "invoke" not in one.text else "</function>"
        yield one.text[: tag.start] + foreign + "\n" + one.text[tag.start :]


def _brackets(char: str, new: str) -> Change:
    def change(one: Sample) -> Iterator[str]:
        inside = one.tags
        at = one.text.rfind(char)
        while at >= 0 and any(tag.start <= at < tag.end for tag in inside):
            at = one.text.rfind(char, 0, at)
        if at >= 0:
            yield one.text[:at] + new + one.text[at + 1 :]

    return change


for _name, _char in (("brace", "}"), ("bracket", "]"), ("parenthesis", ")")):
    FAULTS[f"last {_name} missing"] = Fault(f"last {_name} missing", _brackets(_char, ""))
    FAULTS[f"last {_name} twice"] = Fault(f"last {_name} twice", _brackets(_char, _char * 2))


@fault("both braces missing")
def _(one: Sample) -> Iterator[str]:
    if "}}" in one.text:
        at = one.text.rfind("}}")
        yield one.text[:at] + one.text[at + 2 :]


def _closing_quote(one: Sample) -> tuple[int, int] | None:
    """Where the quote stands that closes the string value."""
    match = re.search(rf"{CITY}(<\|\"\|>|<escape>|[\"'])", one.text)
    return (match.start(1), match.end(1)) if match else None


@fault("closing quote missing")
def _(one: Sample) -> Iterator[str]:
    if place := _closing_quote(one):
        yield one.text[: place[0]] + one.text[place[1] :]


@fault("closing quote twice")
def _(one: Sample) -> Iterator[str]:
    if place := _closing_quote(one):
        mark = one.text[place[0] : place[1]]
        yield one.text[: place[1]] + mark + one.text[place[1] :]


@fault("last value's quote missing", right=({"city": CITY}, {"city": CITY + "}"}))
def _(one: Sample) -> Iterator[str]:
    text = one.dialect.render_call(one.dialect.build_sample_call("get_weather", {"city": CITY}))
    match = re.search(rf"{CITY}(<\|\"\|>|<escape>|[\"'])", text)
    if match:
        yield text[: match.start(1)] + text[match.end(1) :]


@fault("comma missing")
def _(one: Sample) -> Iterator[str]:
    match = re.search(rf"{CITY}(?:<\|\"\|>|<escape>|[\"'])(,)", one.text)
    if match:
        yield one.text[: match.start(1)] + one.text[match.end(1) :]


@fault("trailing comma")
def _(one: Sample) -> Iterator[str]:
    match = re.search(rf"(?:days\W{{1,4}}){DAYS}([)}}])", one.text)
    if match:
        yield one.text[: match.start(1)] + "," + one.text[match.start(1) :]


@fault("opener twice")
def _(one: Sample) -> Iterator[str]:
    if tag := one.outer_opener:
        yield one.swap(tag, tag.text * 2)
        yield one.swap(tag, f"{tag.text}\n{tag.text}")


@fault("cut in the middle and begun again", extra=(FAULTY,))
def _(one: Sample) -> Iterator[str]:
    at = one.text.find(CITY)
    if at >= 0:
        yield one.text[: at + 2] + "\n" + one.text
    at = one.text.find("get_weather") + len("get_weather") + 3
    yield one.text[:at] + "\n" + one.text


@fault("cut before the value ends and begun with the next", both=True, right=(FAULTY[1], {"city": CITY}))
def _(one: Sample) -> Iterator[str]:
    at = one.text.find(CITY)
    if at >= 0:
        yield one.text[: at + len(CITY)] + "\n" + one.second


@fault("two calls in one block", both=True)
def _(one: Sample) -> Iterator[str]:
    opener, closer = one.outer_opener, one.outer_closer
    other = Sample(one.dialect, one.second, "", _tags(one.second, one.dialect))
    second_open = other.outer_opener
    if opener and "get_weather" in opener.text:
        return
    if opener and closer and second_open and len(one.tags) > 2:
        yield one.text[: closer.start] + one.second[second_open.end :].lstrip()
        yield one.text[: closer.start].rstrip() + "\n" + one.second[second_open.end :].lstrip()
    elif opener and closer and second_open:
        yield one.text[: closer.start].rstrip() + "\n" + one.second[second_open.end :].lstrip()


def _tags(text: str, dialect: Dialect) -> tuple[Tag, ...]:
    opener = max(
        (marker for marker in dialect.openers if text.startswith(marker) and "<|" in marker), key=len, default=""
    )
    tags = [Tag(match.start(), match.end(), match.group()) for match in _TAG.finditer(text)]
    if opener and tags and opener.endswith(">") and len(opener) > tags[0].end:
        tags = [Tag(0, len(opener), opener), *(tag for tag in tags if tag.start >= len(opener))]
    return tuple(tag for tag in tags if tag.text not in _QUOTES)


@fault("self-closing call", right=())
def _(one: Sample) -> Iterator[str]:
    for tag in one.openers:
        if "get_weather" in tag.text and tag.text.endswith(">") and tag.text.startswith("<") and "|>" not in tag.text:
            yield one.text[: tag.start] + tag.text[:-1] + "/>" + _rest_of_wrapper(one, tag)
            yield one.text[: tag.start] + tag.text[:-1] + " />" + _rest_of_wrapper(one, tag)


def _rest_of_wrapper(one: Sample, tag: Tag) -> str:
    """What follows the call itself: the closers of what encloses it."""
    outside = [other for other in one.openers if other.start < tag.start]
    closers = one.closers[len(one.closers) - len(outside) :] if outside else []
    return "\n" + one.text[closers[0].start :] if closers else ""


@fault("wrapper missing")
def _(one: Sample) -> Iterator[str]:
    opener, closer = one.outer_opener, one.outer_closer
    if opener and closer and len(one.tags) > 2 and "get_weather" not in opener.text:
        yield one.text[opener.end : closer.start].strip()


@fault("outer opener missing")
def _(one: Sample) -> Iterator[str]:
    if (opener := one.outer_opener) and "get_weather" not in opener.text:
        yield one.text[opener.end :].lstrip("\n")


@fault("wrapper nested once more")
def _(one: Sample) -> Iterator[str]:
    opener, closer = one.outer_opener, one.outer_closer
    if opener and closer and "get_weather" not in opener.text:
        yield f"{opener.text}\n{one.text}\n{closer.text}"


def _arguments(new: str) -> Change:
    def change(one: Sample) -> Iterator[str]:
        if place := one.arguments:
            yield one.text[: place[0]] + new + one.text[place[1] :]

    return change


_JSON = json.dumps(FAULTY[1])
for _name, _new, _right in (
    ("arguments null", "null", ()),
    ("arguments an empty string", '""', ()),
    ("arguments an empty list", "[]", ()),
    ("arguments a one-element list", f"[{_JSON}]", (FAULTY[1],)),
    ("arguments JSON in a string", json.dumps(_JSON), (FAULTY[1],)),
    ("arguments fenced", f"```json\n{_JSON}\n```", (FAULTY[1],)),
    ("arguments in a repeated wrapper", f'{{"name": "get_weather", "parameters": {_JSON}}}', (FAULTY[1],)),
    ("arguments in a wrapper of arguments", f'{{"name": "get_weather", "arguments": {_JSON}}}', (FAULTY[1],)),
):
    FAULTS[_name] = Fault(_name, _arguments(_new), right=_right)


@fault("a parameter given twice", right=(FAULTY[1],))
def _(one: Sample) -> Iterator[str]:
    twice = one.dialect.render_call(
        one.dialect.build_sample_call("get_weather", {"city": CITY, "citx": CITY, "days": 2})
    )
    if "citx" in twice:
        yield twice.replace("citx", "city")


@fault(
    "entities in a value",
    right=({"city": "Oslo & <b>", "days": 2}, {"city": "Oslo &amp; &lt;b&gt;", "days": 2}),
)
def _(one: Sample) -> Iterator[str]:
    if one.dialect.raw_values:
        yield one.text.replace(CITY, "Oslo &amp; &lt;b&gt;", 1)


@fault("raw angle brackets in a value", right=({"city": "Oslo & <b> x < y", "days": 2},))
def _(one: Sample) -> Iterator[str]:
    yield one.text.replace(CITY, "Oslo & <b> x < y", 1)


@fault("white space after the opener")
def _(one: Sample) -> Iterator[str]:
    if tag := one.outer_opener:
        yield one.swap(tag, f"{tag.text}  \n ")


@fault("white space before the closer")
def _(one: Sample) -> Iterator[str]:
    if tag := one.outer_closer:
        yield one.swap(tag, f" \n  {tag.text}")


@fault("Windows line ends", right=(FAULTY[1], {"city": CITY, "days": 2}))
def _(one: Sample) -> Iterator[str]:
    if "\n" in one.text:
        yield one.text.replace("\n", "\r\n")


@fault("blank lines between the tags")
def _(one: Sample) -> Iterator[str]:
    if ">\n<" in one.text:
        yield one.text.replace(">\n<", ">\n\n  <")


@fault("ASCII bars")
def _(one: Sample) -> Iterator[str]:
    if "｜" in one.text:
        yield one.text.replace("｜", "|")
        yield one.text.replace("｜", "|").replace("▁", "_")


@fault("a value's opener missing", right=(FAULTY[1], {"days": DAYS}, {"city": CITY}))
def _(one: Sample) -> Iterator[str]:
    tag = _value_opener(one)
    if tag:
        yield one.swap(tag, "")


def _value_opener(one: Sample) -> Tag | None:
    at = one.text.find(CITY)
    before = [tag for tag in one.openers if tag.end <= at and one.text[tag.end : at].strip() == ""]
    tag = before[-1] if before else None
    return tag if tag and tag.start > 0 and "get_weather" not in tag.text else None


def _value_closer(one: Sample) -> Tag | None:
    at = one.text.find(CITY) + len(CITY)
    after = [tag for tag in one.closers if tag.start >= at and one.text[at : tag.start].strip() == ""]
    return after[0] if after and after[0] is not one.outer_closer else None


@fault("an inner closer missing")
def _(one: Sample) -> Iterator[str]:
    if tag := _value_closer(one):
        yield one.text[: tag.start].rstrip("\n") + one.text[tag.end :]
    if one.inner_closers:
        yield one.swap(one.inner_closers[-1], "")


@fault("an inner closer of a wrong name")
def _(one: Sample) -> Iterator[str]:
    for tag in (_value_closer(one), one.inner_closers[-1] if one.inner_closers else None):
        if tag and tag.text.startswith("</"):
            yield one.swap(tag, "</value>" if "value" not in tag.text else "</param>")


@fault("an inner closer misspelt")
def _(one: Sample) -> Iterator[str]:
    for tag in (_value_closer(one), one.inner_closers[-1] if one.inner_closers else None):
        if tag:
            yield one.swap(tag, _misspell(tag.text))


@fault("an inner closer doubled")
def _(one: Sample) -> Iterator[str]:
    for tag in (_value_closer(one), one.inner_closers[-1] if one.inner_closers else None):
        if tag:
            yield one.swap(tag, tag.text * 2)


@fault("an inner closer cut short")
def _(one: Sample) -> Iterator[str]:
    for tag in (_value_closer(one), one.inner_closers[-1] if one.inner_closers else None):
        if tag:
            yield one.swap(tag, tag.text[:-1])


@fault("the outer opener in place of an inner one", right=(FAULTY[1], {"days": DAYS}, {"city": CITY}, {}))
def _(one: Sample) -> Iterator[str]:
    outer = one.outer_opener
    inner = [tag for tag in one.inner_openers if tag.text != (outer.text if outer else "")]
    if outer and inner and "get_weather" not in outer.text:
        yield one.swap(inner[0], outer.text)


@fault("angle brackets missing from inner tags", right=(FAULTY[1], {"days": DAYS}, {"city": CITY}))
def _(one: Sample) -> Iterator[str]:
    for tag in (_value_opener(one), _value_closer(one)):
        if tag and tag.text.startswith("<") and not tag.text.startswith("<|"):
            yield one.swap(tag, tag.text.replace("<", "", 1))
            yield one.swap(tag, tag.text.rstrip(">"))


@fault(
    "quotes inside a string not escaped",
    right=({"city": 'Oslo "east" side', "days": 2}, {"city": "Oslo 'east' side", "days": 2}),
)
def _(one: Sample) -> Iterator[str]:
    if not one.dialect.raw_values:
        text = one.dialect.render_call(
            one.dialect.build_sample_call("get_weather", {"city": "OsloQeastQ side", "days": 2})
        )
        quote = re.search(r"""(["'])OsloQ""", text)
        if quote:
            mark = quote.group(1)
            yield text.replace("OsloQeastQ", f"Oslo {mark}east{mark}")


# ── turns and what becomes of them ────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Case:
    """One faulty turn of one dialect."""

    dialect: Dialect
    fault: Fault
    variant: int
    text: str
    words: tuple[str, ...]

    @property
    def id(self) -> str:
        """The dialect, the fault, and which of its forms this is."""
        return f"{self.dialect.name}: {self.fault.name} ({self.variant + 1})"


@dataclass
class Verdict:
    """What became of a faulty turn."""

    survives: bool
    """Whether the good call was read right."""
    words: bool
    """Whether every word outside of the calls was shown or reported."""
    read: bool
    """Whether the faulty call was read right."""
    wrong: list[str] = field(default_factory=list)
    """Complete calls that are wrong."""
    silent: bool = False
    """Whether a wrong call has no repair."""

    @property
    def contained(self) -> bool:
        return self.survives and self.words and not self.wrong


@cache
def cases(dialect: Dialect) -> tuple[Case, ...]:
    """Every faulty turn of a dialect."""
    return tuple(_make_cases(dialect))


def _make_cases(dialect: Dialect) -> Iterator[Case]:
    one = sample(dialect)
    joins = [joined for joined in _joinings(dialect) if _reads_right(dialect, joined(one.text, one.second))]
    if not joins:
        return
    join = joins[0]
    for fault_ in FAULTS.values():
        for variant, text in enumerate(fault_.texts(dialect)):
            turn = join(text, "" if fault_.both else one.second)
            words = tuple(word for word in (BEFORE, BETWEEN, AFTER) if word in turn)
            yield Case(dialect, fault_, variant, turn, words)


EXCEPTIONS = {
    "cohere_r: last value's quote missing (1)": "the brackets stand on lines of their own, as code in a string may",
    "xlam: last value's quote missing (1)": "the list has no marker, so the text after it is part of the string",
    "minimax_m3: an inner closer misspelt (1)": "the tag is a parameter's name, and a value may hold any element",
}
"""The cells that are not contained, each with the reason."""


Joining = Callable[[str, str], str]


def _joinings(dialect: Dialect) -> Iterator[Joining]:
    text = dialect.render_text

    def with_words(first: str, second: str) -> str:
        if not second:
            return f"{text(BEFORE)}\n{first}"
        return f"{text(BEFORE)}\n{first}\n{text(BETWEEN)}\n{second}"

    def without_first(first: str, second: str) -> str:
        return f"{first}\n{text(BETWEEN)}\n{second}" if second else first

    def alone(first: str, second: str) -> str:
        return f"{first}\n{second}" if second else first

    yield with_words
    yield without_first
    yield alone


def _reads_right(dialect: Dialect, text: str) -> bool:
    turn = collect(drive(dialect, [text], prefill=dialect.call_prefill))
    return _list_calls(turn) == [(*FAULTY, True), (*GOOD, True)]


def _list_calls(turn: Collected) -> list[tuple[str, Any, bool]]:
    return [(call.name, _load(call.arguments), call.complete) for call in turn.tool_calls]


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def read_case(case: Case, size: int = 1_000_000) -> Collected:
    """The turn that a faulty text comes to."""
    return collect(drive(case.dialect, pieces(case.text, size), prefill=case.dialect.call_prefill))


def judge(case: Case, turn: Collected) -> Verdict:
    """Judge what became of a faulty turn."""
    calls = _list_calls(turn)
    good = [call for call in calls if call == (*GOOD, True)]
    right = [(FAULTY[0], arguments) for arguments in case.fault.right]
    accepted = [*right, *case.fault.extra, GOOD]
    wrong = [
        f"{name} {json.dumps(arguments)}"
        for name, arguments, complete in calls
        if complete and (name, arguments) not in accepted
    ]
    if len(good) > 1:
        wrong.append("the good call twice")
    seen = " ".join((turn.text, turn.reasoning, *(event.raw for event in turn.malformed)))
    noted = " ".join(repair.detail for repair in turn.repairs)
    flat = " ".join(f"{seen} {noted}".split())
    return Verdict(
        survives=bool(good),
        words=all(word in flat for word in case.words),
        read=any(complete and (name, arguments) in right for name, arguments, complete in calls),
        wrong=wrong,
        silent=bool(wrong) and not turn.repairs,
    )


def all_cases() -> Iterator[Case]:
    """Every faulty turn of every dialect."""
    for dialect in REGISTRY.values():
        if dialect.name != "auto":
            yield from cases(dialect)


__all__ = ["FAULTS", "TOOLS", "Case", "Fault", "Verdict", "all_cases", "cases", "judge", "read_case", "sample"]


# ── values that hold markup on purpose ────────────────────────────────────────────────────────────


def quoted_values(dialect: Dialect) -> Iterator[tuple[str, str]]:
    """Values with the dialect's own markup, each with what it is."""
    one = sample(dialect)
    closers = dict.fromkeys(tag.text for tag in one.closers)
    openers = dict.fromkeys(tag.text for tag in one.openers)
    for number, tag in enumerate(closers):
        yield f"closer {number} among words", f"The tag {tag} ends it."
        yield f"closer {number} before a line", f"first {tag}\nsecond line"
        yield f"closer {number} on a line of its own", f"first\n{tag}\nlast line"
        yield f"closer {number} at the end", f"it ends with {tag}"
    for number, tag in enumerate(openers):
        yield f"opener {number} among words", f"The tag {tag} begins it."
        yield f"opener {number} on a line of its own", f"first\n{tag}\nlast line"
    yield "a quoted call in a line", f"Write {one.text} to call it."
    yield "a quoted call on lines", f"Like this:\n\n{one.text}\n\nThat is a call."
    yield "a quoted call in a fence", f"Like this:\n\n```\n{one.text}\n```\n\nThat is a call."
    yield "a document with two calls", f"# Calls\n\n{one.text}\n\nand then\n\n{one.second}\n\nThe end.\n"
    yield "a quoted call at the end", f"Like this:\n{one.text}"
    yield "half a call", f"It begins with {one.text[: len(one.text) // 2]} and so on."
    yield "all the closers", f"They are {' '.join(closers)} here."


def keeps_value(dialect: Dialect, value: str, size: int = 1_000_000) -> bool:
    """Whether a file with this content, and a call after it, come back as they were."""
    first = dialect.build_sample_call("write_file", {"path": "a.md", "content": value})
    second = dialect.build_sample_call(*FAULTY)
    for text, expected in (
        (dialect.render_call(first), [("write_file", {"path": "a.md", "content": value}, True)]),
        (
            dialect.render_call(first, second),
            [("write_file", {"path": "a.md", "content": value}, True), (*FAULTY, True)],
        ),
    ):
        turn = collect(drive(dialect, pieces(text, size), prefill=dialect.call_prefill))
        if _list_calls(turn) != expected:
            return False
    return True
