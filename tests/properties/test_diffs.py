"""Laws of diffs, merges and patches.

A patch made of a change makes that change; a hunk taken out and put in again is where it was; two sides that did
nothing to the same lines lose nothing when they are merged.
"""

from __future__ import annotations

import random

from hypothesis import example, given
from hypothesis import strategies as st

from callwright.agent.changes.diff import build_hunks, count_changed_lines, find_edits, format_unified_diff, split_lines
from callwright.agent.changes.file_change import FileChange
from callwright.agent.changes.patch import apply_patch
from callwright.agent.changes.three_way_merge import apply_hunk, merge_contents, revert_hunk
from tests.support.sampling import FULL

TRAPS = [b"--- a/x", b"+++ b/x", b"-- x", b"++ y", b"@@ -1 +1 @@", b"\\ No newline", b"diff --git", b"*** End Patch"]
LINES = st.sampled_from([b"a", b"b", b"", b" ", b"a\r", b"\r", b"\xef\xbb\xbfa", "ä\u2028ö".encode(), *TRAPS])
FILES = st.builds(lambda body, end: b"\n".join(body) + end, st.lists(LINES, max_size=12), st.sampled_from([b"", b"\n"]))
CONTENTS = st.none() | FILES
NAMES = st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs", "Zl", "Zp"]), min_size=1, max_size=6)


@given(FILES, FILES)
def test_the_changed_ranges_make_one_version_of_the_other(before: bytes, after: bytes) -> None:
    old, new = split_lines(before), split_lines(after)
    assert b"".join(old) == before
    made, at = [], 0
    for edit in find_edits(old, new):
        assert edit.start > at or edit.start == at == 0 or not made, "neighbours are one edit"
        made += old[at : edit.start] + new[edit.new_start : edit.new_end]
        at = edit.end
    assert made + old[at:] == new


@given(CONTENTS, CONTENTS, NAMES)
@example(None, b"", "a")
@example(b"", None, "a")
@example(b"a", b"a\n", 'tab\t"quote"')
def test_a_patch_of_a_change_makes_the_change(before: bytes | None, after: bytes | None, name: str) -> None:
    if before == after or name.strip() != name:
        return
    change = FileChange(path=f"src/{name}", before=before, after=after)
    assert apply_patch(format_unified_diff(change), {change.path: before}.get) == (change,)


@given(CONTENTS, CONTENTS)
def test_hunks_add_up_to_the_whole(before: bytes | None, after: bytes | None) -> None:
    found = build_hunks(before, after)
    assert bool(found) == (before != after)
    assert (sum(hunk.added for hunk in found), sum(hunk.removed for hunk in found)) == count_changed_lines(
        before, after
    )
    assert len({hunk.id for hunk in found}) == len(found)
    taken_out, put_in = after, before
    for hunk in reversed(found):
        taken_out = revert_hunk(before, taken_out, hunk)
        put_in = apply_hunk(put_in, after, hunk)
    assert (taken_out, put_in) == (before, after)


@given(st.lists(st.sampled_from(["keep", "edit", "drop"]), min_size=20, max_size=60), st.randoms(use_true_random=False))
def test_one_hunk_taken_out_leaves_the_others_and_their_ids(plan: list[str], dice: random.Random) -> None:
    before = "".join(f"line {number}\n" for number in range(len(plan))).encode()
    kinds = {"keep": "line {0}\n", "edit": "changed {0}\n", "drop": ""}
    after = "".join(kinds[kind].format(number) for number, kind in enumerate(plan)).encode()
    if not (found := build_hunks(before, after)):
        return
    out = dice.choice(found)
    assert [hunk.id for hunk in build_hunks(before, revert_hunk(before, after, out))] == [
        hunk.id for hunk in found if hunk is not out
    ]


@given(CONTENTS, CONTENTS, CONTENTS)
def test_a_merge_is_the_same_from_both_sides(base: bytes | None, ours: bytes | None, theirs: bytes | None) -> None:
    assert merge_contents(base, base, theirs) == (theirs, True)
    assert merge_contents(base, ours, base) == (ours, True)
    assert merge_contents(base, ours, ours) == (ours, True)
    forth, back = merge_contents(base, ours, theirs), merge_contents(base, theirs, ours, prefer="theirs")
    assert forth == back


SIDES = st.lists(st.sampled_from(["", "", "", "ours", "theirs", "both", "same"]), min_size=1, max_size=30)


@given(SIDES, st.booleans())
def test_what_two_sides_did_to_different_lines_is_all_there(who: list[str], insert: bool) -> None:
    """Each line is changed by nobody, one side, both alike or both differently; between them stand lines of nobody."""

    def version(side: str) -> bytes:
        text = ""
        for number, changer in enumerate(who):
            word = side if side and changer in ("both", side) else "same" if side and changer == "same" else ""
            text += f"line {number}\n" if insert or not word else ""
            text += f"{word} {number}\n" if word else ""
            text += f"between {number}\n"
        return text.encode()

    result = merge_contents(version(""), version("ours"), version("theirs"))
    assert result.is_clean == ("both" not in who)
    words = (result.data or b"").decode().split("\n")
    for number, changer in enumerate(who):
        kept = {"": None, "same": "same", "ours": "ours", "theirs": "theirs", "both": "ours"}[changer]
        assert (f"{kept} {number}" in words) == (kept is not None)
        assert f"between {number}" in words
    assert f"theirs {who.index('both')}" not in words if "both" in who else True


def test_long_files_of_any_kind_are_compared_in_a_moment() -> None:
    """Bounded by what is counted, not by the clock: the test's own time limit is the only one."""
    dice, count = random.Random(1), 50_000 if FULL else 10_000
    plain = [f"line {number}\n".encode() for number in range(count)]
    alike = [dice.choice([b"{\n", b"}\n"]) for _ in range(count)]
    for old in (plain, alike, [b"a\n"] * count):
        scattered = list(old)
        for _ in range(200):
            scattered[dice.randrange(count)] = b"x%d\n" % dice.randrange(3)
        for new in (scattered, old[::-1], [b"a\n", b"b\n"] * (count // 2), dice.sample(old, count)):
            before, after = b"".join(old), b"".join(new)
            assert all(revert_hunk(before, after, hunk) is not None for hunk in build_hunks(before, after)[:1])
    few = list(plain)
    for number in (5, 4_000, count - 1_000):
        few[number] = b"changed\n"
    assert [hunk.removed for hunk in build_hunks(b"".join(plain), b"".join(few))] == [1, 1, 1]
