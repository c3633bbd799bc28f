"""Small jobs: a rule takes what it was written for, and never a turn with tools."""

from __future__ import annotations

from typing import Any

import pytest

from callwright.engine.jobs import JobSettings, find_job
from callwright.model import Message, Request, Text, ToolSpec


def asked(said: str = "hi", system: str = "", **changes: Any) -> Request:
    told = (Message("system", (Text(system),)),) if system else ()
    return Request("big", (*told, Message("user", (Text(said),))), **changes)


TITLE = asked("Generate a Title for this conversation")


@pytest.mark.parametrize(
    ("rule", "request_", "taken"),
    [
        ({"keywords": ("title for",)}, TITLE, True),
        ({"keywords": ("title for",)}, asked(system="You write a TITLE FOR chats."), True),
        ({"keywords": ("title for",)}, asked(), False),
        ({"keywords": ("nothing", "title")}, TITLE, True),
        ({"max_tokens": 20}, asked(options={"max_tokens": 20}), True),
        ({"max_tokens": 20}, asked(options={"max_tokens": 21}), False),
        ({"max_tokens": 20}, asked(), False),
        ({"max_tokens": 20, "keywords": ("title",)}, asked(options={"max_tokens": 20}), False),
        ({"keywords": ("title",), "models": ("b*",)}, TITLE, True),
        ({"keywords": ("title",), "models": ("other",)}, TITLE, False),
        ({}, TITLE, False),
        ({"keywords": ("title",)}, asked("a title", tools=(ToolSpec("t"),)), False),
    ],
)
def test_a_rule_takes_what_it_says(rule: dict[str, Any], request_: Request, taken: bool) -> None:
    job = JobSettings(name="titles", model="small", **rule)
    assert find_job(request_, [job]) == (job if taken else None)


def test_only_instructions_and_the_last_message_say_what_is_wanted() -> None:
    earlier = (Message("user", (Text("a title for my book?"),)), Message("assistant", (Text("Sure."),)))
    request = Request("big", (*earlier, Message("user", (Text("go on"),))))
    assert find_job(request, [JobSettings(name="titles", model="small", keywords=("title for",))]) is None


def test_the_first_rule_counts() -> None:
    jobs = [JobSettings(name=name, model=name, keywords=("title",)) for name in ("one", "two")]
    assert find_job(TITLE, jobs) == jobs[0]
