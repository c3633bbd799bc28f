"""Run the command line with `python -m callwright`."""

from __future__ import annotations

import sys

from callwright.cli import main

if __name__ == "__main__":
    sys.exit(main())
