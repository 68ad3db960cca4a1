# Generated from src/holdfast/stores/redis/_async/asking.py by tools/unasync.py; do not edit.
"""Executing commands, and running their scripts on a connection."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import redis.exceptions as theirs

from holdfast.commands import Command
from holdfast.stores.redis.replies import read_reply
from holdfast.stores.redis.requests import Asked, Words
from holdfast.stores.redis.scripts import script
from holdfast.stores.retrying import Tries, named, retry
from holdfast.stores.undo_cancelled import take_back_if_cancelled

if TYPE_CHECKING:
    from holdfast.stores.redis.store import RedisStore

R = TypeVar("R")


class Wire(Protocol):
    """What we use of the library's connections."""

    def connect(self) -> None: ...

    def disconnect(self) -> None: ...

    def pack_command(self, *words: str | bytes) -> list[bytes]: ...

    def pack_commands(self, commands: Sequence[Words]) -> list[bytes]: ...

    def send_packed_command(self, command: list[bytes]) -> None: ...

    def send_command(self, *words: str | bytes) -> None: ...

    def read_response(self, *, disconnect_on_error: bool = True) -> Any: ...


class Runs(Protocol):
    """What runs scripts: connections."""

    def run(self, name: str, arguments: Words) -> Any:
        """Run the script of a command; its reply. Raises `Lost` where another try may help."""
        ...


def execute(store: "RedisStore", connections: Runs, command: Command[R]) -> R:
    """See `Store.execute`."""
    command.measure(store.limits)
    command = named(command)
    name, arguments = store.words(command)
    try:
        return read_reply(command, retry(lambda: connections.run(name, arguments), Tries(store.patience)))
    except BaseException as error:
        take_back_if_cancelled(store, error, command)
        raise


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
    packed = connection.pack_command(*commands[0]) if len(commands) == 1 else connection.pack_commands(commands)
    connection.send_packed_command(packed)


def _reply(connection: Wire) -> Any:
    try:
        return connection.read_response()
    except theirs.ResponseError as error:
        return error
