"""A file as lines of text, as models are shown it.

A line ends at a newline and nowhere else, so that numbers are those of editors and compilers. Bytes that are no text
are said to be so and not guessed at.
"""

from __future__ import annotations

from callwright.errors import ToolError

__all__ = ["decode_file", "encode_text", "is_binary", "split_text_lines"]

_SNIFFED_BYTES = 8192
_BYTE_ORDER_MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))
"""Byte order marks, and what text is after them."""


def is_binary(data: bytes) -> bool:
    """Whether it is no text: a NUL near the beginning, as git and grep have it."""
    return b"\0" in data[:_SNIFFED_BYTES] and not data.startswith((b"\xff\xfe", b"\xfe\xff"))


def decode_file(data: bytes) -> tuple[str, str]:
    """The text, and a note about it where it is not plain UTF-8. `ToolError` for what is no text."""
    if is_binary(data):
        raise ToolError("it is a binary file")
    encoding = next((encoding for mark, encoding in _BYTE_ORDER_MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return data.decode(encoding, "replace"), f"not valid {encoding.upper()}: unreadable bytes are shown as �"
    return text, "UTF-16" if encoding == "utf-16" else ""


def encode_text(text: str) -> bytes:
    """What a model wrote, as a file holds it. JSON can say half of a surrogate pair; files cannot."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolError("the text is not valid: it has half of a surrogate pair in it.") from error


def split_text_lines(text: str) -> list[str]:
    """The lines, without what ends them."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]
