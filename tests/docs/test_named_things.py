"""The prose of the source names what is there: a name between backticks, or a file, that was changed elsewhere is stale."""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.docs.naming import ROOT

SUFFIXES = {".py", ".sql", ".lua", ".ts", ".tsx", ".html"}
FOLDERS = ("src", "tests", "tools", "web/client/src", "web/dashboard/src")
NAMED = re.compile(r"`([A-Za-z_]\w{2,})(?:\(\))?`")
FILES = re.compile(r"(?<![\w/.])([a-z_]+\.(?:py|sql|lua))\b")
OTHERS = {"manage.py", "CELERY_TIMEZONE"}
"""What belongs to the user, or to a library."""


@cache
def texts() -> dict[Path, str]:
    """Everything that was written by hand, and what was generated from it."""
    found = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES)
    return {path: path.read_text() for path in found}


def stale(prose: str, everything: Mapping[Path, str]) -> set[str]:
    """The names and files that only prose has: a name that is there stands somewhere without backticks."""
    names, files = set(NAMED.findall(prose)), set(FILES.findall(prose))
    bare = Counter(word for text in everything.values() for word in re.findall(r"\w+", NAMED.sub("", text)) if word in names)
    return {name for name in names if not bare[name]} | files - {path.name for path in everything}


def test_what_docstrings_and_comments_name_is_there() -> None:
    lines = (line for path, text in texts().items() if "src" in path.parts for line in text.splitlines() if "`" in line or ".py" in line)
    assert stale("\n".join(lines), texts()) - OTHERS == set()


def test_control_what_is_not_there_is_noticed() -> None:
    everything = {Path("a.py"): '"""See `known` and `gone_for_long`."""\nknown = 1\n'}
    assert stale("see `known`, `gone_for_long()`, a.py and another.lua", everything) == {"gone_for_long", "another.lua"}
