"""What a store sends: a statement in its schema, with parameters."""

from typing import Any

from msgspec import Struct
from psycopg import sql


class Call(Struct, frozen=True):
    """A statement with its parameters; its one row has one column, the answer as JSON."""

    statement: bytes
    parameters: tuple[Any, ...]


def in_schema(statement: str, schema: str) -> bytes:
    """The statement with the schema's name, quoted for PostgreSQL, and for psycopg where the name has a percent sign."""
    return statement.format(sql.Identifier(schema).as_string(None).replace("%", "%%")).encode()
