"""Where the store is, and what a person may say about it."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest

from callwright.errors import ConfigError, StoreError
from callwright.redaction import Redactor
from callwright.store.database import build_database
from callwright.store.open import open_store
from callwright.store.settings import StoreSettings, check_store_settings

POSTGRES = "postgresql+asyncpg://user:***@host/name"


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("", "sqlite+aiosqlite:///{folder}/callwright.db"),
        ("sqlite:///{folder}/other.db", "sqlite+aiosqlite:///{folder}/other.db"),
        ("postgresql://user:word@host/name", POSTGRES),
        ("postgres://user:word@host/name", POSTGRES),
        ("postgresql://user:word@host/name?sslmode=require", f"{POSTGRES}?ssl=require"),
    ],
)
def test_an_address_names_a_database(address: str, url: str, tmp_path: Path) -> None:
    database = build_database(StoreSettings(address=address.format(folder=tmp_path)), tmp_path)
    assert str(database.write_engine.url) == str(database.read_engine.url) == url.format(folder=tmp_path)


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("my.db", "is not a database address"),
        ("mysql://host/name", "'mysql', which is not supported"),
        ("sqlite://", "does not name a database"),
        ("postgresql://host", "does not name a database"),
        ("postgresql://host/name?fast=yes", "sets fast"),
    ],
)
def test_an_address_that_cannot_be_one_is_a_mistake_in_the_settings(
    address: str, complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        build_database(StoreSettings(address=address), tmp_path)


def test_every_wrong_expression_is_named() -> None:
    with pytest.raises(ConfigError, match=r"(?s)'\('.*'\['"):
        check_store_settings(StoreSettings(redact=("(", r"\d+", "[")))


def test_the_password_is_not_shown() -> None:
    settings = StoreSettings(address="postgresql://user:pass-word@host:5432/name?sslmode=require")
    assert settings.display_address == "postgresql://host:5432/name"
    assert "pass-word" not in repr(settings)
    assert settings.secrets == ("pass-word",)
    assert StoreSettings().secrets == ()


def test_the_file_and_its_folder_are_for_their_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "callwright"

    async def main() -> list[int]:
        store = await open_store(StoreSettings(), folder, Redactor())
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())]
        await store.close()
        return modes

    modes = asyncio.run(main())
    assert len(modes) == 4
    assert not [mode for mode in modes if mode & 0o077]


@pytest.mark.parametrize("address", ["", "postgresql://callwright:pass-word@127.0.0.1:1/name"])
def test_a_store_that_cannot_be_opened_says_why(address: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError) as caught:
        asyncio.run(open_store(StoreSettings(address=address), tmp_path / "file", Redactor()))
    assert "pass-word" not in str(caught.value)


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "callwright.db").write_bytes(b"my diary" * 1000)
    with pytest.raises(StoreError, match="cannot be opened"):
        asyncio.run(open_store(StoreSettings(), tmp_path, Redactor()))
    assert (tmp_path / "callwright.db").read_bytes() == b"my diary" * 1000
