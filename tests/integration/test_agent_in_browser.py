"""`callwright agent --web` as it is: the real command, a scripted model, real files, and a person in Chromium."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.browser import AgentPage, chromium
from tests.support.warm import start

pytestmark = pytest.mark.usefixtures("libraries")

BEFORE = "".join(f"line {number}\n" for number in range(1, 31))
SCRIPT = """
models = ["coder"]
[[turns]]
when = { results = 0, user = "edit two places" }
steps = [
  { text = "I change the first and the last line." },
  { call = { name = "edit_file", arguments = { path = "a.txt", old = "line 1\\nline 2", new = "first\\nline 2" } } },
  { call = { name = "edit_file", arguments = { path = "a.txt", old = "line 30\\n", new = "last\\n" } } },
]
[[turns]]
when = { results = 0, user = "install" }
steps = [{ call = { name = "run_terminal_command", arguments = { command = "npm install left-pad" } } }]
[[turns]]
when = { results = 0, user = "wait" }
steps = [{ text = "I am waiting for a long while. " }, { pause = 60 }]
[[turns]]
when = { results_from = 1 }
steps = [{ text = "That is all. [TASK_COMPLETE]" }]
"""


@pytest.fixture(scope="module")
def browser(libraries: None) -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@contextmanager
def agent(folder: Path) -> Iterator[str]:
    """The address that the command prints."""
    (folder / "script.toml").write_text(SCRIPT)
    config = folder / "callwright.toml"
    config.write_text(f'[[backends]]\nname = "script"\nkind = "scripted"\nscript = "{folder / "script.toml"}"\n')
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder / "home")}
    work = folder / "work"
    work.mkdir(exist_ok=True)
    words = ["callwright", "agent", "--web", "--config", str(config)]
    reading, writing = os.pipe()
    with os.fdopen(reading) as out:
        with os.fdopen(writing), Path(os.devnull).open() as nothing:
            child = start(words, cwd=work, environment=environment, files=(nothing.fileno(), writing, 2))
        try:
            yield next(found[0] for line in out if (found := re.search(r"http://\S+", line)))
        finally:
            os.kill(child.pid, signal.SIGTERM)
            child.wait(20)


def test_edits_are_reviewed_hunk_by_hunk_and_a_session_comes_back_as_it_was(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "work" / "a.txt"
    file.parent.mkdir()
    file.write_text(BEFORE)
    with agent(tmp_path) as address:
        page = AgentPage(browser, address)
        page.give("edit two places in a.txt")
        page.ended()
        assert file.read_text() == BEFORE.replace("line 1\n", "first\n", 1).replace("line 30\n", "last\n")
        expect(page.hunks("a.txt")).to_have_count(2)
        page.hunks("a.txt").first.get_by_role("button", name="Undo").click()
        expect(page.hunks("a.txt")).to_have_count(1)
        assert file.read_text() == BEFORE.replace("line 30\n", "last\n")
        page.file("a.txt").get_by_role("button", name="Keep").first.click()
        expect(page.file("a.txt")).to_have_count(0)
        seen = page.html
        page.reload()
        expect(page.log).to_contain_text("That is all.")
        assert page.html == seen
        assert page.problems == []
    with agent(tmp_path) as address:  # and in another process
        again = AgentPage(browser, address)
        again.page.get_by_text("edit two places in a.txt").first.click()
        expect(again.log).to_contain_text("That is all.")
        assert again.html == seen


def test_a_command_is_approved_changed_and_denied(browser: Browser, tmp_path: Path) -> None:
    with agent(tmp_path) as address:
        page = AgentPage(browser, address)
        page.give("install it")
        expect(page.approval).to_contain_text("npm install left-pad", timeout=15_000)
        page.change("echo changed > made.txt")
        page.ended()
        assert (tmp_path / "work" / "made.txt").read_text() == "changed\n"
        page.give("install it again")
        page.deny("use what is there")
        page.sees("use what is there")
        page.ended()
        assert page.problems == []


def test_work_is_stopped_at_once(browser: Browser, tmp_path: Path) -> None:
    with agent(tmp_path) as address:
        page = AgentPage(browser, address)
        page.give("wait")
        page.sees("I am waiting for a long while.")
        page.stop()
        page.ended("Stopped by you")
        assert page.problems == []


def test_what_is_said_before_the_page_is_let_in_is_not_lost(browser: Browser, tmp_path: Path) -> None:
    with agent(tmp_path) as address:
        page = AgentPage(browser, "about:blank")
        page.page.route("**/enter", lambda route: (time.sleep(1), route.continue_()))
        page.page.goto(address, wait_until="domcontentloaded")
        page.give("install it")
        expect(page.approval).to_contain_text("npm install left-pad", timeout=15_000)
        page.deny()
        page.ended()
