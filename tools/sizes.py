"""Print lines per package, and point at long files and functions. Generated code is left out."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("src", "tools", "bench", "tests")
FILE_LINES = 350
FUNCTION_LINES = 50


def is_generated(text: str) -> bool:
    """Whether tools/unasync.py wrote it."""
    return text.startswith("# Generated from ")


def function_lengths(text: str) -> Iterator[tuple[str, int, int]]:
    """Name, first line and length of every function."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def long_parts(name: str, text: str) -> Iterator[str]:
    """A line for the file if it is long, and one for each long function in it."""
    lines = len(text.splitlines())
    if lines > FILE_LINES:
        yield f"{name}: {lines} lines"
    for function, start, length in function_lengths(text):
        if length > FUNCTION_LINES:
            yield f"{name}:{start}: {function} has {length} lines"


def report(root: Path) -> Iterator[str]:
    """The whole report, line by line."""
    texts = {path.relative_to(root): path.read_text() for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))}
    written = {path: text for path, text in texts.items() if not is_generated(text)}
    yield f"{'package':<40} {'files':>5} {'lines':>6} {'longest function':>16}"
    for package in sorted({path.parent for path in written}):
        inside = [text for path, text in written.items() if path.parent == package]
        longest = max((length for text in inside for _, _, length in function_lengths(text)), default=0)
        yield f"{package.as_posix():<40} {len(inside):>5} {sum(len(text.splitlines()) for text in inside):>6} {longest:>16}"
    for path, text in written.items():
        for part in long_parts(path.as_posix(), text):
            yield f"long: {part}"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in report(Path(__file__).parents[1]))
