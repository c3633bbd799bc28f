"""The loop: one task, from its words to its end. A generator of effects; it does nothing itself.

    task ─▶ CallModel ─▶ calls? ─ each: Decide ─ Checkpoint (edits) ─ RunTool ─▶ results ─▶ CallModel …
                          └ none: done, or told what is missing

Everything that it knows comes from its brief and from the answers to its effects, so the same answers lead to the same
effects: a session that was interrupted is played again from its events up to where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple, TypeVar

import msgspec

from callwright.agent import nudges
from callwright.agent.completion import needs_writes
from callwright.agent.effects import Answer, CallModel, Checkpoint, Decide, Effect, RunTool, Tell
from callwright.agent.events import (
    Answered,
    Checkpointed,
    Condensed,
    Decided,
    GroupClosed,
    GroupOpened,
    Nudged,
    Stopped,
    StopReason,
    TaskGiven,
    ToolEnded,
    ToolStatus,
)
from callwright.agent.history import SUM_UP, answered, cut, fitting, has_older, result, shortened, summed_up, user
from callwright.agent.planning import arguments_of
from callwright.agent.settings import Limits
from callwright.agent.stream import says_complete, without_signal
from callwright.agent.tools.base import Editor, Tool
from callwright.errors import MisuseError, ToolError
from callwright.model import Message, Text, ToolCall

__all__ = ["Brief", "Ended", "work"]

_SAME_CALLS = 3
"""The same call so many times running is asked about."""
_ROOM = 0.75
"""Of what may be used of the window, so much may still be used after condensing: else it would be done every turn."""
_CUTS = (8_000, 2_000, 500)
"""Characters of a result, where the last rounds alone fill the window."""
_NUDGES = 2
"""How often a model is told that it is not done before that is believed."""

_Answer = TypeVar("_Answer")
Steps = Generator[Effect, Answer, "_Over | None"]


@dataclass(frozen=True, kw_only=True)
class Brief:
    """What a task begins with."""

    task: int
    text: str
    history: tuple[Message, ...]
    """Of the session so far; the first message is the system's."""
    tools: Mapping[str, Tool]
    limits: Limits
    window: int
    """The model's window in tokens; 0 when nobody knows it."""
    count: Callable[[Sequence[Message]], int]
    """The tokens of these messages with everything that goes with them."""


class Ended(NamedTuple):
    """A task that is over, and what the model knows by then."""

    stopped: Stopped
    history: tuple[Message, ...]


class _Over(NamedTuple):
    reason: StopReason
    text: str


def work(brief: Brief) -> Generator[Effect, Answer, Ended]:
    """Work on a task. Every answer that is sent must be the one that `effects` names for the effect."""
    state = _Work(brief)
    yield Tell(TaskGiven(task=brief.task, text=brief.text, limits=brief.limits, window=brief.window))
    over = None
    while over is None:
        over = state.limit() or (yield from state.round())
    stopped = Stopped(task=brief.task, reason=over.reason, text=over.text)
    yield Tell(stopped)
    return Ended(stopped, tuple(state.messages))


@dataclass
class _Work:
    brief: Brief
    messages: list[Message] = field(init=False)
    place: int = field(init=False)
    """Of the task's own message."""
    turns: int = 0
    tokens: int = 0
    seconds: float = 0.0
    wrote: bool = False
    unheard: int = 0
    """Denials that nobody was there to make."""
    quiet: int = 0
    """Answers without a call, running."""
    must_edit: bool = False
    """The next answer has to change something."""
    last: tuple[str, str] = ("", "")
    same: int = 0

    def __post_init__(self) -> None:
        self.messages = [*self.brief.history, user(self.brief.text)]
        self.place = len(self.messages) - 1

    def limit(self) -> _Over | None:
        """A limit that is reached."""
        limits = self.brief.limits
        if self.turns >= limits.iterations:
            return _Over("iterations", f"the model was asked {self.turns} times, which is the limit for one task")
        if limits.tokens and self.tokens >= limits.tokens:
            return _Over("tokens", f"{self.tokens} tokens were used; the limit for one task is {limits.tokens}")
        return self._out_of_time()

    def _out_of_time(self) -> _Over | None:
        limit = self.brief.limits.seconds
        if limit and self.seconds >= limit:
            return _Over("time", f"it has worked for {self.seconds:.0f} seconds; the limit is {limit:.0f}")
        return None

    def round(self) -> Steps:
        """An answer, and the results of its calls."""
        if over := (yield from self._condensed()):
            return over
        self.turns += 1
        must_edit, self.must_edit = self.must_edit, False
        answer = yield from self._asked(tuple(self.messages), must_edit=must_edit)
        if over := _broken(answer) or self._out_of_time():
            return over
        self.messages.append(answered(answer.message))
        calls = [part for part in answer.message.parts if isinstance(part, ToolCall)]
        if not calls:
            return (yield from self._without_calls(answer))
        self.quiet = 0
        return (yield from self._calls(calls))

    def _asked(self, messages: tuple[Message, ...], **what: Any) -> Generator[Effect, Answer, Answered]:
        limit = self.brief.limits.seconds
        left = max(limit - self.seconds, 0.1) if limit else 0
        answer = yield from _done(CallModel(messages=messages, number=self.turns, seconds=left, **what), Answered)
        self.tokens += answer.usage.prompt_tokens + answer.usage.completion_tokens
        self.seconds += answer.seconds
        return answer

    # ── an answer that calls nothing ─────────────────────────────────────────────────────────────

    def _without_calls(self, answer: Answered) -> Steps:
        text = "".join(part.text for part in answer.message.parts if isinstance(part, Text))
        self.quiet += 1
        missing = needs_writes(self.brief.text) and not self.wrote
        said = without_signal(text).strip()
        if answer.finish == "length":
            told = nudges.CUT_OFF
        elif missing:
            told = nudges.NOTHING_WRITTEN.format(task=self.brief.text)
        elif says_complete(text) or (said and (self.quiet > 1 or not needs_writes(self.brief.text))):
            return self._finished()
        else:
            told = nudges.GO_ON if said else nudges.NOTHING_SAID
        if self.quiet > _NUDGES:
            why = "no file was changed, though the task asks for it" if missing else "the model says nothing more"
            return _Over("unfinished", why)
        # Not at once: whoever only says "I look at the files first" must be able to look.
        self.must_edit = missing and self.quiet == _NUDGES
        yield Tell(Nudged(told))
        self.messages.append(user(told))
        return None

    def _finished(self) -> _Over:
        if self.unheard:
            what = "a call was" if self.unheard == 1 else f"{self.unheard} calls were"
            return _Over("denied", f"the model ended, but {what} denied because nobody was there to ask")
        return _Over("done", "the model says that the task is done")

    # ── calls ────────────────────────────────────────────────────────────────────────────────────

    def _calls(self, calls: Sequence[ToolCall]) -> Steps:
        views = [self._view(call) for call in calls]
        yield Tell(GroupOpened(title=views[0] if len(views) == 1 else f"{len(views)} steps", calls=len(views)))
        over: _Over | None = None
        for call, view in zip(calls, views, strict=True):
            if over:
                ended: ToolEnded = yield from self._not_run(call, view, "stopped", "Not run: the task was stopped.")
            else:
                ended, over = yield from self._call(call, view)
            self.wrote = self.wrote or (ended.wrote and ended.status == "ok")
            self.seconds += ended.seconds
            self.messages.append(result(call, ended.content, is_error=ended.status != "ok"))
        yield Tell(GroupClosed())
        return over

    def _call(self, call: ToolCall, view: str) -> Generator[Effect, Answer, tuple[ToolEnded, _Over | None]]:
        try:
            tool = _named(call.name, self.brief.tools)
            arguments = _arguments(call)
        except ToolError as problem:
            return (yield from self._not_run(call, view, "error", str(problem))), None
        if isinstance(tool, Editor) and (wanted := tool.deferred(arguments)):
            answer = yield from self._asked(
                (*self.messages, user(nudges.CONTENT.format(view=view, wanted=wanted))), purpose="content", title=view
            )
            if over := _broken(answer):
                return (yield from self._not_run(call, view, "stopped", over.text)), over
            text = "".join(part.text for part in answer.message.parts if isinstance(part, Text))
            call = _with(call, tool.completed(arguments, nudges.unfenced(text)))
        return (yield from self._decided(call, view, edits=isinstance(tool, Editor)))

    def _decided(
        self, call: ToolCall, view: str, *, edits: bool
    ) -> Generator[Effect, Answer, tuple[ToolEnded, _Over | None]]:
        decided = yield from _done(Decide(call=call, again=self._again(call)), Decided)
        if decided.verdict != "allow":
            self.unheard += decided.by == "settings"
            over = _Over("person", "the person stopped it") if decided.verdict == "stop" else None
            return (yield from self._not_run(call, view, "denied", nudges.denied(decided))), over
        call = decided.call
        if edits:
            kept = yield from _done(Checkpoint(call=call, digest=decided.digest), Checkpointed)
            if kept.problem:
                return (yield from self._not_run(call, view, "error", kept.problem)), None
        ended = yield from _done(RunTool(call=call), ToolEnded)
        ended = msgspec.structs.replace(ended, content=nudges.told(decided.words, ended.content))
        over = _Over("person", "the person stopped it") if ended.status == "stopped" else None
        return ended, over

    def _not_run(self, call: ToolCall, view: str, status: ToolStatus, why: str) -> Generator[Effect, Answer, ToolEnded]:
        ended = ToolEnded(call=call.id, name=call.name, view=view, status=status, content=why)
        yield Tell(ended)
        return ended

    def _again(self, call: ToolCall) -> bool:
        """The same call for the third time running; once a person has said that it may, it counts anew."""
        now = (call.name, call.arguments)
        self.same = self.same + 1 if now == self.last else 1
        self.last = now
        if self.same < _SAME_CALLS:
            return False
        self.same = 0
        return True

    def _view(self, call: ToolCall) -> str:
        tool = self.brief.tools.get(call.name)
        try:
            return tool.view(_arguments(call)) if tool else call.name
        except ToolError:
            return call.name

    # ── a window that fills ──────────────────────────────────────────────────────────────────────

    def _condensed(self) -> Steps:
        count, limit = self.brief.count, self.brief.window * self.brief.limits.condense
        before = count(self.messages) if limit else 0
        if before <= limit:
            return None
        self.messages = shortened(self.messages, self.place)
        if count(self.messages) > limit * _ROOM and has_older(self.messages, self.place):
            answer = yield from self._asked(tuple(self._for_summary(limit)), purpose="condense")
            if answer.stopped:
                return _broken(answer)
            self.messages, self.place = summed_up(self.messages, self.place, answer.message)
        self.messages, most = self._within(limit, self.messages)
        after = count(self.messages)
        yield Tell(Condensed(before=before, after=after, cut=most))
        if after > limit:
            why = f"what is left of the conversation takes {after} tokens, and the window has {self.brief.window}"
            return _Over("tokens", why)
        return None

    def _for_summary(self, limit: float) -> list[Message]:
        """What the model sums up: as much of it as fits."""
        drop = 0
        told = [*self.messages, user(SUM_UP)]
        while self.brief.count(told) > limit and drop < len(self.messages):
            drop += max(1, len(self.messages) // 8)
            told = [*fitting(self.messages, self.place, drop), user(SUM_UP)]
        return self._within(limit, told)[0]

    def _within(self, limit: float, messages: list[Message]) -> tuple[list[Message], int]:
        """The messages with results that are cut as far as they must be, and how far that is."""
        shorter, most = messages, 0
        for least in _CUTS:
            if self.brief.count(shorter) > limit:
                shorter, most = cut(messages, least), least
        return shorter, most


def _done(effect: Effect, kind: type[_Answer]) -> Generator[Effect, Answer, _Answer]:
    """Have it done; its answer."""
    answer = yield effect
    if not isinstance(answer, kind):
        raise MisuseError(f"{type(effect).__name__} is answered with {kind.__name__}, not {type(answer).__name__}")
    return answer


def _broken(answer: Answered) -> _Over | None:
    if answer.stopped:
        return _Over("person", "the person stopped it")
    return _Over("failed", answer.problem) if answer.problem else None


def _arguments(call: ToolCall) -> dict[str, Any]:
    if not call.complete:
        raise ToolError(nudges.CALL_CUT_OFF)
    return arguments_of(call)


def _with(call: ToolCall, arguments: dict[str, Any]) -> ToolCall:
    return msgspec.structs.replace(call, arguments=msgspec.json.encode(arguments).decode())


def _named(name: str, tools: Mapping[str, Tool]) -> Tool:
    if name in tools:
        return tools[name]
    near = get_close_matches(name, tools, n=1)
    meant = f" Did you mean {near[0]}?" if near else ""
    raise ToolError(f"There is no tool {name!r}.{meant} The tools are: {', '.join(tools)}.")
