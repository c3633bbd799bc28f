"""Whose fault an error is decides its type.

    CallwrightError
    ├─ ConfigError    a person's settings are wrong: every mistake, with its place and its remedy
    ├─ MisuseError    our caller's bug: wrong argument, events in an illegal order
    ├─ RequestError   a client's request cannot be served (field path in the message)
    ├─ BackendError   the model's side failed: `kind` says how, `retryable` whether to try again
    ├─ StoreError     the database failed: what was asked of it did not happen
    ├─ WireError      a peer sent bytes outside its own protocol
    ├─ ToolError      shown to the model as a failed result
    └─ PolicyError    a rule file is wrong: path, line, why

Malformed model output is not an error but an event (`events.Malformed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

__all__ = [
    "BackendError",
    "CallwrightError",
    "ConfigError",
    "MisuseError",
    "PolicyError",
    "RequestError",
    "StoreError",
    "ToolError",
    "WireError",
]

BackendErrorKind = Literal[
    "auth", "rate_limit", "overloaded", "unavailable", "timeout", "refused", "protocol", "unusable"
]
"""The last two: the server sent what is not in its protocol, or broke off; the model wrote what is of no use."""


class CallwrightError(Exception):
    """The root: catch this to catch everything that Callwright raises on purpose."""


class ConfigError(CallwrightError):
    """The configuration is wrong. `mistakes` has a sentence for each thing to mend."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        self.mistakes = tuple(mistakes)
        several = f"the configuration has {len(self.mistakes)} mistakes"
        super().__init__(self.mistakes[0] if len(self.mistakes) == 1 else "\n  ".join([several, *self.mistakes]))


class MisuseError(CallwrightError):
    """The calling program broke a contract of this library."""


class RequestError(CallwrightError):
    """A client's request cannot be served as it stands. `param` is the path of the field that is wrong."""

    def __init__(self, message: str, *, param: str = "", status: int = 400, code: str = "") -> None:
        super().__init__(message)
        self.param = param
        self.status = status
        self.code = code


class BackendError(CallwrightError):
    """The model's side failed, or sent more than we are willing to hold.

    `salvage` is the model's own output where the backend quoted it in its error, and may hold a call. `retryable`:
    the same request may succeed later or elsewhere. `code` names a refusal that the caller can do something about.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: BackendErrorKind = "protocol",
        retryable: bool = False,
        status: int = 0,
        retry_after: float | None = None,
        salvage: str = "",
        code: str = "",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable
        self.status = status
        self.retry_after = retry_after
        self.salvage = salvage
        self.code = code


class StoreError(CallwrightError):
    """The database failed, or cannot be opened."""


class WireError(CallwrightError):
    """A peer sent bytes outside its own protocol."""


class ToolError(CallwrightError):
    """A tool failed in a way that the model should see."""


class PolicyError(CallwrightError):
    """A rule file is wrong."""
