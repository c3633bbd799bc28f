"""Mount the gateway inside a Starlette application.

    python examples/mount_gateway.py [PORT]
    curl http://127.0.0.1:8000/llm/v1/models

It serves the built-in demo, a script that plays a model. `load_config("callwright.toml")` serves yours.
"""

import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from callwright.app import Config, create_app
from callwright.backends.settings import BackendSettings

gateway = create_app(Config(backends=(BackendSettings(name="demo", kind="scripted"),)))


async def show_home(_request: Request) -> Response:
    """A page of the application around it."""
    return PlainTextResponse("Clients of OpenAI's API take /llm/v1 as their base URL.\n")


app = Starlette(
    routes=[Route("/", show_home), Mount("/llm", gateway)],
    lifespan=gateway.lifespan,  # opens the backends at the start and closes them at the end
)

if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
