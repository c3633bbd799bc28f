"""Generate the table of dialects in README.md, between its markers. `make readme` runs this."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from callwright.cli.dialects import render_markdown_table

README = Path(__file__).resolve().parents[1] / "README.md"
TABLE = re.compile(r"(?<=<!-- dialects:begin -->\n).*?(?=<!-- dialects:end -->)", re.DOTALL)


def main() -> int:
    before = README.read_text(encoding="utf-8")
    table = f"\n{render_markdown_table().strip()}\n\n"
    after, found = TABLE.subn(lambda _: table, before)
    if found != 1:
        print(f"{README.name}: expected one pair of dialects markers, found {found}", file=sys.stderr)
        return 1
    README.write_text(after, encoding="utf-8")
    print(f"{README.name}: {'written' if after != before else 'up to date'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
