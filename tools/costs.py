"""Print what a change costs: files that name a field, places of a command, implementations of an operation, methods, lines by hand.

A command has its place where it is defined, listed and executed, in `commands` and `stores`; its callers and prose are not counted.
A field is counted where code names it, prose apart: in the whole library, and in the engine alone, which is commands, records and stores.
An operation is implemented wherever a function, a statement or a script of its name says what becomes of messages; what does so for queues
with groups and limits is counted apart. `--names` lists what was counted.

Counted in the library without `testing`, and without what is generated: Python, SQL and Lua.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from holdfast.commands import Transaction

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.sizes import hand_written
from tools.syntax import parsed

FIELDS: Final = {"priority": 46, "max_attempts": 24, "metadata": 28, "expired_to": 34, "start_by": 29, "labels": 6}
"""Each with the most files of the engine that may name it: `labels` only travels with a message, as most new fields would."""

EVERYWHERE: Final = {"labels": 11}
"""The most files of the whole library that may name it."""

COMMANDS: Final = {"Length": 6, "Look": 8, "Survey": 6, "Count": 6}
"""Each with the most places that it may have."""

OPERATIONS: Final = {"put": "put", "claim": "claim", "settle": "settle|ack"}
"""Each with what its functions, statements and scripts are called."""

ENGINE: Final = ("codec", "commands", "records", "stores")

IN_LANES: Final = re.compile(r"laned_({word})|({word})_ruled|ruled_({word})".replace("{word}", "put|claim|settle"))
"""How files are called that put, claim or settle in queues with groups and limits."""

IMPLEMENTATIONS: Final = {"put": (9, 4), "claim": (9, 6), "settle": (10, 1)}
"""The most that each operation may have, and the most more for queues with groups and limits.

Like all ceilings here they are what is counted today: a test says so, and who removes one lowers its ceiling.
"""

METHODS: Final = 40
"""The most that a transaction may have."""


def library(root: Path) -> dict[Path, str]:
    """The hand-written text of the library, by file."""
    texts = hand_written(root, ("src",))
    return {path: text for path, text in texts.items() if "testing" not in path.parts}


def naming(texts: dict[Path, str], word: str) -> list[Path]:
    """The files whose code uses a word."""
    found = re.compile(rf"\b{word}\b")
    return [path for path, text in texts.items() if found.search(text) and found.search(without_prose(path, text))]


def in_engine(paths: list[Path]) -> list[Path]:
    """Those that belong to what a message means and how it is stored."""
    return [path for path in paths if path.parts[2] in ENGINE]


def places(texts: dict[Path, str], command: str) -> list[Path]:
    """The files in which a command is defined, listed or executed."""
    found = re.compile(rf"\b({command}|(answer|plan|check|write|recall|fast)_{command.lower()})\b")
    inside = {path: text for path, text in texts.items() if path.parts[2] in ("commands", "stores")}
    return [path for path, text in inside.items() if path.stem == command.lower() or found.search(without_prose(path, text))]


@cache
def without_prose(path: Path, text: str) -> str:
    """The text without comments and docstrings."""
    if path.suffix != ".py":
        return re.sub(r"--.*", "", text)
    lines = text.splitlines()
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            end = node.end_lineno or node.lineno
            lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
    return re.sub(r"(^|\s)#.*", "", "\n".join(lines))


def implementations(texts: dict[Path, str], operation: str) -> list[str]:
    """The texts that say what an operation does: its rules, and in each store files, statements or functions of its name."""
    found = [f"{path.as_posix()}{part}" for path, text in texts.items() for part in _parts(path, text, OPERATIONS[operation])]
    return [f"src/holdfast/commands {operation}", *found]


def in_lanes(texts: dict[Path, str], operation: str) -> list[str]:
    """The same for queues with groups and limits."""
    stems = [path.as_posix() for path in texts if (found := IN_LANES.fullmatch(path.stem)) and operation in found.groups()]
    defined = re.compile(rf"^(?:def|create or replace function) ({operation}_(?:in|from)_(?:queue_with_)?lanes)\b", re.MULTILINE)
    return stems + [f"{path.as_posix()} {name}" for path, text in texts.items() for name in defined.findall(text)]


def _parts(path: Path, text: str, word: str) -> list[str]:
    """The parts of a file that implement it, the empty name for all of a file."""
    folder = "/".join(path.parts[3:-1])
    if folder in ("redis/lua", "redis/lua/fast", "postgres/functions"):
        return [""] if re.fullmatch(rf"(fast_)?({word})", path.stem) else []
    if folder in ("sqlite", "sqlite/fast"):
        # A put and a settlement are one statement each; a claim is a function that takes several.
        kind = ".py" if word == "claim" else ".sql"
        begins = r"def _" if kind == ".py" else r"-- name: "
        return [f" {name}" for name in re.findall(rf"^{begins}((?:{word})\w*)", text, re.MULTILINE)] if path.suffix == kind else []
    is_fast = path.as_posix().endswith(("memory/fast/queue.py", "lmdb/fast.py"))
    return [f" {name}" for name in re.findall(rf"^ +def _?({word})\(", text, re.MULTILINE)] if is_fast else []


def methods(kind: type) -> int:
    """How many methods whoever implements it writes."""
    return sum(callable(member) for name in dir(kind) if not name.startswith("_") for member in [getattr(kind, name)])


def report(root: Path, *, with_names: bool = False) -> Iterator[str]:
    """The whole report, line by line."""
    texts = library(root)
    for field in FIELDS:
        found = naming(texts, field)
        yield f"field {field:<16} {len(found):>6} files, {len(in_engine(found))} of the engine"
        yield from names(found, with_names=with_names)
    for command in COMMANDS:
        yield f"command {command:<14} {len(places(texts, command)):>6} places"
        yield from names(places(texts, command), with_names=with_names)
    for operation in OPERATIONS:
        plain, laned = implementations(texts, operation), in_lanes(texts, operation)
        yield f"operation {operation:<12} {len(plain):>6} implementations, {len(laned)} more for queues with groups and limits"
        yield from names([*plain, *laned], with_names=with_names)
    yield f"{'methods of Transaction':<22} {methods(Transaction):>6}"
    yield f"{'lines by hand':<22} {sum(len(text.splitlines()) for text in texts.values()):>6}"


def names(found: Iterable[object], *, with_names: bool) -> Iterator[str]:
    """What was counted, a line each."""
    if with_names:
        yield from (f"    {one}" for one in found)


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in report(Path(__file__).parents[1], with_names="--names" in sys.argv))
