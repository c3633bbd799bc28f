"""Faults: what went wrong at a backend, as an error that says which backend, what happened and what to look at.

Nothing secret gets into a message: what a server or the network said is shown without the key, the values of headers
and the address's password, and what libraries say in their own words is not shown at all. For the same reason nobody
raises these `from` another error: a log would print that too.
"""

from __future__ import annotations

import socket
import ssl
from typing import Literal

from callwright.backends.connection_pool import ConnectTimeoutError
from callwright.backends.http_response import IncompleteResponseError, NoResponseError, NotHttpError
from callwright.backends.settings import BackendSettings
from callwright.errors import BackendError, BackendErrorKind, WireError

__all__ = ["LOGIN_NEEDED", "THINKING_REFUSED", "TOOLS_REFUSED", "BackendErrors", "TimeoutSetting"]

TimeoutSetting = Literal["connect_seconds", "first_token_seconds", "idle_seconds", "total_seconds"]

TOOLS_REFUSED = "tools_refused"
"""The model or its server takes no tools: teach them as text."""
THINKING_REFUSED = "thinking_refused"
"""The model cannot be told to think, or not to."""
LOGIN_NEEDED = "login_needed"
"""Nobody has logged in to the account that the backend asks with."""

_GENERIC_SUBJECT = "the backend "
"""How wires begin a message that is a whole sentence; they do not know its name."""

_TIMEOUT_MESSAGES: dict[TimeoutSetting, str] = {
    "connect_seconds": "did not take the connection within",
    "first_token_seconds": "sent nothing of its answer within",
    "idle_seconds": "fell silent in the middle of its answer for",
    "total_seconds": "had not finished its answer after",
}

# First match counts, so the more special stand first: kind, whether another try may help, what happened.
_CONNECTION_ERRORS: tuple[tuple[type[OSError], BackendErrorKind, bool, str], ...] = (
    (ssl.SSLCertVerificationError, "unavailable", False, "has a certificate that is not trusted"),
    (ssl.SSLError, "unavailable", False, "does not speak TLS: is its url to begin with http:?"),
    (socket.gaierror, "unavailable", True, "has a host name that is not known: is its url right?"),
    (NotHttpError, "protocol", False, "answered something that is not HTTP"),
    (IncompleteResponseError, "unavailable", True, "broke off in the middle of its answer"),
    (NoResponseError, "unavailable", True, "closed the connection without an answer"),
    (ConnectionRefusedError, "unavailable", True, "refused the connection: is the server running?"),
    (OSError, "unavailable", True, "cannot be reached: {why}"),
)

# What servers say in refusals that we can do something about. Ollama 0.2 to 0.17, also on /v1: "… does not support
# tools" (ollama#5793, #14795), "… does not support thinking" (ollama#11439), "think value "medium" is not supported"
# (ollama#12561). llama.cpp: "Unsupported param: tools" (llama.cpp#10920), "tools param requires --jinja flag"
# (ramalama#988), both with status 500. vLLM: '"auto" tool choice requires --enable-auto-tool-choice and …'.
_REFUSAL_PHRASES = (
    (TOOLS_REFUSED, ("does not support tools", "unsupported param: tools", "requires --jinja", "enable-auto-tool")),
    (THINKING_REFUSED, ("does not support thinking", "think value")),
)


class BackendErrors:
    """The errors of one backend."""

    def __init__(self, settings: BackendSettings) -> None:
        self._settings = settings
        self.subject = f"the backend {settings.name!r} ({settings.display_url or settings.kind})"

    def timed_out(self, timer: TimeoutSetting) -> BackendError:
        """A timer ran out. Where the whole time was too short, it will be so again."""
        seconds = getattr(self._settings, timer)
        message = f"{self.subject} {_TIMEOUT_MESSAGES[timer]} {seconds:g} seconds (its setting {timer})"
        return BackendError(message, kind="timeout", retryable=timer != "total_seconds")

    def circuit_open(self, seconds: float) -> BackendError:
        """It is left alone."""
        message = f"{self.subject} failed several times in a row and is left alone for {seconds:.1f} seconds"
        return BackendError(message, kind="unavailable", retryable=True, retry_after=seconds)

    def connection_lost(self, error: OSError) -> BackendError:
        """The network or HTTP failed."""
        if isinstance(error, ConnectTimeoutError):
            return self.timed_out("connect_seconds")
        kind, retryable, what = next(row[1:] for row in _CONNECTION_ERRORS if isinstance(error, row[0]))
        why = error.strerror or "no reason given"
        return BackendError(f"{self.subject} {what.format(why=why)}", kind=kind, retryable=retryable)

    def invalid_bytes(self, error: WireError) -> BackendError:
        """It sent what is not its own protocol."""
        return BackendError(
            f"{self.subject} sent what cannot be read: {self.redact_secrets(str(error))}", kind="protocol"
        )

    def unexpected_redirect(self, status: int, location: str) -> BackendError:
        """It sends us elsewhere. We do not go: the request carries a key, and a POST would become a GET."""
        message = (
            f"{self.subject} answered {status}, go to {self.redact_secrets(location) or 'nowhere'}: is its url right?"
        )
        return BackendError(message, kind="refused", status=status)

    def reported(self, failure: BackendError, status: int = 0, retry_after: float | None = None) -> BackendError:
        """What a wire read in the server's answer, completed: who said it, and what the caller can do about it."""
        message, lowered = self.redact_secrets(str(failure)), str(failure).lower()
        code = next(
            (code for code, phrases in _REFUSAL_PHRASES if any(phrase in lowered for phrase in phrases)), failure.code
        )
        if message.startswith(_GENERIC_SUBJECT):
            message = f"{self.subject} {message.removeprefix(_GENERIC_SUBJECT)}"
        else:
            message = f"{self.subject} answered {status}: {message}" if status else f"{self.subject} failed: {message}"
        return BackendError(
            message,
            kind="refused" if code else failure.kind,
            retryable=failure.retryable and not code,
            status=status or failure.status,
            retry_after=failure.retry_after if retry_after is None else retry_after,
            salvage=failure.salvage,
            code=code,
        )

    def redact_secrets(self, text: str) -> str:
        """A text of the server's without our secrets: some servers quote the key that they do not like."""
        for secret in self._settings.secrets:
            text = text.replace(secret, "[secret]")
        return text
