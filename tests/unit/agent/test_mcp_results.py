"""Results of MCP servers as text, whatever they are made of."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from callwright.agent.mcp.connection import _describe_error, _render_result

FILE = TextResourceContents(uri="file:///a.txt", text="words")
BLOB = BlobResourceContents(uri="file:///a.bin", blob="AAAA")


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (TextContent(text="naïve 🎉"), "naïve 🎉"),
        (ImageContent(data="AAAA", mime_type="image/png"), "(image/png, 3 bytes, not shown)"),
        (AudioContent(data="AAAA", mime_type="audio/wav"), "(audio/wav, 3 bytes, not shown)"),
        (ResourceLink(name="a", uri="file:///a.txt"), "a: file:///a.txt"),
        (ResourceLink(name="a", title="A file", uri="file:///a.txt"), "A file: file:///a.txt"),
        (EmbeddedResource(resource=FILE), "file:///a.txt:\nwords"),
        (EmbeddedResource(resource=BLOB), "file:///a.bin: (binary, 3 bytes, not shown)"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_every_kind_of_content_has_its_text(block: Any, text: str) -> None:
    assert _render_result(CallToolResult(content=[block])) == text


def test_structure_is_shown_where_there_is_nothing_else() -> None:
    assert _render_result(CallToolResult(content=[], structured_content={"a": [1, "ü"]})) == '{"a":[1,"ü"]}'
    assert _render_result(CallToolResult(content=[])) == "(no output)"


def test_the_reason_is_found_inside_of_groups() -> None:
    group = ExceptionGroup("outer", [ExceptionGroup("inner", [OSError("no such program.")])])
    assert _describe_error(group) == "no such program"
    assert _describe_error(KeyError()) == "KeyError"
    assert _describe_error(None) == "the connection was closed in the meantime"
