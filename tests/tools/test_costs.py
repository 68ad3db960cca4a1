"""What a change of the engine may cost at most."""

from pathlib import Path
from typing import Protocol

import pytest

from holdfast.commands import Transaction
from tools import costs

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("command", costs.COMMANDS)
def test_a_command_has_few_places(command: str) -> None:
    found = costs.places(costs.library(ROOT), command)
    assert 3 < len(found) <= costs.COMMANDS[command], found


@pytest.mark.parametrize("operation", costs.OPERATIONS)
def test_each_store_that_executes_an_operation_is_counted(operation: str) -> None:
    found = costs.implementations(costs.library(ROOT), operation)
    assert {name.split("/")[3] for name in found[1:]} == {"lmdb", "memory", "postgres", "redis", "sqlite"}, found


@pytest.mark.parametrize("operation", ["put", "claim"])
def test_what_queues_with_groups_have_of_their_own_is_counted_apart(operation: str) -> None:
    texts = costs.library(ROOT)
    found = costs.in_lanes(texts, operation)
    assert {name.split("/")[3] for name in found} >= {"postgres", "redis", "sqlite"}, found
    assert not {*found} & {*costs.implementations(texts, operation)}


@pytest.mark.parametrize("operation", costs.OPERATIONS)
def test_an_operation_has_few_implementations(operation: str) -> None:
    texts = costs.library(ROOT)
    plain, laned = costs.implementations(texts, operation), costs.in_lanes(texts, operation)
    most, most_laned = costs.IMPLEMENTATIONS[operation]
    assert len(plain) <= most, plain
    assert len(laned) <= most_laned, laned


def test_the_design_says_how_many() -> None:
    texts = costs.library(ROOT)
    put, claim, settle = (len(costs.implementations(texts, operation)) for operation in costs.OPERATIONS)
    said = " ".join((ROOT / "docs" / "design" / "index.md").read_text().split())
    assert f"{put} times for put, {claim} for claim, {settle} for settle" in said


@pytest.mark.parametrize("field", costs.FIELDS)
def test_a_field_is_known_to_few_files_of_the_engine(field: str) -> None:
    found = costs.in_engine(costs.naming(costs.library(ROOT), field))
    assert 5 < len(found) <= costs.FIELDS[field], found


@pytest.mark.parametrize("field", costs.EVERYWHERE)
def test_a_field_that_only_travels_is_known_to_few_files_of_the_library(field: str) -> None:
    found = costs.naming(costs.library(ROOT), field)
    assert 5 < len(found) <= costs.EVERYWHERE[field], found


def test_a_transaction_has_few_methods() -> None:
    assert 20 < costs.methods(Transaction) <= costs.METHODS


def test_a_method_more_is_counted() -> None:
    class Larger(Transaction, Protocol):
        def another(self) -> None: ...

    assert costs.methods(Larger) == costs.methods(Transaction) + 1


def test_prose_is_no_place(tmp_path: Path) -> None:
    text = '"""Count them."""\n\n\ndef size() -> int:\n    """Count all."""\n    return 1  # Count once.\n'
    assert "Count" not in costs.without_prose(tmp_path / "a.py", text)
    assert "Count" not in costs.without_prose(tmp_path / "a.sql", "-- Count them.\nselect 1")
