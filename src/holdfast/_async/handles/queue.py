"""A queue: put work in, claim it under a lease, settle it."""

import builtins
from collections.abc import AsyncGenerator, Hashable, Iterable, Mapping
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar, Unpack, overload

from msgspec import UNSET, UnsetType

from holdfast._async.flows import browsing
from holdfast._async.flows.claiming import claim_since
from holdfast._async.flows.putting import put
from holdfast._async.flows.settling import renew, settle
from holdfast._async.flows.watching import watch
from holdfast._async.handles.claimed import AsyncQueueClaimContext
from holdfast._async.handles.claims import AsyncQueueClaim
from holdfast._async.handles.work import AsyncQueueWorkItem
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON, Codec, check_duration, check_name, encode_key, key_prefix, typed
from holdfast.commands import Browse, Browsed, Claim, Claimed, Clear, Configure, Count, Filter, Move, Names, Put, Stats
from holdfast.commands.putting import IfLeased, IfReady
from holdfast.holding import Hold
from holdfast.items import IfPresent, ManyOptions, WorkOptions, make_item
from holdfast.reaching import reach
from holdfast.receipts import ClaimLike, Claims, raise_lost
from holdfast.records import ReturnTo, State
from holdfast.results import MISSING, Explanation, MessageId, QueueMessage, QueueResponse, WatchEvent
from holdfast.stores import AsyncStore
from holdfast.twins import QueueTwin
from holdfast.views import explain, seen
from holdfast.watched import QueueSubject, narrowing

T = TypeVar("T")
V = TypeVar("V")


class AsyncQueue(Generic[T]):
    """A queue of messages, first in first out within a priority, delivered at least once.

    A handle is only a name with a client and a type: making one touches nothing, and many may name the same queue. Every method takes
    `client=` or `base_url=`; without them the handle's own is used, else that of `HOLDFAST_URL`, else a SQLite file in the user's data
    folder. Where a call waits, `timeout_s=None` asks once, a number waits so long in all, and `math.inf` for ever; wake-ups are pushed, and
    `poll_interval_s` is the most that a missed one can cost.
    """

    aio: ClassVar[QueueTwin] = QueueTwin()

    name: str

    def __init__(self, name: str, *, codec: Codec = JSON, client: ControlPlaneClient | None = None, base_url: str | None = None) -> None:
        self.name = check_name(name, "queue")
        self._codec = codec
        self._client = client
        self._base_url = base_url

    @overload
    @classmethod
    def from_name(
        cls,
        name: str,
        *,
        type: type[V],
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> "AsyncQueue[V]": ...
    @overload
    @classmethod
    def from_name(
        cls,
        name: str,
        *,
        codec: Codec | None = None,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> "AsyncQueue[Any]": ...
    @classmethod
    def from_name(
        cls,
        name: str,
        *,
        type: Any = None,
        codec: Codec | None = None,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> "AsyncQueue[Any]":
        """Make a handle; nothing is asked of the store, and the first put creates the queue.

        With `type=` (a msgspec Struct, dataclass, pydantic model, …) values must be of it and come back as it; `codec=` is for another
        encoding altogether.
        """
        return AsyncQueue(name, codec=_codec(type, codec), client=client, base_url=base_url)

    @overload
    @classmethod
    async def create(
        cls,
        name: str,
        *,
        type: type[V],
        maxsize: int | UnsetType | None = UNSET,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> "AsyncQueue[V]": ...
    @overload
    @classmethod
    async def create(
        cls,
        name: str,
        *,
        codec: Codec | None = None,
        maxsize: int | UnsetType | None = UNSET,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> "AsyncQueue[Any]": ...
    @classmethod
    async def create(
        cls,
        name: str,
        *,
        type: Any = None,
        codec: Codec | None = None,
        maxsize: int | UnsetType | None = UNSET,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> "AsyncQueue[Any]":
        """Create the queue if it is not there, and make a handle. Never empties it.

        `maxsize` limits how many messages may be ready, those that are delayed too; None lifts the limit, and left out it stays as it is.
        For `type=` and `codec=` see `from_name`.
        """
        queue = AsyncQueue[Any](name, codec=_codec(type, codec), client=client, base_url=base_url)
        await queue.configure(maxsize=maxsize)
        return queue

    async def configure(
        self,
        *,
        maxsize: int | UnsetType | None = UNSET,
        paused: bool | UnsetType = UNSET,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> None:
        """Change what is given; what is left out stays."""
        await self._store(client, base_url).execute(Configure("queue", self.name, paused, maxsize))

    async def pause(self, *, client: ControlPlaneClient | None = None, base_url: str | None = None) -> None:
        """Hand nothing out until `resume`; puts and claims that run go on."""
        await self.configure(paused=True, client=client, base_url=base_url)

    async def resume(self, *, client: ControlPlaneClient | None = None, base_url: str | None = None) -> None:
        """Hand out again."""
        await self.configure(paused=False, client=client, base_url=base_url)

    async def delete(self, *, client: ControlPlaneClient | None = None, base_url: str | None = None) -> QueueResponse:
        """Remove the queue with everything in it, in one step; claims on its messages are lost."""
        return QueueResponse(await self._store(client, base_url).execute(Clear("queue", self.name, drop=True)))

    async def clear(self, *, client: ControlPlaneClient | None = None, base_url: str | None = None) -> QueueResponse:
        """Remove every message, in one step; claims on them are lost."""
        return QueueResponse(await self._store(client, base_url).execute(Clear("queue", self.name)))

    async def length(self, *, client: ControlPlaneClient | None = None, base_url: str | None = None) -> int:
        """How many messages wait: ready, delayed and buffered, not the claimed and the dead."""
        stats = await self.stats(client=client, base_url=base_url)
        return stats.ready + stats.delayed + stats.buffered

    async def stats(self, *, client: ControlPlaneClient | None = None, base_url: str | None = None) -> Stats:
        """Sizes, ages and holders at one moment."""
        return await self._store(client, base_url).execute(Count(self.name))

    async def put(
        self,
        value: T,
        *,
        key: Hashable | None = None,
        if_present: IfPresent | None = None,
        if_ready: IfReady | None = None,
        if_leased: IfLeased | None = None,
        delay_s: float = 0.0,
        at: datetime | None = None,
        priority: int = 0,
        max_attempts: int | None = None,
        dead_letter_queue: str | None = None,
        start_within_s: float | None = None,
        metadata: Mapping[str, Any] | None = None,
        id: str | None = None,
        timeout_s: float | None = None,
        poll_interval_s: float = 0.5,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> MessageId:
        """Add a message; answer its id, whose `created` is false where the put met a message that was there already.

        A `key` names at most one living message. When there is one, `if_ready` says what happens while it waits (`update` it, the default,
        `keep` it, or `reject` the put with `KeyInFlight`) and `if_leased` while it is claimed (the same, or `buffer`, the default: the new
        value waits behind it); `if_present` sets both. `delay_s` or `at`, a moment with time zone, hold it back. Higher `priority` goes
        first. With `max_attempts` it is dead after so many failures and expiries, and goes to `dead_letter_queue` if there is one. If
        nobody has started it `start_within_s` after it was due, it is dropped. `metadata` travels beside the value. A put under an `id`
        that exists changes nothing. Into a full queue it waits for room as `timeout_s` says, then raises `QueueFull`.
        """
        item = make_item(
            value,
            self._codec,
            key=key,
            if_present=if_present,
            if_ready=if_ready,
            if_leased=if_leased,
            delay_s=delay_s,
            at=at,
            priority=priority,
            max_attempts=max_attempts,
            dead_letter_queue=dead_letter_queue,
            start_within_s=start_within_s,
            metadata=metadata,
            id=id,
        )
        puts = await put(self._store(client, base_url), Put(self.name, [item]), timeout_s, poll_interval_s)
        return MessageId(puts.ids[0], created=puts.created[0])

    async def put_many(
        self,
        values: Iterable[T],
        *,
        keys: Iterable[Hashable | None] | None = None,
        timeout_s: float | None = None,
        poll_interval_s: float = 0.5,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
        **options: Unpack[ManyOptions],
    ) -> builtins.list[MessageId]:
        """Add messages, all or none, in this order; the options of `put` hold for each of them, and `keys` gives each its own key."""
        values = [*values]
        each = [None] * len(values) if keys is None else [*keys]
        items = [make_item(value, self._codec, key=key, **options) for value, key in zip(values, each, strict=True)]
        if not items:
            return []
        puts = await put(self._store(client, base_url), Put(self.name, items), timeout_s, poll_interval_s)
        return [MessageId(message_id, created=created) for message_id, created in zip(puts.ids, puts.created, strict=True)]

    async def put_work(
        self,
        value: T,
        *,
        max_attempts: int | None = 3,
        dead_letter_queue: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
        **options: Unpack[WorkOptions],
    ) -> MessageId:
        """Add a message with a retry budget; otherwise as `put`, with the same options."""
        return await self.put(
            value,
            max_attempts=max_attempts,
            dead_letter_queue=dead_letter_queue,
            metadata=metadata,
            client=client,
            base_url=base_url,
            **options,
        )

    async def get(
        self,
        *,
        default: Any = None,
        timeout_s: float | None = None,
        poll_interval_s: float = 1.0,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> T | Any:
        """Remove the first message and answer its value, `default` when nothing came. At most once: whoever dies with it has lost it."""
        values = await self._take(1, timeout_s, poll_interval_s, client, base_url)
        return values[0] if values else default

    async def get_many(
        self,
        limit: int,
        *,
        timeout_s: float | None = None,
        poll_interval_s: float = 0.5,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> builtins.list[T]:
        """Remove up to `limit` messages and answer their values, as soon as there is one; [] when nothing came."""
        return await self._take(limit, timeout_s, poll_interval_s, client, base_url)

    async def claim(
        self,
        *,
        claimer: str,
        lease_s: float = 60.0,
        timeout_s: float | None = None,
        poll_interval_s: float = 0.5,
        expired_to: ReturnTo = "place",
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> AsyncQueueClaim[T] | None:
        """Claim the first message for `lease_s`, None when nothing came. Until then nobody else gets it; settle it, or renew it in time.

        If the lease ends first, the message goes back to its place, or where `expired_to` says.
        """
        command = Claim(self.name, check_name(claimer, "claimer"), lease_s, expired_to=expired_to)
        claims = await self._claim(command, timeout_s, poll_interval_s, client, base_url)
        return claims[0] if claims else None

    async def claim_many(
        self,
        limit: int,
        *,
        claimer: str,
        lease_s: float = 60.0,
        timeout_s: float | None = None,
        poll_interval_s: float = 0.5,
        expired_to: ReturnTo = "place",
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> builtins.list[AsyncQueueClaim[T]]:
        """Claim up to `limit` messages in one step, as soon as there is one; [] when nothing came."""
        command = Claim(self.name, check_name(claimer, "claimer"), lease_s, limit, expired_to=expired_to)
        return await self._claim(command, timeout_s, poll_interval_s, client, base_url)

    async def take(
        self,
        key: Hashable,
        *,
        claimer: str,
        lease_s: float = 60.0,
        timeout_s: float | None = None,
        poll_interval_s: float = 0.5,
        expired_to: ReturnTo = "place",
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> AsyncQueueClaim[T] | None:
        """Claim the message under this key, wherever it stands in the line; None when there is none to be had."""
        command = Claim(self.name, check_name(claimer, "claimer"), lease_s, key=encode_key(key), expired_to=expired_to)
        claims = await self._claim(command, timeout_s, poll_interval_s, client, base_url)
        return claims[0] if claims else None

    def claimed(
        self,
        *,
        claimer: str,
        lease_s: float = 60.0,
        timeout_s: float | None = None,
        poll_interval_s: float = 0.5,
        auto_renew: bool = True,
        renew_interval_s: float | None = None,
        ack_on_success: bool = True,
        release_on_error: bool = True,
        max_hold_s: float | None = None,
        expired_to: ReturnTo = "place",
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> AsyncQueueClaimContext[T]:
        """Claim a message for the body of a `with`, which gets its value, or None when nothing came.

        While the body runs the claim is renewed, by a thread of its own and for at most `max_hold_s`. A body that ends acknowledges the
        message; one that raises gives it back and counts as a failure of it; a cancelled or interrupted one gives it back and burns
        nothing. If the claim is lost meanwhile, an async body is cancelled, a sync one can look at `context.claim.lost`, and leaving raises
        `ClaimLost`.
        """
        return AsyncQueueClaimContext(
            reach(client, base_url, self._client, self._base_url),
            Claim(self.name, check_name(claimer, "claimer"), lease_s, expired_to=expired_to),
            self._codec,
            timeout_s=_patience(timeout_s),
            poll_s=_poll(poll_interval_s),
            auto_renew=auto_renew,
            renew_interval_s=renew_interval_s,
            max_hold_s=max_hold_s,
            ack_on_success=ack_on_success,
            release_on_error=release_on_error,
        )

    async def claim_work(
        self,
        *,
        claimer: str,
        lease_s: float = 60.0,
        timeout_s: float | None = None,
        poll_interval_s: float = 0.5,
        dead_letter_queue: str | None = None,
        max_attempts: int | None = None,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> AsyncQueueWorkItem[T] | None:
        """Claim a message as a work item, None when nothing came; `max_attempts` and `dead_letter_queue` are for messages without."""
        command = Claim(
            self.name, check_name(claimer, "claimer"), lease_s, max_attempts=max_attempts, dead_letter=self._other(dead_letter_queue)
        )
        claims = await self._claim(command, timeout_s, poll_interval_s, client, base_url)
        return AsyncQueueWorkItem(claims[0], max_attempts, dead_letter_queue) if claims else None

    async def ack(
        self, claims: Claims, *, strict: bool = True, client: ControlPlaneClient | None = None, base_url: str | None = None
    ) -> QueueResponse:
        """Remove claimed messages: they are done.

        Raises `ClaimLost` if any claim is no longer held, after settling the others; with `strict=False` the answer counts them instead.
        """
        response = await settle(reach(client, base_url, self._client, self._base_url), claims, self.name)
        return raise_lost(response) if strict else response

    async def release(
        self,
        claims: Claims,
        *,
        return_to: ReturnTo = "back",
        delay_s: float = 0.0,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> QueueResponse:
        """Give claimed messages back, to the back of the line or where `return_to` says, not before `delay_s`; burns no attempt.

        A claim that is no longer held raises nothing: it is in the answer's `lost`.
        """
        reached = reach(client, base_url, self._client, self._base_url)
        return await settle(reached, claims, self.name, to="ready", return_to=return_to, delay_s=delay_s)

    async def renew(
        self,
        claims: Claims,
        *,
        lease_s: float,
        strict: bool = True,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> QueueResponse:
        """Keep claims from now on for `lease_s`.

        Raises `ClaimLost` if any is no longer held, after renewing the others; with `strict=False` the answer counts them instead.
        """
        response = await renew(reach(client, base_url, self._client, self._base_url), claims, self.name, lease_s)
        return raise_lost(response) if strict else response

    async def fail(
        self,
        claims: Claims,
        *,
        error: str | None = None,
        delay_s: float = 0.0,
        max_attempts: int | None = None,
        dead_letter_queue: str | None = None,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> QueueResponse:
        """Give claimed messages back as failed: to the back of the line, or, where a budget is spent, to the dead letters.

        `max_attempts` and `dead_letter_queue` are for messages without. A claim that is no longer held raises nothing: it is in the
        answer's `lost`.
        """
        return await settle(
            reach(client, base_url, self._client, self._base_url),
            claims,
            self.name,
            to="ready",
            counts=True,
            error=error,
            delay_s=delay_s,
            max_attempts=max_attempts,
            dead_letter=self._other(dead_letter_queue),
        )

    async def bury(
        self,
        claims: Claims,
        *,
        error: str | None = None,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> QueueResponse:
        """Make claimed messages dead letters at once, whatever their budget. One no longer held is in the answer's `lost`."""
        reached = reach(client, base_url, self._client, self._base_url)
        return await settle(reached, claims, self.name, to="dead", counts=True, error=error)

    async def peek(self, *, client: ControlPlaneClient | None = None, base_url: str | None = None) -> QueueMessage | None:
        """Look at the first message that is ready and due, without touching it."""
        store = self._store(client, base_url)
        async for page in browsing.pages(store, self.name, "ready"):
            due = [message for message in page.messages if message.position <= page.now and not message.is_late(page.now)]
            if due:
                return seen(due[0], self._codec, page.now, store.wall_offset_us())
        return None

    async def browse(
        self,
        *,
        state: State = "ready",
        older_than_s: float | None = None,
        error_contains: str | None = None,
        prefix: str | tuple[Hashable, ...] | None = None,
        after: QueueMessage | None = None,
        limit: int = 100,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> builtins.list[QueueMessage]:
        """Look at messages of one state without touching them: `ready` in line, `leased` by lease end, `dead` by burial, `buffered` by key.

        `older_than_s` counts from the burial of a dead letter and from the put of any other; `prefix` is of their keys. For the next page
        give the last message as `after`.
        """
        which = _which(older_than_s, error_contains, prefix)
        command = Browse(self.name, state=state, which=which, after=after.cursor if after else None, limit=limit)
        store = self._store(client, base_url)
        return self._seen(await store.execute(command), store)

    async def explain(
        self, message: str | QueueMessage | ClaimLike, *, client: ControlPlaneClient | None = None, base_url: str | None = None
    ) -> Explanation:
        """Say why a message, given itself or by its id, is not running: claimed by whom, delayed until when, dead because of what."""
        store = self._store(client, base_url)
        message_id = str(message) if isinstance(message, str) else message.id
        found = await store.execute(Browse(self.name, ids=[message_id]))
        keys = [one.key for one in found.messages if one.state == "buffered" and isinstance(one.key, str)]
        first = await store.execute(Browse(self.name, state="leased", which=Filter(key_prefix=keys[0]))) if keys else Browsed([])
        named = await store.execute(Names("queue", self.name, limit=1))
        settings = next((one for one in named.settings if one.name == self.name), None)
        return explain(found, first.messages, settings, message_id, store.wall_offset_us())

    async def cancel(
        self,
        ids: str | Iterable[str] | None = None,
        *,
        state: State = "ready",
        older_than_s: float | None = None,
        error_contains: str | None = None,
        prefix: str | tuple[Hashable, ...] | None = None,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> QueueResponse:
        """Remove messages that nobody holds, by id, or all of one state that a filter finds; the answer counts them."""
        which = _which(older_than_s, error_contains, prefix)
        if ids is None and which == Filter():
            raise ValueError("cancel needs ids or a filter: clear() empties the queue")
        return await self._move(Move(self.name, "gone", _ids(ids), state, which), client, base_url)

    async def dead_letters(
        self,
        *,
        older_than_s: float | None = None,
        error_contains: str | None = None,
        after: QueueMessage | None = None,
        limit: int = 100,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> builtins.list[QueueMessage]:
        """Look at the dead messages of this queue, the longest dead first; page as with `browse`."""
        return await self.browse(
            state="dead",
            older_than_s=older_than_s,
            error_contains=error_contains,
            after=after,
            limit=limit,
            client=client,
            base_url=base_url,
        )

    async def redrive(
        self,
        ids: str | Iterable[str] | None = None,
        *,
        rate_per_s: float | None = None,
        delay_s: float = 0.0,
        to: str | None = None,
        older_than_s: float | None = None,
        error_contains: str | None = None,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> QueueResponse:
        """Give dead letters another chance, all or those named: same id, to the back of the line, a fresh budget.

        `rate_per_s` spaces them out from `delay_s` on. With `to=`, the name of another queue, this one is a dead-letter queue: its waiting
        messages go there. One stays where it is whose key, or id, is taken there; the answer counts those that went.
        """
        if rate_per_s is not None and not rate_per_s > 0:
            raise ValueError(f"rate_per_s is {rate_per_s}: give more than 0")
        move = Move(
            self.name,
            "ready",
            _ids(ids),
            "dead" if self._other(to) is None else "ready",
            _which(older_than_s, error_contains, None),
            to_queue=to,
            delay_s=delay_s,
            spacing_s=0.0 if rate_per_s is None else 1 / rate_per_s,
        )
        return await self._move(move, client, base_url)

    async def prune_dead_letters(
        self, older_than_s: float, *, client: ControlPlaneClient | None = None, base_url: str | None = None
    ) -> QueueResponse:
        """Remove the messages that have been dead for longer; the answer counts them."""
        check_duration(older_than_s, "older_than_s")
        return await self._move(Move(self.name, "gone", None, "dead", Filter(older_than_s)), client, base_url)

    def watch(
        self,
        *,
        key: Hashable | None = None,
        prefix: str | tuple[Hashable, ...] | None = None,
        last_index: int = -1,
        timeout_s: float | None = None,
        poll_interval_s: float = 0.5,
        snapshot: bool = False,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Follow what happens in the queue: which messages were put, claimed, settled, expired, buried, moved.

        With `key` or `prefix` only those with that key, or with a key under the prefix, are told of.

        Begins after `last_index`, -1 being the oldest event that is still there; with `snapshot` an event `snapshot` for each message comes
        first, then `synced`. Ends when nothing came for `timeout_s`; None follows for ever, 0.0 gives what is there. Raises `Compacted`
        when the events asked for are gone.
        """
        return watch(
            self._store(client, base_url),
            QueueSubject(self.name, self._codec, *narrowing(MISSING if key is None else key, prefix)),
            last_index=last_index,
            timeout_s=timeout_s,
            poll_s=poll_interval_s,
            snapshot=snapshot,
        )

    @classmethod
    async def list(
        cls, *, prefix: str = "", client: ControlPlaneClient | None = None, base_url: str | None = None
    ) -> "builtins.list[AsyncQueue[Any]]":
        """Make a handle for each queue there is, in order of their names."""
        store = reach(client, base_url).async_store
        page = await store.execute(Names("queue", prefix))
        names = [one.name for one in page.settings]
        while page.more:
            page = await store.execute(Names("queue", prefix, names[-1]))
            names += [one.name for one in page.settings]
        return [AsyncQueue(name, client=client, base_url=base_url) for name in names]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def _store(self, client: ControlPlaneClient | None, base_url: str | None) -> AsyncStore:
        return reach(client, base_url, self._client, self._base_url).async_store

    async def _take(
        self, limit: int, timeout_s: float | None, poll_s: float, client: ControlPlaneClient | None, base_url: str | None
    ) -> builtins.list[T]:
        store, command = self._store(client, base_url), Claim(self.name, limit=limit, take=True)
        messages, _ = await claim_since(store, command, _patience(timeout_s), _poll(poll_s))
        try:
            return [self._codec.decode(message.value) for message in messages]
        except ValueError:
            # What does not fit the type must not be gone: it goes back, for whoever can read it.
            back = command.undo(Claimed(messages))
            if back is not None:
                await store.execute(back)
            raise

    async def _claim(
        self, command: Claim, timeout_s: float | None, poll_s: float, client: ControlPlaneClient | None, base_url: str | None
    ) -> builtins.list[AsyncQueueClaim[T]]:
        reached = reach(client, base_url, self._client, self._base_url)
        now = reached.keepalive.now
        messages, started = await claim_since(reached.async_store, command, _patience(timeout_s), _poll(poll_s), now)
        return [
            AsyncQueueClaim(message, self._codec, reached, Hold(message.receipt, command.lease_s, started, now, auto_renew=False))
            for message in messages
        ]

    async def _move(self, move: Move, client: ControlPlaneClient | None, base_url: str | None) -> QueueResponse:
        return QueueResponse(await browsing.move_all(self._store(client, base_url), move))

    def _seen(self, page: Browsed, store: AsyncStore) -> builtins.list[QueueMessage]:
        offset_us = store.wall_offset_us()
        return [seen(message, self._codec, page.now, offset_us) for message in page.messages]

    def _other(self, queue: str | None) -> str | None:
        if queue == self.name:
            raise ValueError(f"queue {self.name!r} cannot be its own dead-letter queue: name another")
        return queue


def _codec(type: Any, codec: Codec | None) -> Codec:
    if type is not None and codec is not None:
        raise ValueError("give type= or codec=, not both")
    return (codec or JSON) if type is None else typed(type)


def _ids(ids: str | Iterable[str] | None) -> builtins.list[str] | None:
    # Plain text of a MessageId: that is what stores take.
    return ids if ids is None else [str(ids)] if isinstance(ids, str) else [str(one) for one in ids]


def _which(older_than_s: float | None, error_contains: str | None, prefix: str | tuple[Hashable, ...] | None) -> Filter:
    return Filter(older_than_s, error_contains, None if prefix is None else key_prefix(prefix))


def _patience(timeout_s: float | None) -> float | None:
    return None if timeout_s is None else check_duration(timeout_s, "timeout_s", allow_inf=True)


def _poll(poll_interval_s: float) -> float:
    return check_duration(poll_interval_s, "poll_interval_s", zero=False, allow_inf=True)
