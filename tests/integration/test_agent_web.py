"""The agent's page in a real browser: what a person can do there, and what hostile words and foreign pages cannot."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser, expect

from callwright.agent.session_events import (
    ApprovalRequested,
    CallDecided,
    GroupClosed,
    GroupOpened,
    SessionEvent,
    StampedEvent,
    TaskStopped,
    TaskSummarized,
    TextAppended,
    ThinkingAppended,
    ThinkingEnded,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    WarningIssued,
)
from callwright.agent.ui.web import build_page_url
from callwright.model import Message, Text, ToolCall
from tests.support.browser import AgentPage, chromium
from tests.support.played_web import Gate, PlayedSessions, Script, Web, tasked
from tests.support.web_story import COMMAND, EDIT, FILES, SAID, STORY, asking, saying, tool

pytestmark = pytest.mark.usefixtures("libraries")


@pytest.fixture(scope="module")
def browser(libraries: None) -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


class Room:
    """What stands behind the pages of a test."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.pages: list[AgentPage] = []
        self.web: Web
        self.sessions: PlayedSessions

    def open(self, *scripts: Script, **played: Any) -> AgentPage:
        return self.serve(PlayedSessions(*scripts, **played))

    def serve(self, sessions: PlayedSessions) -> AgentPage:
        self.sessions = sessions
        self.web = Web(sessions).__enter__()
        return self.sit(self.web.address)

    def sit(self, where: str) -> AgentPage:
        self.pages.append(AgentPage(self.browser, where, viewport={"width": 1280, "height": 860}))
        return self.pages[-1]

    def session(self) -> Any:
        return next(reversed(self.sessions.all.values()))


@pytest.fixture
def room(browser: Browser) -> Iterator[Room]:
    room = Room(browser)
    yield room
    room.web.__exit__()
    for page in room.pages:
        page.page.context.close()
    # What a test did not mean to happen in a page; a lost connection is in the console too.
    problems = [each for page in room.pages for each in page.problems if "net::ERR_CONNECTION_" not in each]
    assert problems == []


def one(*steps: Any) -> list[Any]:
    """A task with one group of calls."""
    return [GroupOpened(title="Work", calls=1), *steps, GroupClosed()]


COMMANDS = one(*asking(COMMAND, "run_terminal_command", "Run pip install", "installed\n", ""))


# ── approvals ───────────────────────────────────────────────────────────────────────────────────
def test_an_approval_says_what_why_how_dangerous_and_what_always_would_remember(room: Room) -> None:
    page = room.open(COMMANDS)
    page.give("Install it")
    card = page.approval
    for words in (
        COMMAND.title,
        "changes what is installed",
        "Medium risk",
        "until this session ends: commands that begin with pip install, commands that begin with pytest -q",
    ):
        expect(card).to_contain_text(words)
    expect(card.get_by_label("Command")).to_have_value(COMMAND.command)
    expect(card).to_be_focused()  # the card, not a button: Enter must not answer it
    page.page.keyboard.press("Enter")
    assert room.session().replies == []
    page.page.keyboard.press("Tab")
    expect(card.get_by_label("Command")).to_be_focused()
    for _ in range(2):
        page.page.keyboard.press("Tab")
    expect(card.get_by_role("button", name="Allow once")).to_be_focused()
    page.page.keyboard.press("Enter")
    page.ended()
    assert [(name, reply.verdict, reply.command) for name, reply in room.session().replies] == [
        ("approval-1", "once", "")
    ]


def test_always_remembers_what_the_card_said(room: Room) -> None:
    page = room.open(COMMANDS)
    page.give("Install it")
    page.allow("Always")
    page.ended()
    page.sees("You allowed it, and until this session ends also commands that begin with pip install")
    assert room.session().replies[0][1].verdict == "always"


def test_a_changed_command_is_sent_as_changed_and_cannot_be_allowed_always(room: Room) -> None:
    page = room.open(COMMANDS)
    page.give("Install it")
    page.approval.get_by_label("Command").fill("pytest -q")
    expect(page.approval.get_by_role("button", name="Always")).to_be_disabled()
    page.change("pytest -q")
    page.ended()
    page.sees("You edited and allowed it")
    expect(page.page.locator(".command")).to_have_text("pytest -q")
    assert room.session().replies[0][1].command == "pytest -q"


def test_a_denied_call_is_not_run_and_the_model_is_told_why(room: Room) -> None:
    page = room.open(COMMANDS)
    page.give("Install it")
    page.deny("use what is there")
    page.ended()
    page.sees("You denied it: “use what is there”")
    expect(page.page.locator(".card")).to_have_attribute("data-status", "denied")
    assert room.session().replies[0][1].words == "use what is there"


def test_deny_and_stop_ends_the_task(room: Room) -> None:
    page = room.open(COMMANDS)
    page.give("Install it")
    page.allow("Deny and stop")
    page.ended("Stopped by you")


def test_an_edit_of_a_protected_file_shows_its_diff_with_line_numbers_and_no_always(room: Room) -> None:
    page = room.open(one(*asking(EDIT, "edit_file", "Edit .env", "", "written")))
    page.give("Set the currency")
    added = page.approval.locator(".diff tr.added")
    expect(added).to_have_text(["2+CURRENCY=CHF", "3+ROUNDING=half-up"])
    expect(page.approval.locator(".diff tr.removed")).to_have_text(["2−CURRENCY=EUR"])
    assert page.approval.get_by_role("button").all_inner_texts() == ["Allow once", "Deny", "Deny and stop"]
    page.allow()
    page.ended()


def test_characters_that_are_not_seen_are_said(room: Room) -> None:
    sly = msgspec.structs.replace(COMMAND, command="echo hi\u202e\u200b\r\n# mr", remember=())
    page = room.open(one(*asking(sly, "run_terminal_command", "Run echo", "hi\n", "")))
    page.give("Say hi")
    expect(page.approval).to_contain_text("It contains invisible characters: U+202E, U+200B, U+000D.")
    page.allow()
    page.ended()
    assert room.session().replies[0][1].command == ""  # as it was, not as the browser would write it


@pytest.mark.parametrize(
    ("rule", "plain"),
    [
        ('["npm", "run", "a b"]', 'until this session ends: commands that begin with npm run "a b"'),
        ('{ tool = "web_fetch" }', "until this session ends: every call of web_fetch"),
        ("[not json", "until this session ends: [not json"),
    ],
)
def test_what_always_would_remember_is_said_in_words(room: Room, rule: str, plain: str) -> None:
    asked = msgspec.structs.replace(COMMAND, remember=(rule,))
    page = room.open(one(*asking(asked, "run_terminal_command", "Run it", "", "ok")))
    page.give("Go")
    expect(page.approval.locator(".remember")).to_contain_text(plain)
    page.allow()
    page.ended()


def test_a_server_is_asked_about_before_a_task_and_remembered_for_good(room: Room) -> None:
    always = "exactly this content of .mcp.json, from now on"
    asked = ApprovalRequested(approval="a", call="a", subject="server", title="Start it?", why="x", remember=(always,))
    decided = CallDecided(call=ToolCall("a", "", "{}"), verdict="allow", by="person", why="x")
    sessions = PlayedSessions()
    sessions.add("old", [asked, decided, tasked("Go")])
    sessions.add("new", [asked])
    page = room.serve(sessions)
    page.page.locator(".session").first.click()
    expect(page.approval.locator(".remember")).to_have_text(f"“Always” allows: {always}")
    page.page.locator(".session").last.click()
    page.sees("You allowed it")
    expect(page.page.locator(".card")).to_have_attribute("data-status", "ok")


def test_a_diff_names_its_files_when_there_are_several(room: Room) -> None:
    part = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -1,1 +1,2 @@\n --- x\n+++ y\n"
    cases = [part.format("one.py"), part.format("one.py") + part.format("two.py") + "12 more lines\n"]
    page = room.open().page
    rows = page.evaluate(
        """async (texts) => {
            const { diff } = await import("/static/diff.js");
            const rows = (text) => [...diff(text).querySelectorAll("tr")];
            return texts.map((text) => rows(text).map((row) => [row.className, row.textContent]));
        }""",
        cases,
    )
    lines = [["place", "line 1"], ["same", "11--- x"], ["added", "2+++ y"]]
    assert rows == [lines, [["head", "one.py"], *lines, ["head", "two.py"], *lines, ["head", "12 more lines"]]]


def test_whoever_is_writing_keeps_the_focus_when_a_question_comes(room: Room) -> None:
    gate = Gate()
    page = room.open([gate, *COMMANDS])
    page.give("Install it")
    words = page.words
    words.fill("And then")
    gate.open()
    expect(page.approval).to_be_visible()
    page.page.keyboard.type(" this")
    expect(words).to_have_value("And then this")


def test_two_tabs_see_the_same_and_the_second_answer_is_refused_gently(room: Room) -> None:
    first = room.open(COMMANDS)
    first.give("Install it")
    expect(first.approval).to_be_visible()
    second = first.another(first.page.url)
    expect(second.approval).to_be_visible()
    name = room.session().events[-1].event.approval
    second.page.evaluate("window.held = document.querySelector('.approval').cloneNode(true)")
    first.allow()
    first.ended()
    second.ended()
    assert first.html == second.html
    # An answer that was on its way when the other one came.
    socket = "new WebSocket(`ws://${location.host}/ws?session=s1&after=9999`)"
    command = {"type": "answer", "id": 1, "approval": name, "reply": {"verdict": "deny"}}
    said = second.page.evaluate(
        f"""command => new Promise(done => {{
            const socket = {socket};
            socket.onopen = () => socket.send(JSON.stringify(command));
            socket.onmessage = ({{ data }}) => JSON.parse(data).type === "done" && done(JSON.parse(data));
        }})""",
        command,
    )
    assert said["problem"]
    assert len(room.session().replies) == 1


# ── files ───────────────────────────────────────────────────────────────────────────────────────
def test_files_are_kept_and_undone_one_by_one_and_part_by_part(room: Room) -> None:
    page = room.open(STORY, files=FILES)
    page.give("Fix it")
    page.allow()
    page.ended()
    hunks = page.hunks("src/shop/total.py")
    expect(hunks).to_have_count(2)
    hunks.nth(1).get_by_role("button", name="Undo").click()
    page.sees("You undid a part of src/shop/total.py")
    expect(hunks).to_have_count(1)
    expect(page.file("src/shop/total.py").locator("header .stat")).to_have_text("+3−1")
    hunks.first.get_by_role("button", name="Keep").click()
    expect(page.file("src/shop/total.py")).to_have_count(0)
    page.sees("You kept a part of src/shop/total.py")
    page.page.get_by_label("Undo CHANGELOG.md").click()
    expect(page.page.locator("#files")).to_contain_text("Nothing to review")
    assert room.session().files == {}


def test_what_the_person_changed_is_left_alone_until_undo_anyway(room: Room) -> None:
    page = room.open(STORY, files=FILES, disturbed=["CHANGELOG.md"])
    page.give("Fix it")
    page.allow()
    page.ended()
    page.hunks("CHANGELOG.md")
    expect(page.file("CHANGELOG.md")).to_contain_text("You have changed this file since.")
    page.page.get_by_label("Undo CHANGELOG.md").click()
    expect(page.file("CHANGELOG.md").get_by_role("alert")).to_contain_text("CHANGELOG.md was left alone")
    assert "CHANGELOG.md" in room.session().files
    page.page.get_by_role("button", name="Undo anyway").click()
    expect(page.file("CHANGELOG.md")).to_have_count(0)
    assert "CHANGELOG.md" not in room.session().files


def test_undo_all_asks_once_more(room: Room) -> None:
    page = room.open(STORY, files=FILES)
    page.give("Fix it")
    page.allow()
    page.ended()
    page.page.get_by_role("button", name="Undo all").click()
    assert len(room.session().files) == 2
    page.page.get_by_role("button", name="Undo 2 files?").click()
    expect(page.page.locator("#files")).to_contain_text("Nothing to review")


# ── live equals reopened ────────────────────────────────────────────────────────────────────────
def test_a_session_that_is_reopened_looks_as_it_did_live(room: Room) -> None:
    page = room.open(STORY, files=FILES)
    page.give("Fix the failing test\nin tests/test_total.py")
    expect(page.approval).to_be_visible()
    asked = page.html
    page.reload()
    expect(page.approval).to_be_visible()
    assert page.html == asked
    page.allow("Always")
    page.ended()
    live = page.html
    page.reload()
    page.ended()
    assert page.html == live
    # In another browser, by the list.
    other = room.sit(room.web.address)
    other.page.get_by_role("button", name="Fix the failing test").first.click()
    other.ended()
    assert other.html == live


def test_a_page_that_was_loaded_again_in_the_middle_goes_on(room: Room) -> None:
    gates = [Gate(), Gate()]
    page = room.open([*STORY[:4], gates[0], *STORY[4:30], gates[1], *saying("The end.")])
    page.give("Fix it")
    page.sees("Thinking")
    page.reload()
    gates[0].open()
    page.sees("The test expects")
    page.reload()
    gates[1].open()
    page.ended()
    live = page.html
    page.reload()
    page.ended()
    assert page.html == live


_text = st.text(st.sampled_from(list("ab *`_[]()#-|>\n0.:/~")), max_size=40)
_call = st.sampled_from(["call-1", "call-2"])
_BY_TYPE: dict[Any, Any] = {
    str: _text,
    int: st.integers(0, 10**6),
    float: st.floats(0, 10**5),
    ToolCall: st.builds(ToolCall, _call, st.sampled_from(["read_file", "other"]), st.just("{}")),
    Message: st.just(Message("assistant", (Text("x"),))),
}


def _made(kind: Any) -> st.SearchStrategy[Any]:
    """Events of one kind, all fields filled in."""
    fields = {name: _BY_TYPE.get(hint, ...) for name, hint in get_type_hints(kind).items()}
    return st.builds(kind, **fields | ({"call": _call} if fields.get("call") is _text else {}))


_any = st.one_of([_made(kind) for kind in get_args(SessionEvent)])
_streams = [st.lists(_made(kind), min_size=2, max_size=8) for kind in (TextAppended, ThinkingAppended, ToolOutput)]
_sessions = st.lists(st.one_of(_any.map(lambda event: [event]), *_streams), max_size=25).map(chain.from_iterable)

LAW = """async (events) => {
  const { begin, fold } = await import("/static/fold.js");
  const { Chat } = await import("/static/chat.js");
  const drawn = (all, often) => {
    const log = document.createElement("div"), state = begin(), chat = new Chat(log, () => {});
    all.forEach((event) => (fold(state, event), often && chat.draw(state)));
    chat.draw(state);
    return log.innerHTML;
  };
  return [drawn(events, false), drawn(events, true), drawn([...events, ...events], false)];
}"""


def test_drawing_as_it_happens_and_drawing_at_once_are_the_same(room: Room) -> None:
    """The law behind "live equals reopened", for any events in any order; one that comes twice counts once."""
    page = room.open().page

    @given(_sessions)
    def law(events: Iterable[Any]) -> None:
        stamped = [StampedEvent(number, 1e9, event) for number, event in enumerate(events, 1)]
        once, often, twice = page.evaluate(LAW, json.loads(msgspec.json.encode(stamped)))
        assert once == often == twice

    law()


def test_ten_thousand_events_open(room: Room) -> None:
    events: list[Any] = []
    for task in range(60):
        events += [tasked(f"Task {task}", task + 1), ThinkingAppended("Well. " * 20), ThinkingEnded(2.0)]
        for group in range(4):
            events += [*saying(SAID, 12)[:20], GroupOpened(title=f"Step {group}", calls=3)]
            for call in range(3):
                name = f"call-{task}-{group}-{call}"
                events += [
                    ToolStarted(call=name, name="run_terminal_command", view="Run make", command="make"),
                    *[ToolOutput(call=name, text=f"line {line}\n") for line in range(5)],
                    ToolFinished(
                        call=name, name="run_terminal_command", view="Run make", status="ok", content="ok\n" * 50
                    ),
                ]
            events.append(GroupClosed())
        events += [TaskStopped(task=task + 1, reason="done", text=""), *[WarningIssued("Careful.")] * 8]
    sessions = PlayedSessions()
    session = sessions.add("long", events)
    assert len(session.events) > 10_000
    page = room.serve(sessions)
    expect(page.page.locator(".session")).to_have_count(1)
    page.page.get_by_role("button", name="Task 0").first.click()
    expect(page.page.locator(".ending")).to_have_count(60)


# ── the connection ──────────────────────────────────────────────────────────────────────────────
def test_a_lost_connection_is_said_and_comes_back_without_loss_or_doubles(room: Room) -> None:
    gates = [Gate() for _ in range(4)]
    words = [f"piece {number}. " for number in range(9)]
    script = [each for at in range(3) for each in (gates[at], *map(TextAppended, words[at * 3 : at * 3 + 3]))]
    sessions = PlayedSessions([*script, gates[3]])
    page = room.serve(sessions)
    # Every socket of the page is kept, to be broken.
    page.page.add_init_script(
        "const Real = WebSocket; window.sockets = [];"
        "window.WebSocket = class extends Real { constructor(url) { super(url); sockets.push(this); } };"
    )
    page.page.goto(room.web.url)
    page.give("Count")
    for at in range(3):
        gates[at].open()
        page.sees(words[at * 3 + 2].strip())
        page.page.evaluate("sockets.at(-1).close(4000)")
    gates[3].open()
    page.ended()
    assert page.page.locator(".text").inner_text() == "".join(words).strip()
    assert page.page.evaluate("sockets.length") == 4
    assert page.page.evaluate("sockets.slice(1).filter(({ url }) => url.endsWith('after=0')).length") == 0


def test_a_server_that_is_away_is_said_and_one_that_has_another_key_too(room: Room) -> None:
    page = room.open()
    expect(page.page.locator("#banner")).to_be_hidden()
    room.web.__exit__()
    expect(page.page.get_by_text("Connection lost")).to_be_visible()
    page.give("Do something")
    expect(page.page.locator("#trouble")).to_have_text("Not connected.")
    room.web = Web(PlayedSessions(), room.web.port).__enter__()
    expect(page.page.get_by_text("Open the URL that the terminal printed")).to_be_visible(timeout=15_000)
    page.problems.clear()  # the refusals are in the console


def test_stop_stops(room: Room) -> None:
    page = room.open([*saying("I begin."), Gate()])
    page.give("Work for ever")
    page.sees("I begin.")
    page.stop()
    page.ended("Stopped by you")


# ── the list ────────────────────────────────────────────────────────────────────────────────────
def test_sessions_are_listed_found_begun_and_deleted(room: Room) -> None:
    sessions = PlayedSessions(saying("Hello."), saying("Again."))
    for number in range(3):
        sessions.add(f"old{number}", [tasked(f"Old task {number}"), *saying("Yes.")])
    page = room.serve(sessions)
    rows = page.page.locator(".session")
    expect(rows).to_have_count(3)
    page.page.get_by_label("Search sessions").fill("task 1")
    expect(rows).to_have_count(1)
    rows.first.click()
    page.sees("Old task 1")
    assert sessions.opened == set()  # looking at one does not open it
    page.page.get_by_label("Search sessions").fill("")
    expect(rows).to_have_count(3)
    page.page.get_by_role("button", name="New session").click()
    expect(page.page.get_by_role("heading", name="What should the agent do?")).to_be_visible()
    page.give("Something new")
    page.ended()
    expect(rows).to_have_count(4)
    assert "session=s1" in page.page.url
    page.page.get_by_label("Delete Something new").click()
    page.page.get_by_label("Confirm deleting Something new").click()
    expect(rows).to_have_count(3)
    expect(page.page.get_by_role("heading", name="What should the agent do?")).to_be_visible()
    page.page.go_back()


def test_an_interrupted_task_is_said_and_gone_on_with(room: Room) -> None:
    sessions = PlayedSessions(saying("I go on."))
    sessions.add("left", [tasked("Half done"), *saying("I begin.")])
    page = room.serve(sessions)
    page.page.get_by_role("button", name="Half done").first.click()
    page.page.get_by_role("button", name="Resume").click()
    page.sees("I go on.")
    page.ended()


# ── hostile words ───────────────────────────────────────────────────────────────────────────────
HOSTILE = """<img src=x onerror="window.owned = 1"> <script>window.owned = 2</script>

- [click](javascript:window.owned=3) and [this](data:text/html,<script>1</script>) and <https://a.example/"onclick=x>
- ![picture](https://tracker.example/pixel.png)
- [good](https://good.example/path?q=1) **<b onclick=1>bold</b>**

```html" onload="window.owned=4
<iframe src="javascript:parent.owned=5"></iframe>
```
# <svg/onload=window.owned=6>
"""


def test_what_a_model_writes_is_never_html(room: Room) -> None:
    hostile = "<img src=x onerror='window.owned = 7'>"
    asked = ApprovalRequested(
        approval=hostile,
        call="c",
        subject="command",
        title=hostile,
        why=hostile,
        tier="high",
        command=hostile,
        diff=hostile,
    )
    script = [
        ThinkingAppended(HOSTILE),
        *saying(HOSTILE, 5),
        GroupOpened(title=hostile, calls=1),
        *tool("c1", hostile, hostile, HOSTILE, status="error", seconds=1.0),
        WarningIssued(hostile),
        *asking(asked, hostile, hostile, hostile, HOSTILE),
        GroupClosed(),
    ]
    page = room.open(script)
    asks = []
    page.page.on("request", lambda request: asks.append(request.url))
    page.give(hostile)
    page.allow()
    page.ended()
    page.page.locator("details").evaluate_all("all => all.forEach(each => (each.open = true))")
    page.page.wait_for_timeout(200)
    assert page.page.evaluate("window.owned") is None
    shown = page.log
    assert shown.locator("img, script, iframe, b[onclick], svg:not(.icon)").count() == 0
    assert (
        shown.evaluate(
            "log => [...log.querySelectorAll('*')].flatMap(e => e.getAttributeNames()).filter(n => n.startsWith('on'))"
        )
        == []
    )
    links = shown.locator("a").evaluate_all("all => all.map(each => [each.protocol, each.rel])")
    assert links
    assert {tuple(link) for link in links} == {("https:", "noopener noreferrer")}
    assert "[click](javascript:window.owned=3)" in shown.inner_text()
    assert not [url for url in asks if not url.startswith(room.web.url)]


RENDERED = [
    (
        "plain *words*, **bold _both_** and `a * b`",
        "<p>plain <em>words</em>, <strong>bold <em>both</em></strong> and <code>a * b</code></p>",
    ),
    ("# One #\n###### Six\n####### None", "<h3>One</h3><h6>Six</h6><p>####### None</p>"),
    ("- a\n- b\n  - c\n    more\n\n- d", "<ul><li>a</li><li>b<ul><li>c\nmore</li></ul></li><li>d</li></ul>"),
    ("3. a\n4) b", '<ol start="3"><li>a</li><li>b</li></ol>'),
    (
        "```py\n# <b>\n\n```\nafter",
        '<pre class="code" tabindex="0" data-language="py"><code># &lt;b&gt;\n</code></pre><p>after</p>',
    ),
    ("~~~\n```\nopen", '<pre class="code" tabindex="0"><code>```\nopen</code></pre>'),
    ("> said\n> so", "<blockquote><p>said\nso</p></blockquote>"),
    (
        "|a|\n|-|\n|1|",
        '<div class="wide"><table><thead><tr><th>a</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table></div>',
    ),
    ("---\nsnake_case_name, 2 * 3 * 4, ** and `", "<hr><p>snake_case_name, 2 * 3 * 4, ** and `</p>"),
    ("[a](ftp://x) [b](//x) [c](x)", "<p>[a](ftp://x) [b](//x) [c](x)</p>"),
    (
        "see http://x.example/a_b_c.",
        '<p>see <a href="http://x.example/a_b_c" title="http://x.example/a_b_c" target="_blank" rel="noopener noreferrer">http://x.example/a_b_c</a>.</p>',
    ),
    ("[**x**](JaVaScRiPt:1)", "<p>[<strong>x</strong>](JaVaScRiPt:1)</p>"),
    ("", ""),
]


def test_markdown_becomes_these_nodes(room: Room) -> None:
    page = room.open().page
    rendered = page.evaluate(
        """async (texts) => {
            const { markdown } = await import("/static/markdown.js");
            return texts.map((text) => markdown(text).map((node) => node.outerHTML).join(""));
        }""",
        [text for text, _ in RENDERED]
        + [shape * 30_000 for shape in ("*a", "[", "`", "- ", "> ", "|-", " ", "_a ", "#", "``` ")],
    )
    assert rendered[: len(RENDERED)] == [html for _, html in RENDERED]


# ── the door ────────────────────────────────────────────────────────────────────────────────────
def test_a_wrong_token_opens_nothing(room: Room) -> None:
    page = room.open()
    stranger = room.sit(build_page_url(room.web.url, "guessed"))
    expect(stranger.page.get_by_text("This URL is not valid")).to_be_visible()
    expect(stranger.words).to_be_hidden()
    assert "403" in " ".join(stranger.problems)
    stranger.problems.clear()
    assert stranger.page.context.cookies() == []
    # The right one leaves the address bar at once, and is no script's to read.
    expect(page.words).to_be_visible()
    assert "token" not in page.page.url
    assert page.page.evaluate("document.cookie") == ""
    (cookie,) = page.page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")


def test_a_page_of_another_port_of_this_machine_cannot_connect(room: Room) -> None:
    page = room.open()
    expect(page.words).to_be_visible()
    with Web(PlayedSessions()) as other:
        foreign = page.another(other.address)  # it shares the cookies, since browsers do not keep ports apart
        expect(foreign.words).to_be_visible()
        # Without the policy of our own pages, which forbids it before the server can.
        foreign.page.route("**/foreign", lambda route: route.fulfill(content_type="text/html", body="<p>foreign</p>"))
        foreign.page.goto(f"{other.url}/foreign")
        connected = foreign.page.evaluate(
            """url => new Promise(done => {
                const socket = new WebSocket(url);
                socket.onopen = () => done(true);
                socket.onclose = () => done(false);
            })""",
            f"ws://127.0.0.1:{room.web.port}/ws",
        )
        assert connected is False
        foreign.page.close()


def test_a_narrow_window_shows_one_thing_at_a_time(room: Room) -> None:
    page = room.open(STORY, files=FILES)
    page.page.set_viewport_size({"width": 420, "height": 800})
    page.give("Fix it")
    page.allow()
    page.ended()
    assert page.page.evaluate("document.documentElement.scrollWidth") == 420
    expect(page.page.locator("#files")).to_be_hidden()
    page.page.get_by_role("button", name="Files changed").click()
    expect(page.page.locator("#files")).to_be_visible()
    page.page.get_by_role("button", name="Sessions").click()
    expect(page.page.get_by_label("Search sessions")).to_be_visible()
    expect(page.page.locator("#files")).to_be_hidden()
    page.page.locator(".session").first.click()
    expect(page.page.get_by_label("Search sessions")).to_be_hidden()


def test_summaries_say_what_was_done_failed_and_denied(room: Room) -> None:
    summary = TaskSummarized(
        task=1,
        text="",
        done=("Read a.py",),
        failed=("Run make",),
        denied=("Run rm",),
        files=(),
        turns=1,
        tokens=10,
        seconds=1,
    )
    sessions = PlayedSessions()
    sessions.add("old", [tasked("Old"), TaskStopped(task=1, reason="tokens", text="The limit."), summary])
    page = room.serve(sessions)
    page.page.get_by_role("button", name="Old").first.click()
    page.ended("Stopped: token limit reached")
    for words in ("Did", "Read a.py", "Failed", "Run make", "Denied", "Run rm", "1 turn · 10 tokens · 1.0 s"):
        page.sees(words)
