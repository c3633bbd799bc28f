"""Entry points of other packages: loading one never raises, whatever its code does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint, entry_points

__all__ = ["describe_origin", "list_entry_points", "load_entry_point", "run_foreign_code"]


def list_entry_points(group: str, points: Iterable[EntryPoint] | None = None) -> list[EntryPoint]:
    """Return the entry points of a group, sorted by name. `points` replaces those that are installed."""
    found = entry_points(group=group) if points is None else [point for point in points if point.group == group]
    return sorted(found, key=lambda point: point.name)


def describe_origin(point: EntryPoint) -> str:
    """Return the package and version that an entry point comes from."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value


def load_entry_point(point: EntryPoint) -> tuple[object, str]:
    """Return what an entry point names, or None and what went wrong."""
    return run_foreign_code(point.load)


def run_foreign_code(function: Callable[[], object]) -> tuple[object, str]:
    """Call a function of another package. Returns its result, or None and what it raised."""
    # It may raise anything, SystemExit included. In a thread that is a value.
    with ThreadPoolExecutor(max_workers=1) as thread:
        running = thread.submit(function)
        error = running.exception()
    if error is not None:
        return None, f"{type(error).__name__}: {error}"
    return running.result(), ""
