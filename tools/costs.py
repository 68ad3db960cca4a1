"""Print what a change costs: files that name a field of a message, places of a command, methods of a transaction, lines by hand.

A command has its place where it is defined, listed and executed, in `commands` and `stores`; its callers are not counted.

Counted in the library without `testing`, and without what is generated: Python, SQL and Lua.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from holdfast.commands import Transaction

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.sizes import hand_written

FIELDS = ("priority", "max_attempts", "metadata", "expired_to", "start_by")
COMMANDS = ("Length", "Look", "Survey", "Count")


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
    return [path for path in naming(texts, command) if path.parts[2] in ("commands", "stores")]


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
    yield f"{'methods of Transaction':<22} {methods(Transaction):>6}"
    yield f"{'lines by hand':<22} {sum(len(text.splitlines()) for text in texts.values()):>6}"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in report(Path(__file__).parents[1]))
