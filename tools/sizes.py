"""Print lines per package, and refuse files and functions that have become too long. Generated code is left out.

What was too long before is listed in `LONG`, with its lines: it may shrink, but not grow.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.syntax import parsed

FOLDERS = ("src", "tools", "bench", "tests")
SUFFIXES = (".py", ".sql", ".lua")
FILE_LINES = {"src": 350, "tools": 350, "bench": 450, "tests": 500}
FUNCTION_LINES = 50

LONG: dict[str, int] = {
    "src/holdfast/cli/serve.py serve": 53,
    "src/holdfast/stores/memory/fast/queue.py claiming": 65,
    "src/holdfast/stores/memory/fast/queue.py claim": 56,
    "src/holdfast/stores/postgres/functions/browse.sql browse_state": 60,
    "src/holdfast/stores/postgres/functions/claim.sql plan_claim": 61,
    "src/holdfast/stores/postgres/functions/fast_claim.sql fast_claim": 73,
    "src/holdfast/stores/postgres/functions/log.sql read_events": 62,
    "src/holdfast/stores/postgres/functions/put.sql place_items": 85,
    "src/holdfast/stores/waiting/waiters.py": 379,
}
"""What is longer, by file or by file and function."""


def is_generated(text: str) -> bool:
    """Whether tools/unasync.py wrote it."""
    return text.startswith("# Generated from ")


def hand_written(root: Path, folders: Iterable[str] = FOLDERS) -> dict[Path, str]:
    """The text of every file of code that somebody wrote."""
    paths = [path for folder in folders for path in sorted((root / folder).rglob("*")) if path.suffix in SUFFIXES]
    texts = {path.relative_to(root): path.read_text() for path in paths}
    return {path: text for path, text in texts.items() if not is_generated(text)}


def function_lengths(path: Path, text: str) -> Iterator[tuple[str, int]]:
    """Name and length of every function."""
    if path.suffix == ".py":
        for node in ast.walk(parsed(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
                yield node.name, node.end_lineno - node.lineno + 1
        return
    ends = re.compile(r"^\$\$;?$" if path.suffix == ".sql" else r"^end$", re.MULTILINE)
    begins = r"^create or replace (?:function|procedure) (\w+)" if path.suffix == ".sql" else r"^(?:local )?function ([\w.:]+)"
    for found in re.finditer(begins, text, re.MULTILINE):
        end = ends.search(text, found.end())
        yield found[1], text.count("\n", found.start(), end.end() if end else len(text)) + 1


def long_parts(path: Path, text: str) -> Iterator[tuple[str, int]]:
    """The file and its functions that are too long, each with its lines."""
    lines = len(text.splitlines())
    if lines > FILE_LINES[path.parts[0]]:
        yield path.as_posix(), lines
    for function, length in function_lengths(path, text):
        if length > FUNCTION_LINES:
            yield f"{path.as_posix()} {function}", length


def packages(written: dict[Path, str]) -> Iterator[str]:
    """A line for each package."""
    yield f"{'package':<48} {'files':>5} {'lines':>6} {'longest function':>16}"
    for package in sorted({path.parent for path in written}):
        inside = {path: text for path, text in written.items() if path.parent == package}
        longest = max((length for path, text in inside.items() for _, length in function_lengths(path, text)), default=0)
        yield f"{package.as_posix():<48} {len(inside):>5} {sum(len(text.splitlines()) for text in inside.values()):>6} {longest:>16}"


def faults(written: dict[Path, str]) -> Iterator[str]:
    """What is too long and not listed, or longer than listed; and what is listed in vain."""
    found = {part: lines for path, text in written.items() for part, lines in long_parts(path, text)}
    for part, lines in found.items():
        if lines > LONG.get(part, 0):
            yield f"{part}: {lines} lines, and {LONG.get(part) or 'fewer'} are allowed: split it"
    for part in LONG.keys() - found.keys():
        yield f"{part}: no longer too long; take it out of the list"


def main() -> int:
    """Print the packages, and with `--check` the faults alone."""
    written = hand_written(Path(__file__).parents[1])
    wrong = list(faults(written))
    lines = wrong if "--check" in sys.argv else [*packages(written), *wrong]
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
