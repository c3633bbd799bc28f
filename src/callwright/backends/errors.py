"""Builds the errors of a backend: which backend failed, what happened and what to check.

Messages contain no secrets. Texts of a server or the network are shown without the key, the values of headers and the
password of the URL; texts of libraries are not shown at all. For the same reason these errors are never raised `from`
another error, which a log would print.
"""

from __future__ import annotations

import re
import socket
import ssl
from typing import Literal

from callwright.backends.connection_pool import ConnectTimeoutError
from callwright.backends.http_response import IncompleteResponseError, NoResponseError, NotHttpError
from callwright.backends.settings import BackendSettings
from callwright.errors import BackendError, BackendErrorKind, WireError

__all__ = [
    "LOGIN_NEEDED",
    "THINKING_REFUSED",
    "TOOLS_REFUSED",
    "BackendErrors",
    "TimeoutSetting",
    "is_context_overflow",
]

TimeoutSetting = Literal["connect_seconds", "first_token_seconds", "idle_seconds", "total_seconds"]

TOOLS_REFUSED = "tools_refused"
"""The model or its server does not support tools. The engine then teaches them in the prompt."""
THINKING_REFUSED = "thinking_refused"
"""The model does not support the setting for thinking."""
LOGIN_NEEDED = "login_needed"
"""The account that the backend uses is not logged in."""

# OpenAI and vLLM ("maximum context length is"), llama.cpp ("exceeds the available context size"), Anthropic.
_OVERFLOW_PATTERN = re.compile(
    r"maximum context|context (?:length|window|size)|prompt is too long|too many tokens", re.IGNORECASE
)

_GENERIC_SUBJECT = "the backend "
"""Wires, which do not know the backend's name, begin their messages with this."""

_TIMEOUT_MESSAGES: dict[TimeoutSetting, str] = {
    "connect_seconds": "did not accept the connection within",
    "first_token_seconds": "sent no part of its answer within",
    "idle_seconds": "sent nothing in the middle of its answer for",
    "total_seconds": "did not finish its answer within",
}

# The first match counts, so subclasses come first. Columns: exception, kind, whether a retry may help, what happened.
_CONNECTION_ERRORS: tuple[tuple[type[OSError], BackendErrorKind, bool, str], ...] = (
    (ssl.SSLCertVerificationError, "unavailable", False, "has an untrusted certificate"),
    (ssl.SSLError, "unavailable", False, "does not use TLS: should its url begin with http:?"),
    (socket.gaierror, "unavailable", True, "has an unknown host name: is its url correct?"),
    (NotHttpError, "protocol", False, "sent a response that is not HTTP"),
    (IncompleteResponseError, "unavailable", True, "closed the connection in the middle of its answer"),
    (NoResponseError, "unavailable", True, "closed the connection without an answer"),
    (ConnectionRefusedError, "unavailable", True, "refused the connection: is the server running?"),
    (OSError, "unavailable", True, "cannot be reached: {reason}"),
)

# Phrases of refusals that can be worked around. Ollama 0.2 to 0.17, also on /v1: "… does not support tools"
# (ollama#5793, #14795), "… does not support thinking" (ollama#11439), "think value "medium" is not supported"
# (ollama#12561). llama.cpp: "Unsupported param: tools" (llama.cpp#10920), "tools param requires --jinja flag"
# (ramalama#988), both with status 500. vLLM: '"auto" tool choice requires --enable-auto-tool-choice and …'.
_REFUSAL_PHRASES = (
    (TOOLS_REFUSED, ("does not support tools", "unsupported param: tools", "requires --jinja", "enable-auto-tool")),
    (THINKING_REFUSED, ("does not support thinking", "think value")),
)


class BackendErrors:
    """Builds the errors of one backend."""

    def __init__(self, settings: BackendSettings) -> None:
        self._settings = settings
        self.subject = f"the backend {settings.name!r} ({settings.display_url or settings.kind})"

    def timed_out(self, timer: TimeoutSetting) -> BackendError:
        """Build the error of an expired timer. It is retryable, unless the total time was too short."""
        seconds = getattr(self._settings, timer)
        message = f"{self.subject} {_TIMEOUT_MESSAGES[timer]} {seconds:g} seconds (setting {timer})"
        return BackendError(message, kind="timeout", retryable=timer != "total_seconds")

    def circuit_open(self, seconds: float) -> BackendError:
        """Build the error for requests while the circuit breaker is open."""
        message = f"{self.subject} failed several times in a row and is not used for {seconds:.1f} seconds"
        return BackendError(message, kind="unavailable", retryable=True, retry_after=seconds)

    def connection_lost(self, error: OSError) -> BackendError:
        """Build the error of a failed connection or an HTTP failure."""
        if isinstance(error, ConnectTimeoutError):
            return self.timed_out("connect_seconds")
        kind, retryable, what = next(row[1:] for row in _CONNECTION_ERRORS if isinstance(error, row[0]))
        reason = error.strerror or "no reason given"
        return BackendError(f"{self.subject} {what.format(reason=reason)}", kind=kind, retryable=retryable)

    def invalid_bytes(self, error: WireError) -> BackendError:
        """Build the error for bytes that violate the protocol."""
        return BackendError(
            f"{self.subject} sent an unreadable response: {self.redact_secrets(str(error))}", kind="protocol"
        )

    def unexpected_redirect(self, status: int, location: str) -> BackendError:
        """Build the error for a redirect. It is not followed: the request has a key, and a POST would become a GET."""
        message = (
            f"{self.subject} answered {status} with a redirect to "
            f"{self.redact_secrets(location) or 'nowhere'}: is its url correct?"
        )
        return BackendError(message, kind="refused", status=status)

    def reported(self, failure: BackendError, status: int = 0, retry_after: float | None = None) -> BackendError:
        """Complete an error that a wire read from the response: name the backend, and set a code for known refusals."""
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
        """Remove the backend's secrets from a server's text: some servers quote a key that they reject."""
        for secret in self._settings.secrets:
            text = text.replace(secret, "[secret]")
        return text


def is_context_overflow(problem: BackendError) -> bool:
    """Whether this error is a context overflow. Servers share no code for it, so the message decides."""
    return problem.kind == "refused" and bool(_OVERFLOW_PATTERN.search(str(problem)))
