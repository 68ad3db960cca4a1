"""Print what a change costs: files that name a field, places of a command, implementations of an operation, methods, lines by hand.

A command has its place where it is defined, listed and executed, in `commands` and `stores`; its callers and prose are not counted.
An operation is implemented wherever a function, a statement or a script of its name says what becomes of messages.

Counted in the library without `testing`, and without what is generated: Python, SQL and Lua.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from holdfast.commands import Transaction

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.sizes import hand_written

FIELDS: Final = ("priority", "max_attempts", "metadata", "expired_to", "start_by", "labels")
COMMANDS: Final = ("Length", "Look", "Survey", "Count")
OPERATIONS: Final = {"put": "put", "claim": "claim", "settle": "settle|ack"}
"""Each with what its functions, statements and scripts are called."""

PLACES: Final = 8
"""The most that a command may have; a test says so."""

METHODS: Final = 40
"""The most that a transaction may have; a test says so."""


def library(root: Path) -> dict[Path, str]:
    """The hand-written text of the library, by file."""
    texts = hand_written(root, ("src",))
    return {path: text for path, text in texts.items() if "testing" not in path.parts}


def naming(texts: dict[Path, str], word: str) -> list[Path]:
    """The files that use a word, or have it for their name."""
    found = re.compile(rf"\b{word}\b")
    return [path for path, text in texts.items() if found.search(text) or path.stem == word.lower()]


def places(texts: dict[Path, str], command: str) -> list[Path]:
    """The files in which a command is defined, listed or executed."""
    found = re.compile(rf"\b({command}|(answer|plan|check|write|recall|fast)_{command.lower()})\b")
    inside = {path: text for path, text in texts.items() if path.parts[2] in ("commands", "stores")}
    return [path for path, text in inside.items() if path.stem == command.lower() or found.search(without_prose(path, text))]


def without_prose(path: Path, text: str) -> str:
    """The text without comments and docstrings."""
    if path.suffix != ".py":
        return re.sub(r"--.*", "", text)
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            end = node.end_lineno or node.lineno
            lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
    return re.sub(r"(^|\s)#.*", "", "\n".join(lines))


def implementations(texts: dict[Path, str], operation: str) -> list[str]:
    """The texts that say what an operation does: its rules, and in each store files, statements or functions of its name."""
    found = [f"{path.as_posix()}{part}" for path, text in texts.items() for part in _parts(path, text, OPERATIONS[operation])]
    return [f"src/holdfast/commands {operation}", *found]


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


def report(root: Path) -> Iterator[str]:
    """The whole report, line by line."""
    texts = library(root)
    for field in FIELDS:
        yield f"field {field:<16} {len(naming(texts, field)):>6} files"
    for command in COMMANDS:
        yield f"command {command:<14} {len(places(texts, command)):>6} places"
    for operation in OPERATIONS:
        yield f"operation {operation:<12} {len(implementations(texts, operation)):>6} implementations"
    yield f"{'methods of Transaction':<22} {methods(Transaction):>6}"
    yield f"{'lines by hand':<22} {sum(len(text.splitlines()) for text in texts.values()):>6}"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in report(Path(__file__).parents[1]))
