"""A dialect: Acme's models write calls as JSON between tags of their own.

    <|acme_call|>{"name": "get_weather", "arguments": {"city": "Oslo"}}<|/acme_call|>

A family that only changes the tags is one value. A new format subclasses `callwright.dialects.base.Dialect` and
implements `read_calls` and `render_call`.
"""

from callwright.dialects.tagged_json import TaggedJson

ACME = TaggedJson(
    name="acme",
    shape="J1",
    models="Acme's models",
    source="this example",
    opens=("<|acme_call|>",),
    closes=("<|/acme_call|>",),
    inset="",
    patterns=("*acme-*",),
)
