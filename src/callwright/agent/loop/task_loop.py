"""The loop of one task, from its text to its end: a generator of effects that performs nothing itself.


    task ─▶ CallModel ─▶ calls? ─ each: DecideCall ─ SaveCheckpoint (edits) ─ RunTool ─▶ results ─▶ CallModel …
                          └ none: done, or a nudge about what is missing

All its information comes from its brief and from the answers to its effects, so the same answers lead to the same
effects: an interrupted session is replayed from its events up to where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple, TypeVar

import msgspec

from callwright.agent.loop import nudges
from callwright.agent.loop.answer_stream import has_completion_signal, strip_completion_signal
from callwright.agent.loop.completion_check import needs_writes
from callwright.agent.loop.effects import (
    CallModel,
    DecideCall,
    Effect,
    EffectAnswer,
    EmitEvent,
    RunTool,
    SaveCheckpoint,
)
from callwright.agent.loop.message_history import (
    SUMMARY_PROMPT,
    drop_oldest_messages,
    has_older_messages,
    make_answer_message,
    make_result_message,
    make_user_message,
    replace_with_summary,
    shorten_old_results,
    truncate_results,
)
from callwright.agent.session_events import (
    CallDecided,
    CheckpointSaved,
    GroupClosed,
    GroupOpened,
    HistoryCondensed,
    ModelAnswered,
    ModelNudged,
    StopReason,
    TaskStarted,
    TaskStopped,
    ToolFinished,
    ToolStatus,
)
from callwright.agent.settings import TaskLimits
from callwright.agent.tools.base import EditTool, Tool
from callwright.agent.tools.call_preview import parse_call_arguments
from callwright.errors import MisuseError, ToolError
from callwright.model import Message, Text, ToolCall

__all__ = ["TaskBrief", "TaskResult", "run_task_loop"]

_MAX_SAME_CALLS = 3
"""The same call this many times in a row needs approval."""
_CONDENSED_SHARE = 0.75
"""After condensing, at most this share of the usable window may be used: otherwise every turn would condense."""
_RESULT_LIMITS = (8_000, 2_000, 500)
"""Characters of a result, where the last rounds alone fill the window."""
_MAX_NUDGES = 2
"""How many nudges the model gets before the task ends as unfinished."""

_AnswerT = TypeVar("_AnswerT")
LoopSteps = Generator[Effect, EffectAnswer, "_TaskEnd | None"]


@dataclass(frozen=True, kw_only=True)
class TaskBrief:
    """The input of a task."""

    task: int
    text: str
    history: tuple[Message, ...]
    """The messages of the session so far; the first one is the system prompt."""
    tools: Mapping[str, Tool]
    limits: TaskLimits
    window: int
    """The model's context window in tokens; 0 if unknown."""
    count_tokens: Callable[[Sequence[Message]], int]
    """Counts the tokens of these messages, including the tools and options of the request."""


class TaskResult(NamedTuple):
    """A finished task, and the model's messages at its end."""

    stopped: TaskStopped
    history: tuple[Message, ...]


class _TaskEnd(NamedTuple):
    reason: StopReason
    text: str


def run_task_loop(brief: TaskBrief) -> Generator[Effect, EffectAnswer, TaskResult]:
    """Run a task. Every answer that is sent must be the one that `effects` lists for the effect."""
    state = _TaskRun(brief)
    yield EmitEvent(TaskStarted(task=brief.task, text=brief.text, limits=brief.limits, window=brief.window))
    over = None
    while over is None:
        over = state.check_limits() or (yield from state.run_round())
    stopped = TaskStopped(task=brief.task, reason=over.reason, text=over.text)
    yield EmitEvent(stopped)
    return TaskResult(stopped, tuple(state.messages))


@dataclass
class _TaskRun:
    brief: TaskBrief
    messages: list[Message] = field(init=False)
    task_index: int = field(init=False)
    """The index of the task's own message."""
    turns: int = 0
    tokens: int = 0
    seconds: float = 0.0
    has_written: bool = False
    unattended_denials: int = 0
    """Denials because no user was available."""
    answers_without_calls: int = 0
    """Consecutive answers without a call."""
    must_edit: bool = False
    """Whether the next answer has to change something."""
    last_call: tuple[str, str] = ("", "")
    same_call_count: int = 0

    def __post_init__(self) -> None:
        self.messages = [*self.brief.history, make_user_message(self.brief.text)]
        self.task_index = len(self.messages) - 1

    def check_limits(self) -> _TaskEnd | None:
        """Return the end of the task if a limit is reached."""
        limits = self.brief.limits
        if self.turns >= limits.max_iterations:
            return _TaskEnd("iterations", f"the model was called {self.turns} times, which is the limit for one task")
        if limits.max_tokens and self.tokens >= limits.max_tokens:
            return _TaskEnd("tokens", f"{self.tokens} tokens were used; the limit for one task is {limits.max_tokens}")
        return self._check_time()

    def _check_time(self) -> _TaskEnd | None:
        limit = self.brief.limits.timeout_seconds
        if limit and self.seconds >= limit:
            return _TaskEnd("time", f"the task has run for {self.seconds:.0f} seconds; the limit is {limit:.0f}")
        return None

    def run_round(self) -> LoopSteps:
        """Run one round: an answer, and the results of its calls."""
        if over := (yield from self._condense_history()):
            return over
        self.turns += 1
        must_edit, self.must_edit = self.must_edit, False
        answer = yield from self._call_model(tuple(self.messages), must_edit=must_edit)
        if over := _find_failure(answer) or self._check_time():
            return over
        self.messages.append(make_answer_message(answer.message))
        calls = [part for part in answer.message.parts if isinstance(part, ToolCall)]
        if not calls:
            return (yield from self._handle_plain_answer(answer))
        self.answers_without_calls = 0
        return (yield from self._run_calls(calls))

    def _call_model(self, messages: tuple[Message, ...], **what: Any) -> Generator[Effect, EffectAnswer, ModelAnswered]:
        limit = self.brief.limits.timeout_seconds
        left = max(limit - self.seconds, 0.1) if limit else 0
        answer = yield from _request_effect(
            CallModel(messages=messages, number=self.turns, seconds=left, **what), ModelAnswered
        )
        self.tokens += answer.usage.prompt_tokens + answer.usage.completion_tokens
        self.seconds += answer.seconds
        return answer

    # ── answers without calls ────────────────────────────────────────────────────────────────────

    def _handle_plain_answer(self, answer: ModelAnswered) -> LoopSteps:
        text = "".join(part.text for part in answer.message.parts if isinstance(part, Text))
        self.answers_without_calls += 1
        missing = needs_writes(self.brief.text) and not self.has_written
        shown_text = strip_completion_signal(text).strip()
        if answer.finish == "length":
            nudge = nudges.ANSWER_CUT_OFF
        elif missing:
            nudge = nudges.NO_FILE_CHANGED.format(task=self.brief.text)
        elif has_completion_signal(text) or (
            shown_text and (self.answers_without_calls > 1 or not needs_writes(self.brief.text))
        ):
            return self._end_task()
        else:
            nudge = nudges.CONTINUE_OR_FINISH if shown_text else nudges.EMPTY_ANSWER
        if self.answers_without_calls > _MAX_NUDGES:
            why = (
                "no file was changed, although the task asks for it"
                if missing
                else "the model returns no more text or calls"
            )
            return _TaskEnd("unfinished", why)
        # Not at once: a model that only announces "I look at the files first" must be able to look.
        self.must_edit = missing and self.answers_without_calls == _MAX_NUDGES
        yield EmitEvent(ModelNudged(nudge))
        self.messages.append(make_user_message(nudge))
        return None

    def _end_task(self) -> _TaskEnd:
        if self.unattended_denials:
            what = "a call was" if self.unattended_denials == 1 else f"{self.unattended_denials} calls were"
            return _TaskEnd("denied", f"the model finished, but {what} denied because no user was available to approve")
        return _TaskEnd("done", "the model reports that the task is done")

    # ── calls ────────────────────────────────────────────────────────────────────────────────────

    def _run_calls(self, calls: Sequence[ToolCall]) -> LoopSteps:
        views = [self._describe_call(call) for call in calls]
        yield EmitEvent(GroupOpened(title=views[0] if len(views) == 1 else f"{len(views)} steps", calls=len(views)))
        over: _TaskEnd | None = None
        for call, view in zip(calls, views, strict=True):
            if over:
                ended: ToolFinished = yield from self._report_not_run(
                    call, view, "stopped", "Not run: the task was stopped."
                )
            else:
                ended, over = yield from self._handle_call(call, view)
            self.has_written = self.has_written or (ended.wrote and ended.status == "ok")
            self.seconds += ended.seconds
            self.messages.append(make_result_message(call, ended.content, is_error=ended.status != "ok"))
        yield EmitEvent(GroupClosed())
        return over

    def _handle_call(
        self, call: ToolCall, view: str
    ) -> Generator[Effect, EffectAnswer, tuple[ToolFinished, _TaskEnd | None]]:
        try:
            tool = _find_tool(call.name, self.brief.tools)
            arguments = _parse_arguments(call)
        except ToolError as problem:
            return (yield from self._report_not_run(call, view, "error", str(problem))), None
        if isinstance(tool, EditTool) and (content_request := tool.describe_deferred_content(arguments)):
            answer = yield from self._call_model(
                (*self.messages, make_user_message(nudges.WRITE_CONTENT.format(view=view, wanted=content_request))),
                purpose="content",
                title=view,
            )
            if over := _find_failure(answer):
                return (yield from self._report_not_run(call, view, "stopped", over.text)), over
            text = "".join(part.text for part in answer.message.parts if isinstance(part, Text))
            call = _replace_arguments(call, tool.fill_content(arguments, nudges.strip_code_fence(text)))
        return (yield from self._run_if_allowed(call, view, edits=isinstance(tool, EditTool)))

    def _run_if_allowed(
        self, call: ToolCall, view: str, *, edits: bool
    ) -> Generator[Effect, EffectAnswer, tuple[ToolFinished, _TaskEnd | None]]:
        decided = yield from _request_effect(DecideCall(call=call, is_repeat=self._track_repeats(call)), CallDecided)
        if decided.verdict != "allow":
            self.unattended_denials += decided.by == "settings"
            over = _TaskEnd("person", "stopped by the user") if decided.verdict == "stop" else None
            return (yield from self._report_not_run(call, view, "denied", nudges.describe_denial(decided))), over
        call = decided.call
        if edits:
            saved = yield from _request_effect(SaveCheckpoint(call=call, digest=decided.digest), CheckpointSaved)
            if saved.problem:
                return (yield from self._report_not_run(call, view, "error", saved.problem)), None
        ended = yield from _request_effect(RunTool(call=call), ToolFinished)
        ended = msgspec.structs.replace(ended, content=nudges.prepend_user_note(decided.words, ended.content))
        over = _TaskEnd("person", "stopped by the user") if ended.status == "stopped" else None
        return ended, over

    def _report_not_run(
        self, call: ToolCall, view: str, status: ToolStatus, why: str
    ) -> Generator[Effect, EffectAnswer, ToolFinished]:
        ended = ToolFinished(call=call.id, name=call.name, view=view, status=status, content=why)
        yield EmitEvent(ended)
        return ended

    def _track_repeats(self, call: ToolCall) -> bool:
        """Return whether this is the third equal call in a row; after an approval, counting starts again."""
        now = (call.name, call.arguments)
        self.same_call_count = self.same_call_count + 1 if now == self.last_call else 1
        self.last_call = now
        if self.same_call_count < _MAX_SAME_CALLS:
            return False
        self.same_call_count = 0
        return True

    def _describe_call(self, call: ToolCall) -> str:
        tool = self.brief.tools.get(call.name)
        try:
            return tool.describe_call(_parse_arguments(call)) if tool else call.name
        except ToolError:
            return call.name

    # ── a full context window ────────────────────────────────────────────────────────────────────

    def _condense_history(self) -> LoopSteps:
        count, limit = self.brief.count_tokens, self.brief.window * self.brief.limits.condense
        before = count(self.messages) if limit else 0
        if before <= limit:
            return None
        self.messages = shorten_old_results(self.messages, self.task_index)
        if count(self.messages) > limit * _CONDENSED_SHARE and has_older_messages(self.messages, self.task_index):
            answer = yield from self._call_model(tuple(self._select_for_summary(limit)), purpose="condense")
            if answer.stopped:
                return _find_failure(answer)
            self.messages, self.task_index = replace_with_summary(self.messages, self.task_index, answer.message)
        self.messages, max_chars = self._truncate_to_fit(limit, self.messages)
        after = count(self.messages)
        yield EmitEvent(HistoryCondensed(before=before, after=after, max_result_chars=max_chars))
        if after > limit:
            why = f"the condensed conversation still has {after} tokens, and the context window has {self.brief.window}"
            return _TaskEnd("tokens", why)
        return None

    def _select_for_summary(self, limit: float) -> list[Message]:
        """Return the messages for the summary: as many as fit."""
        drop = 0
        messages = [*self.messages, make_user_message(SUMMARY_PROMPT)]
        while self.brief.count_tokens(messages) > limit and drop < len(self.messages):
            drop += max(1, len(self.messages) // 8)
            messages = [*drop_oldest_messages(self.messages, self.task_index, drop), make_user_message(SUMMARY_PROMPT)]
        return self._truncate_to_fit(limit, messages)[0]

    def _truncate_to_fit(self, limit: float, messages: list[Message]) -> tuple[list[Message], int]:
        """Truncate results as far as necessary; returns the messages and the maximum length of a result."""
        shorter, max_chars = messages, 0
        for limit_chars in _RESULT_LIMITS:
            if self.brief.count_tokens(shorter) > limit:
                shorter, max_chars = truncate_results(messages, limit_chars), limit_chars
        return shorter, max_chars


def _request_effect(effect: Effect, kind: type[_AnswerT]) -> Generator[Effect, EffectAnswer, _AnswerT]:
    """Yield the effect and return its typed answer."""
    answer = yield effect
    if not isinstance(answer, kind):
        raise MisuseError(f"{type(effect).__name__} is answered with {kind.__name__}, not {type(answer).__name__}")
    return answer


def _find_failure(answer: ModelAnswered) -> _TaskEnd | None:
    if answer.stopped:
        return _TaskEnd("person", "stopped by the user")
    return _TaskEnd("failed", answer.problem) if answer.problem else None


def _parse_arguments(call: ToolCall) -> dict[str, Any]:
    if not call.complete:
        raise ToolError(nudges.CALL_CUT_OFF)
    return parse_call_arguments(call)


def _replace_arguments(call: ToolCall, arguments: dict[str, Any]) -> ToolCall:
    return msgspec.structs.replace(call, arguments=msgspec.json.encode(arguments).decode())


def _find_tool(name: str, tools: Mapping[str, Tool]) -> Tool:
    if name in tools:
        return tools[name]
    near = get_close_matches(name, tools, n=1)
    meant = f" Did you mean {near[0]}?" if near else ""
    raise ToolError(f"There is no tool {name!r}.{meant} The tools are: {', '.join(tools)}.")
