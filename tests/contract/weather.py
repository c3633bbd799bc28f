"""The conversation that every client library has: one question, one tool, one answer that quotes the tool's result.

A `Chat` is what a client made of it. Its texts are stripped: models leave a line break before a call, and dialects
differ in whether it belongs to the text.
"""

from __future__ import annotations

from typing import Any, NamedTuple

QUESTION = "What is the weather in Oslo?"
NAME = "get_weather"
DESCRIPTION = "The weather of the next days."
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
CHAT_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": NAME, "description": DESCRIPTION, "parameters": SCHEMA},
}
RESPONSES_TOOL: dict[str, Any] = {
    "type": "function",
    "name": NAME,
    "description": DESCRIPTION,
    "parameters": SCHEMA,
    "strict": False,
}
MESSAGES_TOOL: dict[str, Any] = {"name": NAME, "description": DESCRIPTION, "input_schema": SCHEMA}

LOOK = "Let me look."
OSLO = {"city": "Oslo", "days": 2}
BERGEN = {"city": "Bergen", "days": 3}


def forecast(city: str, days: int) -> str:
    """What the tool answers."""
    return f"{days} cold days in {city}"


class Chat(NamedTuple):
    """What a client saw: the text before the calls, their arguments, and the last answer."""

    text: str
    calls: list[dict[str, Any]]
    answer: str


DIALECTS = ("hermes", "qwen3_coder", "invoke", "kimi_k2", "mistral", "glm47")
"""Families whose calls look nothing like each other; the model's answer is text in one of them, dialect `auto`."""

EXPECTED = {
    **{name: Chat(LOOK, [OSLO], "Forecast: 2 cold days in Oslo") for name in (*DIALECTS, "native", "thinking")},
    "silent": Chat("", [OSLO], "Forecast: 2 cold days in Oslo"),
    "two": Chat(LOOK, [OSLO, BERGEN], "Forecast: 3 cold days in Bergen"),
}
"""By model: what every client must make of it."""
MODELS = tuple(EXPECTED)
