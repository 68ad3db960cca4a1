"""Tests that pages name."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def unknown_tests(text: str) -> set[str]:
    """What stands in backquotes, is one word, and is no function or class of the tests or the conformance suite."""
    known = {
        name
        for folder in ("tests", "src/holdfast/testing")
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r"^ *(?:async )?(?:def|class) (\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    return set(re.findall(r"`(\w+)`", text)) - known
