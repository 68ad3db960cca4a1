# Generated from src/holdfast/stores/postgres/_async/steps.py by tools/unasync.py; do not edit.
"""Executes the steps that `schema` returns."""

from typing import TYPE_CHECKING, Any, TypeVar

from psycopg import Cursor

if TYPE_CHECKING:
    from holdfast.stores.postgres.schema import Steps

R = TypeVar("R")


def carry_out(steps: "Steps[R]", cursor: Cursor[tuple[Any, ...]]) -> R:
    """Take the steps: execute each statement, and send its first row."""
    try:
        statement, parameters = next(steps)
        while True:
            cursor.execute(statement, parameters or None)
            statement, parameters = steps.send((cursor.fetchone() or ()) if cursor.description else ())
    except StopIteration as done:
        result: R = done.value
        return result
