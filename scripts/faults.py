"""Read faulty model output in every dialect: the matrix of law 11, and values that hold markup on purpose.

    make faults                              # prints the tables and writes them into docs/faults.md
    python scripts/faults.py --show hermes   # every case of a dialect that is not contained

A turn has words, a call with one fault, words, and a good call. It is contained if the good call is read right, no word
is lost, and no wrong call is passed on as complete.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from callwright.dialects import REGISTRY
from tests.support.faults import EXCEPTIONS, all_cases, judge, keeps_value, quoted_values, read_case

PAGE = ROOT / "docs" / "faults.md"
BEGIN, END = "<!-- faults:begin -->", "<!-- faults:end -->"
COLUMNS = ("cases", "contained", "good call read", "faulty call read", "wrong calls", "without a repair")


def measure_faults() -> tuple[dict[str, Counter[str]], Counter[str]]:
    """Read every case; count by fault, and in all."""
    by_fault: dict[str, Counter[str]] = defaultdict(Counter)
    for case in all_cases():
        verdict = judge(case, read_case(case))
        marks = (True, verdict.contained, verdict.survives, verdict.read, bool(verdict.wrong), verdict.silent)
        by_fault[case.fault.name].update({name: int(mark) for name, mark in zip(COLUMNS, marks, strict=True)})
    total: Counter[str] = Counter()
    for counts in by_fault.values():
        total.update(counts)
    return by_fault, total


def measure_values() -> tuple[int, list[str]]:
    """Return how many values with markup there are, and which of them are not kept."""
    lost: list[str] = []
    count = 0
    for dialect in REGISTRY.values():
        if dialect.name == "auto":
            continue
        for name, value in quoted_values(dialect):
            count += 1
            if not keeps_value(dialect, value):
                lost.append(f"{dialect.name}: {name}")
    return count, lost


def format_tables() -> str:
    """Format what is measured as Markdown."""
    by_fault, total = measure_faults()
    count, lost = measure_values()
    lines = [f"| fault | {' | '.join(COLUMNS)} |", f"|---|{'--:|' * len(COLUMNS)}"]
    rows = [*sorted(by_fault.items()), ("**all**", total)]
    lines += [f"| {name} | {' | '.join(f'{counts[column]:,}' for column in COLUMNS)} |" for name, counts in rows]
    share = 100 * total["contained"] / total["cases"]
    lines += ["", f"Contained: {share:.1f} %. Not contained, with the reason:", ""]
    lines += [f"- {name}: {reason}" for name, reason in EXCEPTIONS.items()]
    lines += ["", f"Values that hold markup on purpose: {count - len(lost):,} of {count:,} are kept. Lost:", ""]
    lines += [f"- {name}" for name in lost]
    return "\n".join(lines)


def show_cases(name: str) -> None:
    """Print every case of a dialect that is not contained."""
    for case in all_cases():
        turn = read_case(case)
        verdict = judge(case, turn)
        if case.dialect.name == name and not verdict.contained:
            print(f"{case.id}\n  text: {case.text!r}\n  calls: {turn.tool_calls}\n  shown: {turn.text!r}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--show", metavar="DIALECT", help="print the cases of a dialect that are not contained")
    options = parser.parse_args()
    if options.show:
        show_cases(options.show)
        return
    tables = format_tables()
    print(tables)
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{tables}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
