"""Executes the steps that `schema` returns."""

from typing import TYPE_CHECKING, Any, TypeVar

from psycopg import AsyncCursor

if TYPE_CHECKING:
    from holdfast.stores.postgres.schema import Steps

R = TypeVar("R")


async def carry_out(steps: "Steps[R]", cursor: AsyncCursor[tuple[Any, ...]]) -> R:
    """Take the steps: execute each statement, and send its first row."""
    try:
        statement, parameters = next(steps)
        while True:
            await cursor.execute(statement, parameters or None)
            statement, parameters = steps.send((await cursor.fetchone() or ()) if cursor.description else ())
    except StopIteration as done:
        result: R = done.value
        return result
