"""Faults: what went wrong at a backend, as an error that says which backend, what happened and what to look at.

Nothing secret gets into a message: what a server or the network said is shown without the key, the values of headers
and the address's password, and what libraries say in their own words is not shown at all. For the same reason nobody
raises these `from` another error: a log would print that too.
"""

from __future__ import annotations

import socket
import ssl
from typing import Literal

from callwright.backends.connections import ConnectTimeoutError
from callwright.backends.incoming import BrokenOffError, NoAnswerError, NotHttpError
from callwright.backends.settings import BackendSettings
from callwright.errors import BackendError, BackendErrorKind, WireError

__all__ = ["LOGIN_NEEDED", "THINKING_REFUSED", "TOOLS_REFUSED", "Faults", "Timer"]

Timer = Literal["connect_seconds", "first_token_seconds", "idle_seconds", "total_seconds"]

TOOLS_REFUSED = "tools_refused"
"""The model or its server takes no tools: teach them as text."""
THINKING_REFUSED = "thinking_refused"
"""The model cannot be told to think, or not to."""
LOGIN_NEEDED = "login_needed"
"""Nobody has logged in to the account that the backend asks with."""

_THE_BACKEND = "the backend "
"""How wires begin a message that is a whole sentence; they do not know its name."""

_LATE: dict[Timer, str] = {
    "connect_seconds": "did not take the connection within",
    "first_token_seconds": "sent nothing of its answer within",
    "idle_seconds": "fell silent in the middle of its answer for",
    "total_seconds": "had not finished its answer after",
}

# First match counts, so the more special stand first: kind, whether another try may help, what happened.
_BROKEN: tuple[tuple[type[OSError], BackendErrorKind, bool, str], ...] = (
    (ssl.SSLCertVerificationError, "unavailable", False, "has a certificate that is not trusted"),
    (ssl.SSLError, "unavailable", False, "does not speak TLS: is its url to begin with http:?"),
    (socket.gaierror, "unavailable", True, "has a host name that is not known: is its url right?"),
    (NotHttpError, "protocol", False, "answered something that is not HTTP"),
    (BrokenOffError, "unavailable", True, "broke off in the middle of its answer"),
    (NoAnswerError, "unavailable", True, "closed the connection without an answer"),
    (ConnectionRefusedError, "unavailable", True, "refused the connection: is the server running?"),
    (OSError, "unavailable", True, "cannot be reached: {why}"),
)

# What servers say in refusals that we can do something about. Ollama 0.2 to 0.17, also on /v1: "… does not support
# tools" (ollama#5793, #14795), "… does not support thinking" (ollama#11439), "think value "medium" is not supported"
# (ollama#12561). llama.cpp: "Unsupported param: tools" (llama.cpp#10920), "tools param requires --jinja flag"
# (ramalama#988), both with status 500. vLLM: '"auto" tool choice requires --enable-auto-tool-choice and …'.
_REFUSALS = (
    (TOOLS_REFUSED, ("does not support tools", "unsupported param: tools", "requires --jinja", "enable-auto-tool")),
    (THINKING_REFUSED, ("does not support thinking", "think value")),
)


class Faults:
    """The errors of one backend."""

    def __init__(self, settings: BackendSettings) -> None:
        self._settings = settings
        self.who = f"the backend {settings.name!r} ({settings.address or settings.kind})"

    def late(self, timer: Timer) -> BackendError:
        """A timer ran out. Where the whole time was too short, it will be so again."""
        seconds = getattr(self._settings, timer)
        message = f"{self.who} {_LATE[timer]} {seconds:g} seconds (its setting {timer})"
        return BackendError(message, kind="timeout", retryable=timer != "total_seconds")

    def resting(self, seconds: float) -> BackendError:
        """It is left alone."""
        message = f"{self.who} failed several times in a row and is left alone for {seconds:.1f} seconds"
        return BackendError(message, kind="unavailable", retryable=True, retry_after=seconds)

    def broken(self, error: OSError) -> BackendError:
        """The network or HTTP failed."""
        if isinstance(error, ConnectTimeoutError):
            return self.late("connect_seconds")
        kind, retryable, what = next(row[1:] for row in _BROKEN if isinstance(error, row[0]))
        why = error.strerror or "no reason given"
        return BackendError(f"{self.who} {what.format(why=why)}", kind=kind, retryable=retryable)

    def garbled(self, error: WireError) -> BackendError:
        """It sent what is not its own protocol."""
        return BackendError(f"{self.who} sent what cannot be read: {self.redacted(str(error))}", kind="protocol")

    def redirected(self, status: int, location: str) -> BackendError:
        """It sends us elsewhere. We do not go: the request carries a key, and a POST would become a GET."""
        message = f"{self.who} answered {status}, go to {self.redacted(location) or 'nowhere'}: is its url right?"
        return BackendError(message, kind="refused", status=status)

    def said(self, failure: BackendError, status: int = 0, retry_after: float | None = None) -> BackendError:
        """What a wire read in the server's answer, completed: who said it, and what the caller can do about it."""
        message, lowered = self.redacted(str(failure)), str(failure).lower()
        code = next((code for code, phrases in _REFUSALS if any(phrase in lowered for phrase in phrases)), failure.code)
        if message.startswith(_THE_BACKEND):
            message = f"{self.who} {message.removeprefix(_THE_BACKEND)}"
        else:
            message = f"{self.who} answered {status}: {message}" if status else f"{self.who} failed: {message}"
        return BackendError(
            message,
            kind="refused" if code else failure.kind,
            retryable=failure.retryable and not code,
            status=status or failure.status,
            retry_after=failure.retry_after if retry_after is None else retry_after,
            salvage=failure.salvage,
            code=code,
        )

    def redacted(self, text: str) -> str:
        """A text of the server's without our secrets: some servers quote the key that they do not like."""
        for secret in self._settings.secrets:
            text = text.replace(secret, "[secret]")
        return text
