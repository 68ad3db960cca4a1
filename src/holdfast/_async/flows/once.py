"""Doing something once: note that it begins, do it, note its result; whoever died in between left it unknown."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Raw

from holdfast._async.flows.acquiring import acquire
from holdfast._async.flows.holding import AsyncHolding
from holdfast.client import ControlPlaneClient
from holdfast.codec import Codec
from holdfast.commands import Acquire, Browse, Change, LeaseName, Look, Read, Release, Write
from holdfast.errors import ExecutionRunning, ExecutionUnknown, Refused
from holdfast.holding import Hold
from holdfast.ids import new_id
from holdfast.records import Entry, Receipt
from holdfast.stores import AsyncStore
from holdfast.workers.ledger import LedgerEntry, OnceRecord, entry_of

NULL = Raw(b"null")


class AsyncOnceRun:
    """One attempt to do something once."""

    def __init__(
        self, client: ControlPlaneClient, ledger: str, key: str, holder: str, lease_s: float, *, max_hold_s: float | None = None
    ) -> None:
        self._client = client
        self._store = client.async_store
        self._ledger = ledger
        self._key = key
        self._holder = holder
        self._lease_s = lease_s
        self._max_hold_s = max_hold_s
        self._lease_id = new_id()

    async def run(self, function: Callable[[], Awaitable[Any]], codec: Codec, *, timeout_s: float | None, keep_s: float | None) -> Any:
        """Answer the stored result, or call the function and store its result; while somebody else does, wait for `timeout_s`."""
        begun = LedgerEntry("started", self._lease_id, self._holder)
        command = Acquire(self._ledger, self._key, self._holder, self._lease_id, self._lease_s, begun.raw)
        acquired, started = await acquire(self._store, command, timeout_s, now=self._client.keepalive.now)
        found = LedgerEntry("started") if acquired.entry is None else entry_of(acquired.entry.value)
        if acquired.lease.lease_id != self._lease_id:
            if found.state == "done":
                return codec.decode(found.result or NULL)
            raise ExecutionRunning(f"{self._what()} is being done by {acquired.lease.holder} at this moment")
        if found.by == self._lease_id:
            return await self._do(function, codec, started, keep_s)
        await self._release()
        if found.state == "done":
            return codec.decode(found.result or NULL)
        if acquired.entry is not None and await is_running(self._store, self._ledger, acquired.entry):
            raise ExecutionRunning(f"{self._what()} is being done by {found.holder} at this moment")
        raise ExecutionUnknown(
            f"{self._what()} was begun by {found.holder}, who died: perhaps it happened; find out, then resolve() or forget() it"
        )

    async def _do(self, function: Callable[[], Awaitable[Any]], codec: Codec, started: float, keep_s: float | None) -> Any:
        name = LeaseName(self._ledger, self._key, self._lease_id)
        keepalive = self._client.keepalive
        holding = AsyncHolding(
            keepalive, Hold(name, self._lease_s, started, keepalive.now, max_hold_s=self._max_hold_s, label=self._what())
        )
        # Whatever it raises, it says with it that it has not happened.
        ending = Change(self._key, "delete", lease=self._lease_id)

        async def settle() -> bool:
            (answer,) = await self._store.execute(Write(self._ledger, [ending]))
            await self._release()
            return answer.written

        try:
            result = await function()
            stored = codec.encode(result)
        except BaseException as error:
            await holding.leave(error, settle)
            raise
        done = LedgerEntry("done", self._lease_id, self._holder, stored)
        ending = Change(self._key, value=done.raw, lease=self._lease_id, ttl_s=keep_s)
        await holding.leave(None, settle)
        return result

    async def _release(self) -> None:
        await self._store.execute(Release([LeaseName(self._ledger, self._key, self._lease_id)]))

    def _what(self) -> str:
        return f"{self._key} of ledger {self._ledger!r}"


async def is_running(store: AsyncStore, ledger: str, entry: Entry) -> bool:
    """Whether the claim or lease under which something was begun is still held."""
    found = entry_of(entry.value)
    if found.state == "done":
        return False
    if "/" not in found.by:  # A lease of the ledger; the text of a claim has slashes.
        looked = await store.execute(Look(ledger, [entry.key]))
        return any(lease is not None and lease.lease.lease_id == found.by for lease in looked.leases)
    receipt = Receipt.parse(found.by)
    page = await store.execute(Browse(receipt.queue, ids=[receipt.id]))
    return any(message.token == receipt.token and message.held_at(page.now) for message in page.messages)


async def record(store: AsyncStore, ledger: str, key: str, codec: Codec) -> OnceRecord | None:
    """What is known about something that is to happen once."""
    entry = await _entry(store, ledger, key)
    if entry is None:
        return None
    found = entry_of(entry.value)
    if found.state == "done":
        return OnceRecord("done", found.holder, codec.decode(found.result or NULL))
    return OnceRecord("running" if await is_running(store, ledger, entry) else "unknown", found.holder)


async def reconcile(store: AsyncStore, ledger: str, key: str, change: Change) -> bool:
    """Change what is unknown, by a change of its entry; False if nothing is known of it. Raises `ExecutionRunning`."""
    entry = await _entry(store, ledger, key)
    if entry is None:
        return False
    if await is_running(store, ledger, entry):
        raise ExecutionRunning(f"{key} of ledger {ledger!r} is being done by {entry_of(entry.value).holder} at this moment")
    same = Change(key, change.do, change.value, expect="revision", revision=entry.revision, ttl_s=change.ttl_s)
    (answer,) = await store.execute(Write(ledger, [same]))
    if not answer.written:
        raise Refused(f"{key} of ledger {ledger!r} has changed meanwhile: look again")
    return True


async def _entry(store: AsyncStore, ledger: str, key: str) -> Entry | None:
    return next(iter((await store.execute(Read(ledger, [key]))).entries), None)
