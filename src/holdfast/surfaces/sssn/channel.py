"""WorkQueueChannel: write messages, claim them exclusively, acknowledge them or give them back."""

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from holdfast._async.flows.browsing import move_all, pages
from holdfast._async.flows.claiming import claim_now
from holdfast.client import ControlPlaneClient
from holdfast.clock import wall_s
from holdfast.codec import check_duration, check_name
from holdfast.commands import Claim, Clear, Item, Move, Put, Settle
from holdfast.commands.argument_checks import check_budget
from holdfast.ids import new_id
from holdfast.process import forks
from holdfast.records import Message
from holdfast.surfaces.opening import client_of, is_by_reference
from holdfast.surfaces.sssn.claims import Claims
from holdfast.surfaces.sssn.messages import (
    ByReference,
    ChannelInfo,
    ChannelMessage,
    Encoded,
    GenericContent,
    MessageContent,
    Visibility,
)

if TYPE_CHECKING:
    from holdfast.stores import Store

Callback = Callable[[ChannelMessage], Awaitable[object]]

FORGET_MIN: Final = 100
"""From so many claims on, those that have ended are forgotten."""

_log = logging.getLogger("holdfast")


class Settled(Struct, frozen=True):
    """How many messages were settled, and the ids of those whose claim was no longer held: they were left alone."""

    count: int
    lost: tuple[str, ...] = ()


class MessageStore:
    """What programs reach for behind a channel's door: its claims, and who is told of new messages."""

    def __init__(self, claims: Claims) -> None:
        self.claims = claims
        self.subscribers: dict[str, Callback] = {}


class WorkQueueChannel:
    """A queue whose messages workers claim exclusively, for at most `claim_timeout` seconds.

    What is given back, and what a worker let expire, regains its place. `max_attempts` limits how often a message may fail or expire; then
    it is a dead letter, in the channel `dead_letter` of the same store if there is one. On a shared store the channel's id is the queue's
    name, and contents are read as `content_type`.
    """

    def __init__(
        self,
        claim_timeout: float = 300.0,
        *,
        id: str,
        name: str,
        description: str = "",
        visibility: Visibility = Visibility.PRIVATE,
        period: float = 60.0,
        max_workers: int = 10,
        max_raw_buffer_size: int = 10_000,
        retention_max_age: float | None = None,
        retention_max_count: int | None = None,
        maintenance_interval_seconds: float = 60.0,
        db_client: Any = None,
        transport: Any = None,
        security: Any = None,
        store: "str | ControlPlaneClient | Store | None" = None,
        content_type: type[MessageContent] = GenericContent,
        max_attempts: int | None = None,
        dead_letter: str | None = None,
    ) -> None:
        self.claim_timeout: float = check_duration(claim_timeout, "claim_timeout", zero=False)
        self.id: str = check_name(id, "queue")
        self.name = name
        self.description = description
        self.visibility = visibility
        self.period = period
        self.max_workers = max_workers
        self.max_raw_buffer_size = max_raw_buffer_size
        self.retention_max_age = retention_max_age
        self.retention_max_count = retention_max_count
        self.maintenance_interval_seconds = maintenance_interval_seconds
        self.db_client = db_client
        self.transport = transport
        self.security = security
        self.client: ControlPlaneClient = client_of(store)
        """Give it as `store=` to another channel, a dead-letter one for example, to keep both in one store."""
        self._form: ByReference | Encoded = ByReference() if is_by_reference(self.client) else Encoded(content_type)
        check_budget(max_attempts, dead_letter)
        self._budget = max_attempts, dead_letter
        self._store = MessageStore(Claims(self.client, self.id, self.claim_timeout))
        self._accepts_writes = False
        # The claims made through this object, by message id; some may have ended, or have been settled by others.
        self._held: dict[str, tuple[str, Message]] = {}
        self._forget_at = FORGET_MIN
        forks.look_after(self)

    @property
    def info(self) -> ChannelInfo:
        """What the channel is called and who may see it."""
        return ChannelInfo(self.id, self.name, self.description, self.visibility, self.period)

    async def start(self) -> None:
        """Accept writes. Nothing runs in the background."""
        self._accepts_writes = True
        if self.db_client is not None:
            await self.db_client.initialize(self.info.model_dump())
        if self.transport is not None:
            await self.transport.start(self)

    def stop(self) -> None:
        """Do nothing, since nothing runs: what is here can still be read and written. `drain` ends the writing."""

    async def drain(self, timeout: float | None = None) -> None:
        """Accept no more writes; there is nothing to wait for, since every write is stored when it returns."""
        del timeout
        self._accepts_writes = False
        if self.transport is not None:
            await self.transport.stop()

    async def write(self, sender_id: str, data: Any, direct: bool = False) -> str:  # noqa: FBT001, FBT002 - as documented
        """Add a message and return its id. With `direct` the data is a whole `ChannelMessage`, else it becomes the content of one."""
        if not self._accepts_writes:
            raise RuntimeError(f"channel {self.id!r} accepts no writes: start() it first, and do not write after drain()")
        await self._authorize("write", sender_id)
        if direct and not isinstance(data, ChannelMessage):
            raise TypeError(f"direct=True takes a ChannelMessage, not {type(data).__name__}")
        message = data if isinstance(data, ChannelMessage) else self._message(sender_id, data)
        max_attempts, dead_letter = self._budget
        item = Item(message.id, self._form.encode(message), max_attempts=max_attempts, dead_letter=dead_letter)
        stored = await self.client.async_store.execute(Put(self.id, [item]))
        if stored.created[0]:
            # A message with this id that waits already stays as it is.
            await self._tell(message)
        return message.id

    async def read(
        self,
        reader_id: str,
        limit: int = 10,
        exclusive: bool = False,  # noqa: FBT001, FBT002 - as documented
        after: str | None = None,
    ) -> list[ChannelMessage]:
        """Claim up to `limit` messages, the oldest first, or without `exclusive` look at them and touch nothing. Never waits.

        Looking begins behind the message with the id `after`, if it still waits; a claim ignores it.
        """
        await self._authorize("read", reader_id)
        if limit == 0:
            return []  # A worker without a free seat may ask, too.
        if not exclusive:
            return await self._look(limit, after)
        max_attempts, dead_letter = self._budget
        command = Claim(self.id, reader_id, self.claim_timeout, limit, max_attempts=max_attempts, dead_letter=dead_letter)
        messages = await claim_now(self.client.async_store, command)
        for message in messages:
            self._forget_ended(message.since)
            self._held[message.id] = reader_id, message
        return [self._form.decode(message) for message in messages]

    async def acknowledge(self, reader_id: str, message_ids: Iterable[str]) -> Settled:
        """Remove messages that this reader holds: they are done. Those it no longer holds are left alone, and named in the answer."""
        return await self._settle(reader_id, message_ids, "acknowledge")

    async def nack(self, reader_id: str, message_ids: Iterable[str]) -> Settled:
        """Give messages that this reader holds back to their places; it counts as no failure."""
        return await self._settle(reader_id, message_ids, "nack", to="ready", return_to="place")

    async def fail(self, reader_id: str, message_ids: Iterable[str], *, error: str | None = None, delay: float = 0.0) -> Settled:
        """Give messages back as failed, not before `delay` seconds: to be tried again, or where the budget is spent to the dead letters."""
        max_attempts, dead_letter = self._budget
        how = {"to": "ready", "counts": True, "error": error, "delay_s": delay, "max_attempts": max_attempts, "dead_letter": dead_letter}
        return await self._settle(reader_id, message_ids, "fail", **how)

    async def dead_letters(self) -> list[ChannelMessage]:
        """The messages whose budget is spent, where no channel was named for them."""
        return [self._form.decode(m) async for page in pages(self.client.async_store, self.id, "dead") for m in page.messages]

    async def subscribe(self, system_id: str, callback: Callback) -> None:
        """Let the callback be awaited with each message that is written through this object; what it raises is logged."""
        await self._authorize("read", system_id)
        self._store.subscribers[system_id] = callback

    async def unsubscribe(self, system_id: str) -> None:
        """Tell no more."""
        self._store.subscribers.pop(system_id, None)

    async def clear(self, filter_fn: Callable[[ChannelMessage], bool] | None = None) -> None:
        """Remove every message, claimed ones too, or those that the filter picks among the unclaimed ones."""
        if filter_fn is None:
            await self.client.async_store.execute(Clear("queue", self.id))
            self._held.clear()
        else:
            await self.remove([message.id for message in await self._waiting() if filter_fn(message)])

    async def evict(self, before: float | None = None, max_count: int | None = None) -> None:
        """Remove unclaimed messages that were written before a moment, then the oldest beyond `max_count`."""
        waiting = sorted(await self._waiting(), key=lambda message: message.timestamp)
        old = [message.id for message in waiting if before is not None and message.timestamp < before]
        young = waiting[len(old) :]
        excess = [] if max_count is None else young[: max(0, len(young) - max_count)]
        await self.remove(old + [message.id for message in excess])

    async def remove(self, message_ids: Iterable[str]) -> None:
        """Remove messages that are not claimed."""
        ids = list(message_ids)
        if ids:
            await move_all(self.client.async_store, Move(self.id, "gone", ids))

    async def on_maintain(self) -> None:
        """Remove what is older or more than the retention allows; call it as often as suits you."""
        before = None if self.retention_max_age is None else wall_s() - self.retention_max_age
        await self.evict(before, self.retention_max_count)

    def _message(self, sender_id: str, data: Any) -> ChannelMessage:
        content = data if isinstance(data, MessageContent) else GenericContent(data=data)
        return ChannelMessage(id=new_id(), timestamp=wall_s(), sender_id=sender_id, content=content)

    def begin_in_child(self) -> None:
        """Go on in a forked child: what was claimed before belongs to the parent."""
        self._held.clear()

    def _forget_ended(self, now: int) -> None:
        """Forget claims whose time is up, from time to time: settling them would change nothing."""
        if len(self._held) >= self._forget_at:
            self._held = {one: claim for one, claim in self._held.items() if claim[1].until > now}
            self._forget_at = max(FORGET_MIN, 2 * len(self._held))

    async def _authorize(self, right: str, system_id: str) -> None:
        if self.security is not None and not await getattr(self.security, f"authorize_{right}")(system_id, self.id):
            raise PermissionError(f"{system_id!r} may not {right} channel {self.id!r}")

    async def _tell(self, message: ChannelMessage) -> None:
        callbacks = list(self._store.subscribers.values())
        if self.db_client is not None:
            callbacks.insert(0, self.db_client.save)
        for callback in callbacks:
            try:
                await callback(message)
            except Exception:  # noqa: BLE001 - it is foreign code, and the message is stored
                _log.exception("channel %s: message %s was written, and telling %r of it failed", self.id, message.id, callback)

    async def _look(self, limit: int, after: str | None) -> list[ChannelMessage]:
        waiting = await self._waiting()
        known = [message.id for message in waiting]
        first = known.index(after) + 1 if after in known else 0
        return waiting[first : first + limit]

    async def _waiting(self) -> list[ChannelMessage]:
        """The messages that are not claimed, in order."""
        found = list[Message]()
        for state in ("ready", "leased"):
            async for page in pages(self.client.async_store, self.id, state):
                found += [message for message in page.messages if not message.held_at(page.now)]
        return [self._form.decode(message) for message in sorted(found, key=lambda message: message.order)]

    async def _settle(self, reader_id: str, message_ids: Iterable[str], what: str, **how: Any) -> Settled:
        ids = list(dict.fromkeys(message_ids))
        ours = {one: claim for one in ids if (claim := self._held.get(one)) is not None and claim[0] == reader_id}
        held = list[bool]()
        if ours:
            held = (await self.client.async_store.execute(Settle([message.receipt for _, message in ours.values()], **how))).held
        for one, claim in ours.items():
            # Unless somebody has claimed it again meanwhile.
            if self._held.get(one) is claim:
                del self._held[one]
        settled = {one for one, was_held in zip(ours, held, strict=True) if was_held}
        lost = tuple(one for one in ids if one not in settled)
        if lost:
            _log.warning("channel %s: %s of %s by %r changed nothing: it no longer holds them", self.id, what, ", ".join(lost), reader_id)
        return Settled(len(settled), lost)
