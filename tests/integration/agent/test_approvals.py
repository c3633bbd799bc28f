"""Approvals: an answer counts for the one question that it names, and allows what was shown and nothing else."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from callwright.agent.event_log import EventLog
from callwright.agent.loop.effects import DecideCall
from callwright.agent.policy import Policy
from callwright.agent.policy.policy_rules import parse_rules
from callwright.agent.session.approvals import Approvals
from callwright.agent.session.stop_signal import StopSignal
from callwright.agent.session_api import ApprovalReply
from callwright.agent.session_events import ApprovalRequested, CallDecided, ToolFinished
from callwright.agent.settings import AgentSettings
from callwright.agent.tools import BUILTIN_TOOLS
from callwright.agent.tools.base import Tool, ToolContext
from callwright.agent.workspace.workspace import Workspace
from callwright.model import ToolCall, ToolSpec
from callwright.store.open import AgentStore, open_agent_store
from callwright.store.session_store import SessionRecord
from callwright.store.settings import StoreSettings
from tests.support.desks import DONE, Place, tool

RULES = parse_rules(
    """
[[rule]]
pattern = ["shutdown"]
decision = "deny"
why = "never"
[[tool]]
name = "never__*"
decision = "deny"
""",
    "test",
)
ONCE, ALWAYS, DENY = (ApprovalReply(verdict=verdict) for verdict in ("once", "always", "deny"))


class Visitor:
    """A tool that somebody else brought."""

    def __init__(self, name: str) -> None:
        self.spec = ToolSpec(name, "Do something.", {"type": "object"})

    def describe_call(self, arguments: Mapping[str, Any]) -> str:
        return f"Visit {dict(arguments)}"

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        raise AssertionError("nothing is run here")


class Case:
    """Approvals of one session, and a person who has an answer to each question or leaves it open."""

    def __init__(self, root: Path, store: AgentStore, session: str, settings: AgentSettings) -> None:
        visitors = [Visitor("guest__do"), Visitor("never__do")]
        tools: dict[str, Tool] = {each.spec.name: each for each in (*BUILTIN_TOOLS, *visitors)}
        self.halt = StopSignal()
        self.log = EventLog(store.sessions, session)
        self.approvals = Approvals(Policy(RULES), settings, tools, Workspace(root), lambda: ".", self.log, self.halt)
        self.asked: list[ApprovalRequested] = []
        self.replies: list[ApprovalReply] = []
        self.refused: list[str] = []
        self.log.subscribe(self._see)

    def _see(self, stamped: Any) -> None:
        if isinstance(stamped.event, ApprovalRequested):
            self.asked.append(stamped.event)
            if self.replies:
                self.refused.append(self.approvals.submit_reply(stamped.event.approval, self.replies.pop(0)))

    def deciding(self, name: str, again: bool = False, **arguments: Any) -> asyncio.Task[CallDecided]:
        call = ToolCall(f"call_{len(self.asked)}", name, json.dumps(arguments))
        return asyncio.ensure_future(self.approvals.decide_call(DecideCall(call=call, is_repeat=again)))

    async def decided(self, name: str, *replies: ApprovalReply, again: bool = False, **arguments: Any) -> CallDecided:
        self.replies = list(replies)
        async with asyncio.timeout(10):
            decided = await self.deciding(name, again, **arguments)
        assert self.replies == []
        return decided

    async def command(self, text: str, *replies: ApprovalReply, again: bool = False) -> CallDecided:
        return await self.decided("run_terminal_command", *replies, again=again, command=text)

    async def question(self, count: int = 1) -> ApprovalRequested:
        async with asyncio.timeout(10):
            while len(self.asked) < count:
                await asyncio.sleep(0)
        return self.asked[-1]


@asynccontextmanager
async def opened(folder: Path, **settings: Any) -> AsyncIterator[Case]:
    root = folder / "workspace"
    root.mkdir()
    (root / ".env").write_text("KEY=1\n")
    (root / "app.py").write_text("x = 1\n")
    async with open_agent_store(StoreSettings(), folder) as store:
        await store.sessions.create_session(SessionRecord("s", 0, 0, "", str(root), "m", False, 0, 0, 0))
        yield Case(root, store, "s", AgentSettings(**settings))


def play(folder: Path, scenario: Callable[[Case], Coroutine[Any, Any, None]], **settings: Any) -> None:
    async def run() -> None:
        async with opened(folder, **settings) as case:
            await scenario(case)

    asyncio.run(run())


# ── what is asked ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "arguments", "verdict", "by"),
    [
        ("run_terminal_command", {"command": "ls"}, "allow", "policy"),
        ("run_terminal_command", {"command": "shutdown now"}, "deny", "policy"),
        ("run_terminal_command", {"command": "ls; shutdown now"}, "deny", "policy"),
        ("read_file", {"path": "app.py"}, "allow", "policy"),
        ("edit_file", {"path": "app.py", "old": "1", "new": "2"}, "allow", "policy"),
        ("never__do", {}, "deny", "policy"),
        ("read_file", {"path": "../x"}, "allow", "policy"),  # it cannot be done, and the model is told so
        ("write_file", {"path": "../.env", "content": ""}, "allow", "policy"),
        ("edit_file", {"path": "app.py", "old": "not there", "new": "2"}, "allow", "policy"),
        ("run_terminal_command", {}, "allow", "policy"),
    ],
)
def test_some_things_are_decided_without_a_question(
    tmp_path: Path, name: str, arguments: dict[str, Any], verdict: str, by: str
) -> None:
    async def scenario(case: Case) -> None:
        decided = await case.decided(name, **arguments)
        assert (decided.verdict, decided.by) == (verdict, by)
        assert decided.why

    for approve in ("ask", "all"):
        (tmp_path / approve).mkdir()
        play(tmp_path / approve, scenario, approve=approve)


ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "command": ("run_terminal_command", {"command": "deploy"}),
    "edit": ("write_file", {"path": ".env", "content": "KEY=2\n"}),
    "read": ("read_file", {"path": ".env"}),
    "tool": ("guest__do", {"x": 1}),
}
SETTINGS = {"ask": (), "commands": ("command",), "edits": ("edit", "read"), "all": ("command", "edit", "read", "tool")}


@pytest.mark.parametrize("subject", ASKED)
@pytest.mark.parametrize("approve", SETTINGS)
def test_what_is_approved_beforehand_is_not_asked(tmp_path: Path, approve: str, subject: str) -> None:
    name, arguments = ASKED[subject]

    async def scenario(case: Case) -> None:
        unasked = subject in SETTINGS[approve]
        decided = await case.decided(name, *(() if unasked else (DENY,)), **arguments)
        assert decided.verdict == ("allow" if unasked else "deny")
        assert decided.by == ("settings" if unasked else "person")
        assert [asked.subject for asked in case.asked] == ([] if unasked else [subject])
        assert bool(decided.digest) == (unasked and subject == "edit")

    play(tmp_path, scenario, approve=approve)


@pytest.mark.parametrize("command", ["git push --force", "rm -rf /", "true; rm -rf ~", "curl x | sh"])
@pytest.mark.parametrize("approve", SETTINGS)
def test_what_is_critical_is_asked_whatever_is_set_or_remembered(tmp_path: Path, approve: str, command: str) -> None:
    async def scenario(case: Case) -> None:
        case.approvals.remember_patterns(
            ['["git", "push"]', '["rm"]', '["curl"]', '["sh"]', '["git", "push", "--force"]']
        )
        for _ in range(2):
            decided = await case.command(command, ONCE)
            assert (decided.verdict, decided.by, decided.remembered) == ("allow", "person", ())
        assert [(asked.tier, asked.remember) for asked in case.asked] == [("critical", ())] * 2

    play(tmp_path, scenario, approve=approve)


@pytest.mark.parametrize("approve", SETTINGS)
def test_the_same_call_for_the_third_time_is_asked_whatever_is_set(tmp_path: Path, approve: str) -> None:
    async def scenario(case: Case) -> None:
        assert (await case.command("ls", DENY, again=True)).verdict == "deny"
        assert (await case.command("git push -f", DENY, again=True)).verdict == "deny"
        assert (await case.command("shutdown now", again=True)).by == "policy"
        harmless, harmful = case.asked
        assert {harmless.subject, harmful.subject} == {"again"}
        assert {harmless.remember, harmful.remember} == {()}
        assert "stuck in a loop" in harmless.why
        assert harmful.tier == "critical"
        assert "push" in harmful.why.partition("loop")[2], "what is wrong with it is said as well"

    play(tmp_path, scenario, approve=approve)


# ── answers ──────────────────────────────────────────────────────────────────────────────────────


def test_an_answer_to_another_question_is_none(tmp_path: Path) -> None:
    async def scenario(case: Case) -> None:
        first = case.deciding("run_terminal_command", command="deploy")
        asked = await case.question()
        for wrong in ("", "ask_0", asked.call, asked.approval.upper(), f"{asked.approval} "):
            assert case.approvals.submit_reply(wrong, ONCE) == "this approval was already answered, or does not exist"
        assert not first.done()
        second = case.deciding("guest__do")
        other = await case.question(2)
        assert other.approval != asked.approval
        assert case.approvals.submit_reply(other.approval, DENY) == ""
        assert (await second).verdict == "deny"
        assert not first.done()
        assert case.approvals.submit_reply(asked.approval, ONCE) == ""
        assert (await first).verdict == "allow"

    play(tmp_path, scenario)


def test_the_first_answer_counts(tmp_path: Path) -> None:
    async def scenario(case: Case) -> None:
        deciding = case.deciding("run_terminal_command", command="deploy")
        asked = await case.question()
        assert case.approvals.submit_reply(asked.approval, DENY) == ""
        case.approvals.submit_reply(asked.approval, ONCE)
        case.approvals.submit_reply(asked.approval, ApprovalReply(verdict="once", command="rm -rf /"))
        assert (await deciding).verdict == "deny"
        assert "already answered" in case.approvals.submit_reply(asked.approval, ONCE)

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    ("name", "arguments", "reply", "why"),
    [
        ("run_terminal_command", {"command": "git push -f"}, ALWAYS, "this can only be allowed once"),
        ("write_file", {"path": ".env", "content": ""}, ALWAYS, "this can only be allowed once"),
        ("read_file", {"path": ".env"}, ALWAYS, "this can only be allowed once"),
        ("read_file", {"path": ".env"}, ApprovalReply(verdict="once", command="ls"), "only commands can be edited"),
        ("guest__do", {}, ApprovalReply(verdict="once", command="ls"), "only commands can be edited"),
        (
            "run_terminal_command",
            {"command": "deploy"},
            ApprovalReply(verdict="always", command="deploy fast"),
            "an edited command can only be allowed once",
        ),
    ],
)
def test_an_answer_that_cannot_be_is_refused_and_the_question_stays(
    tmp_path: Path, name: str, arguments: dict[str, Any], reply: ApprovalReply, why: str
) -> None:
    async def scenario(case: Case) -> None:
        deciding = case.deciding(name, **arguments)
        asked = await case.question()
        assert case.approvals.submit_reply(asked.approval, reply) == why
        await asyncio.sleep(0.01)
        assert not deciding.done()
        assert case.approvals.submit_reply(asked.approval, DENY) == ""
        assert (await deciding).verdict == "deny"

    play(tmp_path, scenario)


def test_words_go_with_the_answer_and_nobody_is_named_who_was_not_there(tmp_path: Path) -> None:
    async def scenario(case: Case) -> None:
        decided = await case.command("deploy", ApprovalReply(verdict="deny", words="use make"))
        assert (decided.by, decided.words) == ("person", "use make")
        decided = await case.command("deploy", ApprovalReply(verdict="deny", is_unattended=True))
        assert (decided.by, decided.why.split(";")[0]) == ("settings", "no user was available to approve")

    play(tmp_path, scenario)


def test_a_stop_ends_every_question(tmp_path: Path) -> None:
    async def scenario(case: Case) -> None:
        deciding = case.deciding("run_terminal_command", command="deploy")
        asked = await case.question()
        case.halt.request_stop()
        assert (await deciding).verdict == "stop"
        assert "already answered" in case.approvals.submit_reply(asked.approval, ONCE)

    play(tmp_path, scenario)


# ── what is remembered ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("first", "same", "others"),
    [
        ("deploy fast", ["deploy fast"], ["deploy", "deploy slow", "release fast", "sudo deploy fast"]),
        (
            "git commit -m x",
            ["git commit -m x", "git commit --amend"],
            ["git push", "git -C /tmp commit -m x", "sudo git commit -m x"],
        ),
        ("npm run deploy", ["npm run deploy"], ["npm publish", "npm run publish"]),
    ],
)
def test_always_allows_what_was_shown_and_nothing_else(
    tmp_path: Path, first: str, same: list[str], others: list[str]
) -> None:
    async def scenario(case: Case) -> None:
        decided = await case.command(first, ALWAYS)
        (asked,) = case.asked
        assert decided.remembered == asked.remember != ()
        for command in same:
            again = await case.command(command)
            assert (again.verdict, again.by) == ("allow", "remembered")
        for command in [*others, f"{first}; unknown", f"{first} && rm -rf /", f"{first} > .env", f"$({first}) x"]:
            assert (await case.command(command, DENY)).verdict == "deny", command
        assert (await case.command(f"{first}; shutdown now")).by == "policy"
        # A decision that needs no memory does not claim one.
        assert (await case.command("ls")).by == "policy"

    play(tmp_path, scenario)


def test_a_tool_of_somebody_else_is_remembered_by_its_name(tmp_path: Path) -> None:
    async def scenario(case: Case) -> None:
        decided = await case.decided("guest__do", ALWAYS, x=1)
        assert decided.remembered == case.asked[0].remember == ('{ tool = "guest__do" }',)
        again = await case.decided("guest__do", x=2)
        assert (again.verdict, again.by) == ("allow", "remembered")
        assert (await case.decided("never__do")).verdict == "deny"
        assert (await case.command("deploy", DENY)).verdict == "deny"

    play(tmp_path, scenario)


def test_what_was_remembered_before_the_session_was_opened_again_still_holds(tmp_path: Path) -> None:
    remembered: list[str] = []

    async def before(case: Case) -> None:
        remembered.extend((await case.command("deploy fast", ALWAYS)).remembered)
        remembered.extend((await case.decided("guest__do", ALWAYS)).remembered)

    async def after(case: Case) -> None:
        case.approvals.remember_patterns(remembered)
        assert (await case.command("deploy fast")).by == "remembered"
        assert (await case.decided("guest__do")).by == "remembered"

    for name, scenario in (("first", before), ("second", after)):
        (tmp_path / name).mkdir()
        play(tmp_path / name, scenario)


# ── edited commands ──────────────────────────────────────────────────────────────────────────────


def edited(command: str) -> ApprovalReply:
    return ApprovalReply(verdict="once", command=command)


@pytest.mark.parametrize(
    ("first", "becomes", "more", "verdict", "by"),
    [
        ("deploy", "ls", (), "allow", "person"),  # better
        ("deploy", "release", (), "allow", "person"),  # as bad
        ("git push -f", "git status", (), "allow", "person"),
        ("deploy", "shutdown now", (), "deny", "policy"),
        ("deploy", "git push -f", (DENY,), "deny", "person"),  # worse: asked again
        ("deploy", "git push -f", (ONCE,), "allow", "person"),
        ("deploy", "git push -f", (edited("shutdown now"),), "deny", "policy"),
        ("deploy", "git push -f", (edited("ls"),), "allow", "person"),
    ],
)
def test_an_edited_command_is_judged_again(
    tmp_path: Path, first: str, becomes: str, more: tuple[ApprovalReply, ...], verdict: str, by: str
) -> None:
    async def scenario(case: Case) -> None:
        decided = await case.command(first, edited(becomes), *more)
        assert (decided.verdict, decided.by) == (verdict, by)
        assert len(case.asked) == 1 + len(more)
        if more:
            assert (case.asked[1].command, case.asked[1].tier) == (becomes, "critical")
        last = next((reply.command for reply in reversed(more) if reply.command), becomes)
        assert json.loads(decided.call.arguments)["command"] == last
        if verdict == "allow" and len(more) == 0:
            assert f"The user changed the command to: {becomes}" in decided.words

    play(tmp_path, scenario)


def test_a_command_that_was_handed_back_unchanged_is_the_same_command(tmp_path: Path) -> None:
    async def scenario(case: Case) -> None:
        decided = await case.command("deploy", ApprovalReply(verdict="always", command="deploy"))
        assert decided.remembered
        assert decided.words == ""

    play(tmp_path, scenario)


# ── edits ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("becomes", ["KEY=3\n", None])
def test_a_file_that_changes_before_the_approved_edit_is_made_is_left_alone(
    tmp_path: Path, becomes: str | None
) -> None:
    place = Place(tmp_path, {".env": "KEY=1\n"}, [[tool("write_file", path=".env", content="KEY=2\n")], [DONE]])
    file = place.root / ".env"

    async def run() -> None:
        async with place.desk() as desk:
            session = await desk.open()

            def person(stamped: Any) -> None:
                if isinstance(stamped.event, ApprovalRequested):
                    file.unlink() if becomes is None else file.write_text(becomes)
                    session.answer_approval(stamped.event.approval, ONCE)

            session.subscribe(person)
            await session.run("what is it?")
            (ended,) = [stamped.event for stamped in session.events if isinstance(stamped.event, ToolFinished)]
            assert ended.status == "error"
            assert "have changed since" in ended.content
            await session.close()

    asyncio.run(run())
    assert (file.read_text() if file.exists() else None) == becomes


# ── waiting ──────────────────────────────────────────────────────────────────────────────────────


def test_fifty_sessions_wait_without_a_thread(tmp_path: Path) -> None:
    call = tool("run_terminal_command", command="deploy")
    place = Place(tmp_path, {}, [[call], [DONE]])

    async def run() -> None:
        async with place.desk() as desk:
            sessions = [await desk.open() for _ in range(50)]
            waiting: dict[str, str] = {}
            running = []
            for session in sessions:

                def person(stamped: Any, session: Any = session) -> None:
                    if isinstance(stamped.event, ApprovalRequested):
                        waiting[session.id] = stamped.event.approval

                session.subscribe(person)
            before = threading.active_count()
            for session in sessions:
                running.append(asyncio.ensure_future(session.run("what is it?")))
            async with asyncio.timeout(40):
                while len(waiting) < len(sessions):
                    await asyncio.sleep(0.01)
            assert threading.active_count() - before < len(sessions) // 2  # the database's, and those of a pool
            assert not any(task.done() for task in running)
            for session in sessions:
                assert session.answer_approval(waiting[session.id], DENY) == ""
            async with asyncio.timeout(40):
                assert {stopped.reason for stopped in await asyncio.gather(*running)} == {"done"}
            for session in sessions:
                await session.close()

    asyncio.run(run())
