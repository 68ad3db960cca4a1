"""One route per command: decode, check, execute, encode."""

import asyncio
from typing import Any, Final
from urllib.parse import parse_qs

from msgspec import json

from holdfast._async.flows.claiming import claim as claim_patiently
from holdfast.codec import check_duration
from holdfast.commands import Claim, Claimed, Command, Together
from holdfast.commands.sizes import is_large
from holdfast.commands.together import only_reads
from holdfast.server.asgi import JSON_TYPE, ClientLeft, Receive, Scope, Send, answer, answer_in_pieces
from holdfast.server.auth.callers import caller_of, who_asks
from holdfast.server.auth.guarded_store import Reach
from holdfast.server.load.answer_memory import Memory, Share
from holdfast.server.load.loop_time import metered
from holdfast.server.load.standstill import Stalls
from holdfast.server.long_answers import LONG_BYTES, encode, encode_long
from holdfast.server.long_requests import Lasting, cancel_when_gone
from holdfast.server.metrics import Metrics
from holdfast.server.namespaces.admission import Tenants
from holdfast.server.request_bodies import BATCH, STEP, Bodies
from holdfast.stores import AsyncStore
from holdfast.stores.http.protocol import WAIT_MAX_S, WALL_OFFSET

POLL_S: Final = 30.0
"""How often a claim that waits here asks in vain, once for all that wait on its queue."""

_WALL_OFFSET = WALL_OFFSET.encode()


class CommandRoute:
    """Executes one kind of command on the store."""

    def __init__(
        self,
        command: type[Command[Any]],
        store: AsyncStore,
        lasting: Lasting,
        metrics: Metrics,
        *,
        stalls: Stalls,
        tenants: Tenants,
        bodies: Bodies,
        memory: Memory,
    ) -> None:
        self._decode = json.Decoder(command).decode
        self._shape = STEP if command is Together else BATCH
        self._store = store
        self._lasting = lasting
        self._metrics = metrics
        self._stalls = stalls
        self._tenants = tenants
        self._bodies = bodies
        self._memory = memory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = self._stalls.begin()
        short = self._bodies.short(scope)
        if short is not None:
            await self._answer(scope, receive, send, self._decode(short), begun)
            return
        command = await self._bodies.decoded(scope, receive, self._decode, self._shape)
        await metered(self._answer(scope, receive, send, command, begun))

    async def _answer(self, scope: Scope, receive: Receive, send: Send, command: Command[Any], begun: float) -> None:
        caller = caller_of(scope)
        share = Share(self._memory, who_asks(caller))
        store = Reach(self._store, caller, self._tenants, share)
        try:
            last = await store.last_failures(command)
            self._stalls.check(begun)
            if scope["query_string"] and isinstance(command, Claim):
                answered: object = await self._claim(store, command, scope, receive)
            else:
                answered = await self._execute(store, command, receive)
            self._metrics.executed(command, answered, caller.namespace.prefix, last)
            offset = (_WALL_OFFSET, b"%d" % self._store.wall_offset_us())
            if share.held > LONG_BYTES:
                pieces = await encode_long(answered)
                del answered, command  # Only they are needed while the client reads.
                await answer_in_pieces(scope, send, 200, pieces, JSON_TYPE, offset)
            else:
                await answer(scope, send, 200, encode(answered), JSON_TYPE, offset)
        finally:
            share.leave()

    async def _execute(self, store: AsyncStore, command: Command[Any], receive: Receive) -> object:
        """Execute it; what only reads, and much, ends when its client leaves."""
        if not only_reads(command) or not is_large(command, store.limits):
            return await store.execute(command)
        task = asyncio.create_task(metered(store.execute(command)))
        watch = asyncio.create_task(cancel_when_gone(receive, task))
        try:
            await asyncio.wait([task])
        finally:
            watch.cancel()
            task.cancel()
        try:
            if task.cancelled():
                raise ClientLeft
            return task.result()
        finally:
            # An error keeps this frame, and the frame the task that keeps the error: a cycle, with all that the request had.
            del task, watch

    async def _claim(self, store: AsyncStore, command: Claim, scope: Scope, receive: Receive) -> Claimed:
        """Claim, waiting for something to be there; what comes when the client has gone is given back."""
        if command.id:
            raise ValueError("a waiting claim takes no id: it is repeated, and messages of a lost response are given back at once")
        messages = await self._lasting.run(scope, receive, claim_patiently(store, command, wait_s(scope), POLL_S), self._tenants)
        if messages is None:
            await caller_of(scope).stay()
        return Claimed(messages or [])


def wait_s(scope: Scope) -> float:
    """How long the request is to wait, from its query."""
    asked = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    if asked.keys() != {"wait_s"}:
        raise ValueError("the only query parameter of a claim is wait_s")
    try:
        seconds = float(asked["wait_s"][-1])
    except ValueError:
        raise ValueError("wait_s must be a number of seconds") from None
    return check_duration(seconds, "wait_s", maximum=WAIT_MAX_S)
