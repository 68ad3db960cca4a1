"""The table of guarantees is true: to what the stores say of themselves, and to the tests that it names."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.connect import connect
from holdfast.stores import Store
from holdfast.stores.sqlite.store import SqliteStore
from tests.docs.naming import ROOT, unknown_tests
from tests.postgres import own_postgres_url
from tests.servers import own_redis_url

PAGE = (ROOT / "docs" / "reference" / "guarantees.md").read_text("utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("|")]
COLUMNS = ["memory", "SQLite", "LMDB", "PostgreSQL", "Redis, Valkey"]
NOTES = dict(re.findall(r"^\[\^([\w-]+)\]: (.*)$", PAGE, re.MULTILINE))
PLAIN = ("-", "no", "all is gone", "as it was then")
"""Cells that promise nothing."""

OPENED: list[tuple[str, Callable[[Path], Store]]] = [
    ("memory", lambda _: connect("memory://")),
    ("SQLite", lambda folder: connect(f"sqlite:///{folder}/store.db")),
    ("SQLite", lambda folder: SqliteStore(folder / "store.db", durability="process")),
    ("LMDB", lambda folder: connect(f"lmdb:///{folder}/store.lmdb")),
    ("PostgreSQL", lambda _: connect(own_postgres_url())),
    ("Redis, Valkey", lambda _: connect(own_redis_url())),
]


def cell(row: str, column: str) -> str:
    (found,) = (cells[1 + COLUMNS.index(column)] for cells in ROWS if cells[0].startswith(row))
    return found


@pytest.mark.parametrize(("column", "opens"), OPENED)
def test_a_stores_guarantees_are_those_of_the_page(column: str, opens: Callable[[Path], Store], tmp_path: Path) -> None:
    store = opens(tmp_path)
    promised = store.guarantees
    store.close()
    assert f"`{promised.survives}`" in cell("`survives`", column)
    assert cell("`shared_by`", column) == f"`{promised.shared_by}`[^facts]"
    assert cell("`clock`", column) == f"`{promised.clock}`[^facts]"


def test_every_promise_names_its_tests_or_says_whose_word_it_is() -> None:
    assert [cells[1:] for cells in ROWS[:1]] == [COLUMNS]
    cells = [found for row in ROWS[2:] for found in row[1:]]
    assert [found for found in cells if found not in PLAIN and "[^" not in found and "*vendor claim*" not in found] == []
    assert set(re.findall(r"\[\^([\w-]+)\]", "".join(cells))) == set(NOTES)


def test_every_test_that_the_page_names_exists() -> None:
    assert unknown_tests(" ".join(NOTES.values())) == set()
