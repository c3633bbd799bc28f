"""A session of an hour: the memory that it takes does not grow with it, and what was shown is what is stored."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "agent_long.py"
MEGABYTES = 200


@pytest.mark.timeout(900)
def test_ten_thousand_events_stay_within_200_megabytes_and_are_there_again() -> None:
    ran = subprocess.run([sys.executable, SCRIPT, "--json"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["equal"]
    assert found["events"] >= 10_000
    assert found["megabytes_at_most"] < MEGABYTES
    assert found["of_these_on_the_processor"] < 10, "it is about one"
