"""Serves the files of the dashboard, which need no token: they are the same for everyone."""

import logging
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Final

from holdfast.server.asgi import App, Receive, Scope, Send, answer

FOLDER: Final = Path(__file__).parents[1] / "dashboard"
"""Where `make dashboard` puts what it builds, and where the wheel has it."""

TYPES: Final = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
}
NOT_BUILT: Final = b"The dashboard is not built: run `make dashboard` in the checkout, or install a wheel of Holdfast.\n"

_log = logging.getLogger("holdfast.server")


def read_files(folder: Path = FOLDER) -> dict[str, tuple[bytes, bytes]]:
    """The files by their path, each with its type; without a build one page that says so."""
    if not (folder / "index.html").exists():
        _log.warning("there is no dashboard: run `make dashboard` in the checkout, or install a wheel of Holdfast")
        return {"/": (NOT_BUILT, b"text/plain; charset=utf-8")}
    found = {f"/dashboard/{path.name}": (path.read_bytes(), TYPES[path.suffix]) for path in folder.iterdir() if path.suffix in TYPES}
    return {"/": found.pop("/dashboard/index.html"), **found}


class Dashboard:
    """Answers requests for files of the dashboard, and passes all others on."""

    def __init__(self, app: App, files: Mapping[str, tuple[bytes, bytes]]) -> None:
        self._app = app
        self._files = files

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        file = self._files.get(scope["path"]) if scope["method"] == "GET" else None
        if file is None:
            return self._app(scope, receive, send)
        body, content_type = file
        return answer(scope, send, 200, body, (b"content-type", content_type))
