"""The command as a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

CALL = '<tool_call>{"name": "ping", "arguments": {"n": "1",}}</tool_call>'


def test_a_pipe_is_read_from_standard_input() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "callwright", "parse", "-d", "hermes", "--json"],
        input=CALL.encode(),
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["tool_calls"][0]["name"] == "ping"
