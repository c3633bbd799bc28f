"""A session of an hour: the memory that it takes does not grow with it, and what was shown is what is stored."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sampling import FULL

SCRIPT = Path(__file__).parents[2] / "scripts" / "agent_long.py"
MEGABYTES = 200
EVENTS = 10_000 if FULL else 400


@pytest.mark.timeout(900)
def test_any_number_of_events_stays_within_200_megabytes_and_are_there_again() -> None:
    ran = subprocess.run(
        [sys.executable, SCRIPT, "--json", "--events", str(EVENTS)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["equal"]
    assert found["events"] >= EVENTS
    assert found["megabytes_at_most"] < MEGABYTES
