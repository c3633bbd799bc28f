"""What lies in a folder is in its table: a wire, a profile or a kind of backend that nothing can reach is a mistake."""

from __future__ import annotations

import asyncio
import importlib
from typing import get_args

import pytest

from callwright import backends
from callwright.backends import open_backend
from callwright.backends.scripted import ScriptedBackend
from callwright.backends.settings import BackendKind, BackendSettings
from callwright.gateway.profiles import PROFILES
from callwright.gateway.profiles.base import Profile
from callwright.wire import CLIENT_CODECS, SERVER_CODECS
from tests.meta.repository import modules

WIRES = sorted({parts[1] for module in modules() if (parts := module.name.split("/"))[0] == "wire" and len(parts) == 3})
CLIENTS = [
    stem
    for module in modules()
    if module.name.startswith("gateway/profiles/") and (stem := module.path.stem) not in ("__init__", "base")
]


def test_every_wire_is_served_and_called_by_its_own_name() -> None:
    assert sorted(CLIENT_CODECS) == WIRES
    assert SERVER_CODECS.keys() >= set(WIRES)
    assert all(wire.name == name for table in (SERVER_CODECS, CLIENT_CODECS) for name, wire in table.items())


@pytest.mark.parametrize("client", CLIENTS)
def test_every_profile_can_be_chosen(client: str) -> None:
    module = importlib.import_module(f"callwright.gateway.profiles.{client}")
    found = [value for value in vars(module).values() if isinstance(value, Profile)]
    assert found, "a file in profiles/ without a profile"
    assert all(PROFILES.get(profile.name) is profile for profile in found)


@pytest.mark.parametrize("kind", get_args(BackendKind))
def test_every_kind_of_backend_opens(kind: BackendKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(backends._plugin_factories, "acme", ScriptedBackend)
    one = open_backend(BackendSettings(name="x", kind=kind, url="http://127.0.0.1:1", plugin="acme"))
    assert one.settings.kind == kind
    assert one.is_available
    asyncio.run(one.close())
