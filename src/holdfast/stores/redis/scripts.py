"""The scripts, put together from their files: each begins with the parts it includes and ends by running its command."""

import hashlib
import re
from functools import cache
from importlib.resources import files

from msgspec import Struct

INCLUDE = re.compile(r"^-- @include (.+)$", re.MULTILINE)
_FOLDER = files("holdfast.stores.redis") / "lua"


class Script(Struct, frozen=True):
    """The text of a script, and the name under which Redis remembers it."""

    text: str
    sha: str


@cache
def script(command: str) -> Script:
    """The script that answers a command."""
    name = command.lower()
    seen: dict[str, None] = {}
    # First the short way, if it has one: it needs few of the functions, and a script pays for each that it makes.
    short = _with_includes(f"plain/{name}", seen) if (_FOLDER / "plain" / f"{name}.lua").is_file() else []
    text = "\n".join([*short, *_with_includes(name, seen), _read("run"), f'return run("{command}")'])
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def _with_includes(name: str, seen: dict[str, None]) -> list[str]:
    """The file and all it includes, each once and before who needs it."""
    if name in seen:
        return []
    seen[name] = None
    text = _read(name)
    included = [part for line in INCLUDE.findall(text) for part in line.split()]
    pieces = [piece for part in included for piece in _with_includes(part, seen)]
    # A command shares nothing but its entry in `commands`, and Lua allows 200 local names at a time.
    return [*pieces, f"do\n{text}\nend" if _is_command(name) else text]


def _is_command(name: str) -> bool:
    return (_FOLDER / f"{name}.lua").is_file() and "/" not in name


def _read(name: str) -> str:
    part = _FOLDER / "parts" / f"{name}.lua"
    return (part if part.is_file() else _FOLDER / f"{name}.lua").read_text("utf-8")
