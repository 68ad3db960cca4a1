"""The pages, the docstrings and the error texts keep to plain English: the phrases of a dialect that had grown are not used."""

import ast
import re
from pathlib import Path

import pytest

from tests.docs.naming import ROOT
from tools.syntax import parsed

DIALECT = re.compile(
    r"\b(?:whoever|somebody|anybody|everybody|nobody)\b|\bchoose of\b|\bagain does nothing\b|\bapplied it is\b|\bto mend\b|\bsend several\b"
    r"|\b(?:one|a) (?:route|script|process|line|key|method|part|call) a (?:command|script|process|part|call|line|store)\b"
    r"|(?<!there )\bis no (?:store|URL|scope|token|namespace|number|file|Redis|Holdfast|duration|worker|lease|LMDB|queue)\b",
    re.IGNORECASE,
)
IN_DOCSTRINGS = re.compile(
    DIALECT.pattern + r"|\b(?:lest|save for|thereby|hence|nought|anew|heed(?:s|ed)?|mend(?:s|ed)?|tells of)\b"
    r"|(?:[;,]|\band) answers? (?:all|also|how|its?|the|their|them|what|whether|which|who)\b",
    re.IGNORECASE,
)
"""Phrases that docstrings avoid besides."""
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"))])
SOURCE = ROOT / "src/holdfast"
MODULES = sorted(path for path in SOURCE.rglob("*.py") if not {"_sync", "testing", "demo"} & set(path.parts))


def prose(page: str) -> str:
    """A page without its code, its file names and the names of tests."""
    return re.sub(r"`[^`\n]*`|\]\([^)]*\)", "", re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL))


def error_texts(source: str) -> list[str]:
    """The texts of what a module raises, without what is filled in."""
    tree = parsed(source)
    raised = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None]
    return [part.value for error in raised for part in ast.walk(error) if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def docstrings(source: str) -> list[str]:
    """The docstrings of a module, its classes, functions and attributes, line by line."""
    strings = [node.value.value for node in ast.walk(parsed(source)) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    return [line for text in strings if isinstance(text, str) for line in text.splitlines()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_is_in_plain_english(page: Path) -> None:
    assert DIALECT.findall(prose(page.read_text("utf-8"))) == []


def test_docstrings_are_in_plain_english() -> None:
    found = {path: [line for line in docstrings(path.read_text("utf-8")) if IN_DOCSTRINGS.search(line)] for path in MODULES}
    assert {path.relative_to(SOURCE).as_posix(): lines for path, lines in found.items() if lines} == {}


def test_error_texts_are_in_plain_english() -> None:
    texts = {path: error_texts(path.read_text("utf-8")) for path in MODULES}
    assert [f"{path.relative_to(SOURCE)}: {text}" for path, found in texts.items() for text in found if DIALECT.search(text)] == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Whoever waits is woken.",
        "return_to is 'x': choose of 'back', 'place'",
        "foo:// is no store that this version knows",
        "One route a command.",
        "Close it. Again does nothing.",
        "Applied it is once.",
        "batch has 12,000 items; the limit is 10,000; send several",
    ],
)
def test_control_the_dialect_is_noticed(sentence: str) -> None:
    assert DIALECT.search(prose(sentence))
    assert error_texts(f"raise ValueError(f{sentence!r})") != []


@pytest.mark.parametrize(
    "sentence", ["Count them, and answer how many.", "A watch begins anew.", "What waiting cannot mend.", "Nobody asks."]
)
def test_control_the_dialect_is_noticed_in_docstrings(sentence: str) -> None:
    sources = (f'"""{sentence}"""', f'class A:\n    """{sentence}"""', f'def f():\n    """{sentence}"""', f'A = 1\n"""{sentence}"""')
    assert all(IN_DOCSTRINGS.search(docstrings(source)[0]) for source in sources)


def test_control_plain_sentences_pass() -> None:
    plain = "The lease is no longer held. There is no store at the URL. Idempotent. One route per command."
    assert DIALECT.findall(plain) == []
