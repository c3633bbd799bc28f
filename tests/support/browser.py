"""A browser for tests of web pages: the Chromium that npm brings, driven by Playwright.

    with chromium() as browser:
        page = AgentPage(browser, address)
        page.give("fix the failing test")
        page.allow()

`AgentPage` is a person at the agent's page. What it is told of sessions it reads off the screen, so a test is the same
whether a played session is behind the page or a real one.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from tests.support.npm import LIBRARIES, node

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WHERE = 'import chromium from "@sparticuz/chromium"; console.log(await chromium.executablePath());'
SECONDS = 15.0


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser. While it is open no event loop can be run in this thread."""
    found = subprocess.run(
        [str(node()), "--input-type=module", "-e", WHERE], cwd=LIBRARIES, capture_output=True, text=True, check=True
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found.stdout.strip(), args=FLAGS)
        yield browser
        browser.close()


class AgentPage:
    """A tab with the agent's page in it. `problems` are the errors of its scripts; there should be none."""

    def __init__(self, browser: Browser, address: str, **context: Any) -> None:
        self.page: Page = browser.new_context(**context).new_page()
        self.problems: list[str] = []
        self._open(address)

    def _open(self, address: str) -> None:
        self.page.set_default_timeout(SECONDS * 1000)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", lambda said: said.type == "error" and self.problems.append(said.text))
        self.page.goto(address)

    def another(self, address: str) -> AgentPage:
        """A second tab of the same browser: it has the same cookies."""
        other = AgentPage.__new__(AgentPage)
        other.page, other.problems = self.page.context.new_page(), []
        other._open(address)
        return other

    # ── what is to be seen ──────────────────────────────────────────────────────────────────────
    @property
    def log(self) -> Locator:
        return self.page.locator("#log")

    @property
    def html(self) -> str:
        """The whole session, as it is shown."""
        return str(self.log.evaluate("log => log.outerHTML"))

    @property
    def approval(self) -> Locator:
        return self.page.locator(".approval")

    @property
    def words(self) -> Locator:
        """Where a task is written."""
        return self.page.get_by_label("Task", exact=True)

    def sees(self, text: str) -> None:
        expect(self.log).to_contain_text(text, timeout=SECONDS * 1000)

    def ended(self, words: str = "Done") -> None:
        """Wait for the summary of a task, and for the page to be ready for the next."""
        expect(self.page.locator(".ending").last.locator("h3")).to_have_text(words, timeout=SECONDS * 1000)
        expect(self.page.locator("#send")).to_be_visible(timeout=SECONDS * 1000)

    def file(self, path: str) -> Locator:
        return self.page.locator(f'.changed[aria-label="{path}"]')

    def hunks(self, path: str) -> Locator:
        """The parts of a file's change, which are unfolded first."""
        toggle = self.file(path).locator(".toggle")
        if toggle.get_attribute("aria-expanded") == "false":
            toggle.click()
        expect(self.file(path).locator(".hunk").first).to_be_visible(timeout=SECONDS * 1000)
        return self.file(path).locator(".hunk")

    # ── what is done ────────────────────────────────────────────────────────────────────────────
    def give(self, task: str) -> None:
        self.words.fill(task)
        self.words.press("Enter")

    def allow(self, verdict: str = "Allow once") -> None:
        self.approval.get_by_role("button", name=verdict, exact=True).click()

    def change(self, command: str) -> None:
        self.approval.get_by_label("Command").fill(command)
        self.allow("Allow edited command")

    def deny(self, words: str = "") -> None:
        self.approval.get_by_label("Message to the model").fill(words)
        self.allow("Deny")

    def stop(self) -> None:
        self.page.get_by_role("button", name="Stop", exact=True).click()

    def reload(self) -> None:
        """Load the page again, and wait until it has caught up."""
        self.page.reload()
        expect(self.page.locator("#about")).not_to_be_empty(timeout=SECONDS * 1000)
