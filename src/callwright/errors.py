"""Error types. The type of an error says who must fix it.

    CallwrightError
    ├─ ConfigError    the configuration is wrong: every mistake with its location and how to fix it
    ├─ MisuseError    the calling program has a bug: a wrong argument, events in an illegal order
    ├─ RequestError   a client's request cannot be served (the message has the path of the field)
    ├─ BackendError   the model server failed: `kind` says how, `retryable` whether to try again
    ├─ StoreError     the database failed: the operation did not happen
    ├─ WireError      a peer sent bytes outside its own protocol
    ├─ ToolError      shown to the model as a failed result
    └─ PolicyError    a rule file is wrong: path, line and reason

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
"""How a backend failed. `protocol`: the server left its protocol or closed the connection early. `unusable`: the
model's output cannot be used."""


class CallwrightError(Exception):
    """The base class: catch it to catch everything that Callwright raises on purpose."""


class ConfigError(CallwrightError):
    """The configuration is wrong. `mistakes` has one sentence for each thing to fix."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        self.mistakes = tuple(mistakes)
        several = f"the configuration has {len(self.mistakes)} mistakes"
        super().__init__(self.mistakes[0] if len(self.mistakes) == 1 else "\n  ".join([several, *self.mistakes]))


class MisuseError(CallwrightError):
    """The calling program broke a contract of this library."""


class RequestError(CallwrightError):
    """A client's request cannot be served. `param` is the path of the field that is wrong."""

    def __init__(self, message: str, *, param: str = "", status: int = 400, code: str = "") -> None:
        super().__init__(message)
        self.param = param
        self.status = status
        self.code = code


class BackendError(CallwrightError):
    """The model server failed, or sent more than the limits allow.

    `salvage` is the model's own output where the server quoted it in its error; it may contain a call. `retryable`
    means that the same request may succeed later or elsewhere. `code` names a refusal that the caller can handle.
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
    """The database failed or cannot be opened."""


class WireError(CallwrightError):
    """A peer sent bytes outside its own protocol."""


class ToolError(CallwrightError):
    """A tool failed in a way that the model should see."""


class PolicyError(CallwrightError):
    """A rule file is wrong."""
