"""To be written."""

from __future__ import annotations

from collections.abc import Sequence

from callwright.dialects.base import Dialect

DIALECTS: Sequence[Dialect] = ()
