"""Running scripts on a connection."""

from collections.abc import Sequence
from typing import Any, Protocol

import redis.exceptions as theirs
from hiredis import pack_command

from holdfast.stores.redis.requests import Asked, Words
from holdfast.stores.redis.scripts import script


class AsyncWire(Protocol):
    """What we use of the library's connections."""

    async def connect(self) -> None: ...

    async def disconnect(self) -> None: ...

    async def send_packed_command(self, command: list[bytes]) -> None: ...

    async def send_command(self, *words: str | bytes) -> None: ...

    async def read_response(self, *, disconnect_on_error: bool = True) -> Any: ...


async def ask(connection: AsyncWire, *commands: Words) -> list[Any]:
    """Send plain commands together; their replies, of which each may be an error."""
    await _send(connection, commands)
    return [await _reply(connection) for _ in commands]


async def run(connection: AsyncWire, scripts: Sequence[Asked]) -> None:
    """Run scripts together, and answer each as its reply arrives."""
    unknown = await _run_known(connection, scripts)
    if unknown:
        # The server was restarted, or its scripts were flushed.
        texts = dict.fromkeys(script(one.name).text for one in unknown)
        for reply in await ask(connection, *[("SCRIPT", "LOAD", text) for text in texts]):
            if isinstance(reply, Exception):
                raise reply
        for one in await _run_known(connection, unknown):
            one.answer(theirs.NoScriptError(f"the script of {one.name} is flushed again and again"))


async def _run_known(connection: AsyncWire, scripts: Sequence[Asked]) -> list[Asked]:
    """Answer those whose scripts the server knows; return the others."""
    await _send(connection, [("EVALSHA", script(one.name).sha, *one.arguments) for one in scripts])
    unknown = []
    for one in scripts:
        reply = await _reply(connection)
        if isinstance(reply, theirs.NoScriptError):
            unknown.append(one)
        else:
            one.answer(reply)
    return unknown


async def _send(connection: AsyncWire, commands: Sequence[Words]) -> None:
    # Packed without the library, which looks at every word for types that ours never have.
    packed = [pack_command(tuple(words)) for words in commands]  # type: ignore[arg-type] # its stub has tuples of one word only
    await connection.send_packed_command(packed if len(packed) == 1 else [b"".join(packed)])


async def _reply(connection: AsyncWire) -> Any:
    try:
        return await connection.read_response()
    except theirs.ResponseError as error:
        return error
