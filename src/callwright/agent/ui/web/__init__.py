"""The web face: sessions in a browser, over one WebSocket.

`app` makes it; who serves it says where. A page is shown the events of a session as they are stored and folds them
into what it shows, so a page that was closed, or lost its connection, comes back to the same picture. docs/agent/web.md
describes the messages.
"""

from __future__ import annotations

from callwright.agent.ui.web.app import build_page_url, create_web_app

__all__ = ["build_page_url", "create_web_app"]
