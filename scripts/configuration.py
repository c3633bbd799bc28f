"""Generate the tables of docs/configuration.md, the JSON schema and the annotated example from the settings.

`make readme` runs this.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from callwright.config.describe import build_json_schema, render_markdown
from callwright.config.render import render_example_config

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "configuration.md"
TABLES = re.compile(r"(?<=<!-- settings:begin -->\n).*?(?=<!-- settings:end -->)", re.DOTALL)


def main() -> int:
    text, found = TABLES.subn(lambda _: f"\n{render_markdown()}\n\n", DOCUMENT.read_text(encoding="utf-8"))
    if found != 1:
        print(f"{DOCUMENT.name}: expected one pair of settings markers, found {found}", file=sys.stderr)
        return 1
    for path, content in (
        (DOCUMENT, text),
        (
            ROOT / "docs" / "callwright.schema.json",
            json.dumps(build_json_schema(), ensure_ascii=False, indent=2) + "\n",
        ),
        (ROOT / "callwright.example.toml", render_example_config()),
    ):
        is_current = path.is_file() and path.read_text(encoding="utf-8") == content
        path.write_text(content, encoding="utf-8")
        print(f"{path.name}: {'up to date' if is_current else 'written'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
