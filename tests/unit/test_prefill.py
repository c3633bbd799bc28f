"""What the prompt wrote of the answer is read, and neither shown nor mended."""

from __future__ import annotations

from callwright import get_dialect
from tests.support.harness import read


def test_a_marker_that_the_prompt_wrote_is_no_stray_one() -> None:
    hermes = get_dialect("hermes")
    assert read(hermes, "Hello.", prefill="</think>").repairs == ()
    assert [repair.kind for repair in read(hermes, "</think>Hello.").repairs] == ["stray_marker"]
