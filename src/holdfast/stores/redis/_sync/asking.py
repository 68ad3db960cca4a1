# Generated from src/holdfast/stores/redis/_async/asking.py by tools/unasync.py; do not edit.
"""Running scripts on a connection."""

from collections.abc import Sequence
from typing import Any, Protocol

import redis.exceptions as theirs
from hiredis import pack_command

from holdfast.stores.redis.requests import Asked, Words
from holdfast.stores.redis.scripts import script


class Wire(Protocol):
    """What we use of the library's connections."""

    def connect(self) -> None: ...

    def disconnect(self) -> None: ...

    def send_packed_command(self, command: list[bytes]) -> None: ...

    def send_command(self, *words: str | bytes) -> None: ...

    def read_response(self, *, disconnect_on_error: bool = True) -> Any: ...


def ask(connection: Wire, *commands: Words) -> list[Any]:
    """Send plain commands together; their replies, of which each may be an error."""
    _send(connection, commands)
    return [_reply(connection) for _ in commands]


def run(connection: Wire, scripts: Sequence[Asked]) -> None:
    """Run scripts together, and answer each as its reply arrives."""
    unknown = _run_known(connection, scripts)
    if unknown:
        # The server was restarted, or its scripts were flushed.
        texts = dict.fromkeys(script(one.name).text for one in unknown)
        for reply in ask(connection, *[("SCRIPT", "LOAD", text) for text in texts]):
            if isinstance(reply, Exception):
                raise reply
        for one in _run_known(connection, unknown):
            one.answer(theirs.NoScriptError(f"the script of {one.name} is flushed again and again"))


def _run_known(connection: Wire, scripts: Sequence[Asked]) -> list[Asked]:
    """Answer those whose scripts the server knows; return the others."""
    _send(connection, [("EVALSHA", script(one.name).sha, *one.arguments) for one in scripts])
    unknown = []
    for one in scripts:
        reply = _reply(connection)
        if isinstance(reply, theirs.NoScriptError):
            unknown.append(one)
        else:
            one.answer(reply)
    return unknown


def _send(connection: Wire, commands: Sequence[Words]) -> None:
    # Packed without the library, which looks at every word for types that ours never have.
    packed = [pack_command(tuple(words)) for words in commands]  # type: ignore[arg-type] # its stub has tuples of one word only
    connection.send_packed_command(packed if len(packed) == 1 else [b"".join(packed)])


def _reply(connection: Wire) -> Any:
    try:
        return connection.read_response()
    except theirs.ResponseError as error:
        return error
