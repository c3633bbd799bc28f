"""docs/architecture.md names only files that exist, and every package of the layers."""

from __future__ import annotations

import re

from tests.meta.repository import PACKAGE, ROOT
from tests.meta.test_layers import layers

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PATHS = sorted(set(re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.(?:py|toml|md))?|[a-z_]+\.py)`", PAGE)))


def exists(path: str) -> bool:
    return any((base / path).exists() for base in (PACKAGE, ROOT, PACKAGE / "gateway"))


def test_every_file_on_the_walks_is_there() -> None:
    assert len(PATHS) > 40
    assert not [path for path in PATHS if not exists(path)]


def test_every_package_has_its_place() -> None:
    packages = {name for layer in layers() for name in layer if (PACKAGE / name).is_dir()}
    assert not [name for name in packages if f"`{name}`" not in PAGE]


def test_its_links_and_pictures_are_there() -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", PAGE)
    assert not [target for target in targets if not (ROOT / "docs" / target).exists()]
