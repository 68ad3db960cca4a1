"""What a store sends: a statement in its schema, with parameters."""

import re
from collections.abc import Iterable
from itertools import count
from typing import Any

from msgspec import Struct
from psycopg import DataError, sql

from holdfast.stores.postgres.function_names import own


class Call(Struct, frozen=True):
    """A statement with its parameters; its one row has one column, the answer as JSON."""

    statement: bytes
    parameters: tuple[Any, ...]
    leaner: bytes | None = None
    """The same for a session that has our settings, where there is one: it does not bring them along."""


class Function(Struct, frozen=True):
    """A function that brings its settings along, and the same one for sessions that have them."""

    statement: bytes
    leaner: bytes

    def call(self, *parameters: Any) -> Call:
        return Call(self.statement, parameters, self.leaner)


def function(name: str, parameters: int, schema: str) -> Function:
    """The function of this name, with so many parameters."""
    given = ", ".join(["%s"] * parameters)
    return Function(in_schema(f"select {{}}.{name}({given})", schema), in_schema(f"select {{}}.{name}_in_session({given})", schema))


def in_schema(statement: str, schema: str) -> bytes:
    """The statement with this release's functions, and the schema's name quoted for PostgreSQL and for psycopg, as a format."""
    return own(statement).format(sql.Identifier(schema).as_string(None).replace("%", "%%")).encode()


def as_array(texts: Iterable[str]) -> str:
    """A list as PostgreSQL reads one: psycopg, which finds out about each part of a list, takes several times as long."""
    quoted = '","'.join([text.replace("\\", "\\\\").replace('"', '\\"') for text in texts])
    return f'{{"{quoted}"}}'


def as_sent(parameter: Any) -> bytes | None:
    """A parameter as text, which the server reads as what the function takes."""
    if parameter is None:
        return None
    if isinstance(parameter, bool):
        return b"t" if parameter else b"f"
    if isinstance(parameter, list):
        parameter = as_array(parameter) if parameter else "{}"
    sent = str(parameter).encode()
    if b"\0" in sent:
        # The text would end there.
        raise DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return sent


def numbered(statement: bytes) -> bytes:
    """The statement as the server prepares one, its parameters by their numbers."""
    numbers = count(1)
    return re.sub(rb"%%|%s", lambda found: b"%" if found[0] == b"%%" else b"$%d" % next(numbers), statement)
