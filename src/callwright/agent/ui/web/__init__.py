"""The web interface: sessions in a browser, over one WebSocket.

`create_web_app` builds the ASGI application; the caller chooses where to serve it. A page receives the events of a
session as they are stored and folds them into its view, so a page that was closed or disconnected returns to the same
state. docs/agent/web.md describes the messages.
"""

from __future__ import annotations

from callwright.agent.ui.web.app import build_page_url, create_web_app

__all__ = ["build_page_url", "create_web_app"]
