"""Finds the owner of a key in constant time, and checks what a caller may use.

Only digests of the keys are compared. A candidate is compared with every digest, also after a match, so the time that
it takes reveals nothing about the keys.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address

from callwright.errors import RequestError
from callwright.gateway.settings import KeySettings

__all__ = ["Keyring", "can_use_model", "check_model_access", "is_loopback_host"]


@lru_cache(64)
def is_loopback_host(host: str) -> bool:
    """Whether this host name or address always means this machine."""
    name = host.strip("[]").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def can_use_model(key: KeySettings | None, model: str) -> bool:
    """Whether a caller may use a model. A caller without a key may use all."""
    return key is None or not key.models or model in key.models


def check_model_access(key: KeySettings | None, model: str) -> None:
    """Raise `RequestError` 403 when a caller may not use a model. `model` is its name in the configuration."""
    if key and not can_use_model(key, model):
        raise RequestError(
            f"the key {key.name!r} may not use the model {model!r}. It may use {', '.join(key.models)}.",
            param="model",
            status=403,
            code="model_not_allowed",
        )


class Keyring:
    """The keys of one `GatewayState`."""

    def __init__(self, keys: Iterable[KeySettings], host: str) -> None:
        self._keys = [(_hash_secret(key.key), key) for key in keys]
        self.is_open = not self._keys and is_loopback_host(host)
        """Whether no key is needed: none is configured, and the service listens on loopback only."""

    def find_key(self, secret: str) -> KeySettings | None:
        """Find the settings of a key; None when it is unknown."""
        candidate = _hash_secret(secret)
        found = None
        for digest, key in self._keys:
            if hmac.compare_digest(digest, candidate):
                found = key
        return found


def _hash_secret(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()
