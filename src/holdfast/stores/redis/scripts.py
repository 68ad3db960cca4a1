"""Assembles the scripts from their files: each begins with the parts it includes and ends by running its command."""

import hashlib
import re
from collections import Counter
from functools import cache
from importlib.resources import files
from textwrap import indent
from typing import Final

from msgspec import Struct

from holdfast.codec.fields import PRIORITY, TOKEN
from holdfast.commands.allowance import ANSWER_BYTES
from holdfast.commands.breaking import BROKEN
from holdfast.commands.claim_line import SWEEP
from holdfast.commands.events import RETAINED, RETAINED_S, RETRY_S
from holdfast.commands.filtered import LOOKED_AT
from holdfast.commands.groups import LANES_COUNTED
from holdfast.commands.hints import ALL
from holdfast.commands.shares import HOLDERS, LINE, SWEPT
from holdfast.commands.stats import HELD_SEEN
from holdfast.records import HISTORY, NEVER, UPDATED
from holdfast.records.policies import BACKOFF_DOUBLINGS, KEPT_WHEN_DONE, SLOT_OF_GROUP, SLOT_OF_QUEUE, TOLD_GROUP
from holdfast.records.shares import SHARED_HOLDER

CONSTANTS: Final[dict[str, int | str]] = {
    "ALL": ALL,
    "BACKOFF_DOUBLINGS": BACKOFF_DOUBLINGS,
    "KEPT_WHEN_DONE": KEPT_WHEN_DONE,
    "LANES_COUNTED": LANES_COUNTED,
    "SLOT_OF_GROUP": SLOT_OF_GROUP,
    "SLOT_OF_QUEUE": SLOT_OF_QUEUE,
    "TOLD_GROUP": TOLD_GROUP,
    "ANSWER_BYTES": ANSWER_BYTES,
    "BROKEN": BROKEN,
    "HELD_SEEN": HELD_SEEN,
    "LOOKED_AT": LOOKED_AT,
    "HISTORY": HISTORY,
    "HOLDERS": HOLDERS,
    "LINE": LINE,
    "LAST": TOKEN.most,
    "NEVER": NEVER,
    "RETAINED": RETAINED,
    "RETAINED_S": round(RETAINED_S),
    "RETRY_S": round(RETRY_S),
    "SHARED_HOLDER": SHARED_HOLDER,
    "SWEEP": SWEEP,
    "SWEPT": SWEPT,
    "TOP": PRIORITY.most,
    "UPDATED": ", ".join(f'"{name}"' for name in UPDATED),
}
"""What scripts and commands both know: `{{NAME}}` in a file stands for it."""

_INCLUDE = re.compile(r"^-- @include (.+)$", re.MULTILINE)
_INCLUDE_HERE = re.compile(r"^ +-- @include (.+)$", re.MULTILINE)
_CONSTANT = re.compile(r"{{(\w+)}}")
_DECLARED = re.compile(r"^local (?:function (\w+)|([\w, ]+?)(?= =|$))", re.MULTILINE)
_COMMENT = re.compile(r"--.*")
_WORD = re.compile(r"[A-Za-z_]\w*")
_BLOCK, _FAST = _BLOCKS = "do\n", "if command.fast then\n"
_FOLDER = files("holdfast.stores.redis") / "lua"


class Script(Struct, frozen=True):
    """The text of a script, and the name under which Redis remembers it."""

    text: str
    sha: str


@cache
def script(command: str) -> Script:
    """The script that executes a command."""
    name = command.lower()
    seen: dict[str, None] = {}
    # The fast path comes first: it needs few of the functions, and a script pays for each that it makes.
    pieces = [*_fast_path(name, seen), *_with_includes(name, seen), _read("run"), f'return run("{command}")']
    text = "\n".join(_scoped(pieces))
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def _fast_path(name: str, seen: dict[str, None]) -> list[str]:
    """The fast path of a command that has one. It ends without an answer, and with nothing written, where the full rules must decide.

    It is no function, and includes where they are needed the functions that not every call needs: each costs as much as a small command.
    """
    if not (_FOLDER / "fast" / f"{name}.lua").is_file():
        return []
    *parts, text = _with_includes(f"fast/{name}", seen)
    return [*parts, f"{_FAST}{text}\nend"]


def _with_includes(name: str, seen: dict[str, None]) -> list[str]:
    """The file and all it includes, each once and before those that need it."""
    if name in seen:
        return []
    seen[name] = None
    text = _read(name)
    included = [part for line in _INCLUDE.findall(text) for part in line.split()]
    pieces = [piece for part in included for piece in _with_includes(part, seen)]
    # Included where it stands: only this branch makes its functions, and others include it for themselves.
    text = _INCLUDE_HERE.sub(lambda found: indent("\n".join(_with_includes(found[1], {**seen})), " "), text)
    # A command shares nothing but its entry in `commands`.
    return [*pieces, f"{_BLOCK}{text}\nend" if _is_command(name) else text]


def _scoped(pieces: list[str]) -> list[str]:
    """The same pieces, where a name that only one part uses ends with the part: Lua allows 200 local names at a time."""
    words = [set(_WORD.findall(_COMMENT.sub("", piece))) for piece in pieces]
    used = Counter(word for piece in words for word in piece)
    return [_within_block(piece, {word for word in found if used[word] > 1}) for piece, found in zip(pieces, words, strict=True)]


def _within_block(piece: str, shared: set[str]) -> str:
    """A part in a block of its own, behind the declarations of those of its names that others share; commands are in one already."""
    declared: list[str] = []
    if piece.startswith(_BLOCKS):
        return piece

    def declare_before(found: re.Match[str]) -> str:
        names = [found[1]] if found[1] else found[2].split(", ")
        if shared.isdisjoint(names):
            return found[0]
        declared.extend(names)
        is_assigned = piece.startswith(" =", found.end())
        return f"function {found[1]}" if found[1] else found[2] if is_assigned else ""

    text = _DECLARED.sub(declare_before, piece)
    return f"local {', '.join(dict.fromkeys(declared))}\n{_BLOCK}{text}\nend" if declared else piece


def _is_command(name: str) -> bool:
    return (_FOLDER / f"{name}.lua").is_file() and "/" not in name


def _read(name: str) -> str:
    part = _FOLDER / "parts" / f"{name}.lua"
    text = (part if part.is_file() else _FOLDER / f"{name}.lua").read_text("utf-8")
    return _CONSTANT.sub(lambda found: str(CONSTANTS[found[1]]), text)
