"""Run one turn of a model from a script, with a tool, and print what comes while it comes.

    python examples/run_turn.py [QUESTION]

It asks the built-in demo, a script that plays a model. `load_config("callwright.toml")` asks yours.
"""

import asyncio
import sys

from callwright import collect
from callwright.app import Config, open_engine
from callwright.backends.settings import BackendSettings
from callwright.events import Event, TextDelta
from callwright.model import Message, Request, Text, ToolSpec

CONFIG = Config(backends=(BackendSettings(name="demo", kind="scripted"),))
WEATHER = ToolSpec(
    "get_weather",
    "The weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


async def main(question: str) -> None:
    """Ask, print the text as it streams, then the calls."""
    async with open_engine(CONFIG) as engine:
        model = engine.models[0].name
        request = Request(model, (Message("user", (Text(question),)),), (WEATHER,))
        events: list[Event] = []
        async for batch in engine.stream_turn(request):
            events += batch
            print("".join(event.text for event in batch if isinstance(event, TextDelta)), end="", flush=True)
        for call in collect(events).tool_calls:
            print(f"{model} calls {call.name} with {call.arguments}")


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "What is the weather in Lisbon?"))
