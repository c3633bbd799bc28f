"""What the models of the contract tests say: the weather conversation in every way of making calls, as a script."""

from __future__ import annotations

import json
from typing import Any

from tests.contract.weather import BERGEN, DIALECTS, LOOK, NAME, OSLO

OTHERS = ("native", "thinking", "silent", "two", "talk", "markup", "cut")
"""Models that are not named after a dialect; the last three are not asked for the weather."""

_TEXT = {"text": f"{LOOK}\n"}
_CALL = {"say": {"name": NAME, "arguments": OSLO}, "dialect": "hermes"}
_CUT = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Os'


def script() -> str:
    """The whole script, as JSON lines: each model's calls, then what all of them do with a result."""
    return "".join(json.dumps(turn) + "\n" for turn in _turns())


def _turns() -> list[dict[str, Any]]:
    calls = {
        **{name: [_TEXT, {**_CALL, "dialect": name}] for name in DIALECTS},
        "native": [_TEXT, {"call": {"name": NAME, "arguments": OSLO}}],
        "thinking": [{"reasoning": "They want a forecast."}, _TEXT, _CALL],
        "silent": [_CALL],
        "two": [_TEXT, _CALL, {"text": "\n"}, {**_CALL, "say": {"name": NAME, "arguments": BERGEN}}],
    }
    return [
        {"when": {"model": "talk"}, "steps": [{"text": "Hello yourself."}]},
        {"when": {"model": "markup"}, "steps": [{"text": "<get_weather>\n<city>Oslo</city>\n</get_weather>"}]},
        {"when": {"model": "cut"}, "steps": [_TEXT, {"text": _CUT}], "finish": "length"},
        {"when": {"results_from": 1}, "steps": [{"text": "Forecast: ${result}"}]},
        *({"when": {"model": model, "results": 0}, "steps": steps} for model, steps in calls.items()),
    ]
