"""LeasedKeyQueue: put items under keys, lease them in order or by key, settle them."""

from collections.abc import Callable, Hashable
from numbers import Real
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NoReturn, Self, TypeVar

from holdfast._async.flows.browsing import give_back, pages
from holdfast._async.flows.claiming import claim
from holdfast._async.flows.closing import AsyncClosable
from holdfast._async.flows.putting import put
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON, Codec, check_duration, check_name
from holdfast.commands import Browse, Claim, Command, Configure, Count, Extend, Item, Put, Settle
from holdfast.commands.argument_checks import check_budget
from holdfast.commands.settling import Held as WasHeld
from holdfast.errors import Closed, KeyInFlight
from holdfast.holding.hold import this_process
from holdfast.ids import new_id
from holdfast.process import forks
from holdfast.records import NEVER, Message, Receipt, ReturnTo, seconds_in
from holdfast.surfaces.leasedkeyq.errors import (
    InvalidLeaseError,
    KeyAlreadyInFlightError,
    LeaseAlreadyAcknowledgedError,
    QueueClosedError,
)
from holdfast.surfaces.leasedkeyq.forms import ByReference, Encoded, Form
from holdfast.surfaces.leasedkeyq.lease import Lease, LeaseRecord
from holdfast.surfaces.opening import client_of, is_by_reference

if TYPE_CHECKING:
    from holdfast.stores import Store

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

InFlightPolicy = Literal["update", "reject", "buffer"]

POLICIES: Final = ("update", "reject", "buffer")
FOREVER: Final = float("inf")


class LeasedKeyQueue(Generic[K, V]):
    """A queue of items under keys, first in first out, for the tasks of any event loops and threads.

    A key has at most one item, and one more that waits behind it while it is leased (`buffer`). Leases have no end unless
    `default_lease_timeout` or a call says so; an item whose lease ended goes to the front again. `max_attempts` ends that: after so many
    expiries and fails an item is a dead letter, and moves to `dead_letter_queue` if there is one. With `max_size` a put waits for room.

    `store` is a URL, a client or an open store, and `name` the queue there. Closing the queue ends what this object waits for and gives
    back what was leased through it; the store stays open.
    """

    def __init__(
        self,
        *,
        default_lease_timeout: float | None = None,
        store: "str | ControlPlaneClient | Store | None" = None,
        name: str | None = None,
        codec: Codec = JSON,
        max_size: int | None = None,
        max_attempts: int | None = None,
        dead_letter_queue: str | None = None,
    ) -> None:
        # Among stores that nobody shares the name tells leases apart.
        self.name: str = check_name((f"leasedkeyq-{new_id()}" if store is None else "leasedkeyq") if name is None else name, "queue")
        self._lease_s = lease_s_of(default_lease_timeout, None, "default_lease_timeout")
        self.client: ControlPlaneClient = client_of(store)
        """What reaches the store; closing it, `await queue.client.aio.close()`, closes the store for everyone who shares it."""
        by_reference = is_by_reference(self.client)
        self._form: Form = ByReference() if by_reference else Encoded(codec)
        self._store = AsyncClosable(self.client.async_store, f"queue {self.name!r} was closed: make a new one")
        self._holder = new_holder()
        forks.look_after(self)
        check_budget(max_attempts, dead_letter_queue)
        self._budget = max_attempts, dead_letter_queue
        self._max_size = max_size
        # In their simplest cases some stores spare us the commands; each of these answers None where it does not.
        fast = self.client.store.fast(self.name) if by_reference else None
        if store is None:
            # Nobody else does it, and so the first put is like every other.
            self.client.store.execute(Configure("queue", self.name))
        self._put_now: Callable[..., Any] = fast.put if fast else not_now
        self._claim_now: Callable[..., Message | None] = fast.claim if fast else not_now
        self._ack_now: Callable[..., bool | None] = fast.ack if fast else not_now
        self._release_now: Callable[..., bool | None] = fast.release if fast else not_now
        self._sizes_now: Callable[[], tuple[int, int] | None] = fast.sizes if fast else not_now

    async def start(self) -> None:
        """Prepare the queue, as the first put would. Nothing has to run in the background."""
        self._refuse_if_closed()
        await self._limit()

    async def close(self) -> None:
        """End all waits with `QueueClosedError`, and give back the items leased through this object. Idempotent."""
        if self._store.is_ended:
            return
        self._put_now = self._claim_now = self._ack_now = self._release_now = self._refuse
        self._store.end()
        await give_back(self._store, self.name, self._holder)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def put(self, key: K, value: V, *, if_in_flight: InFlightPolicy = "update", timeout: float | None = None) -> None:
        """Add an item, or give the one that waits under the key a new value.

        While the key is leased, `update` changes what a release or an expiry brings back, `reject` raises `KeyAlreadyInFlightError`, and
        `buffer` lets a second item wait until the first is settled. Into a full queue it waits for room, `timeout` seconds in all or
        without one for ever; then it raises `QueueFull`.
        """
        if if_in_flight != "update" and if_in_flight not in POLICIES:
            raise ValueError(f"if_in_flight must be one of {', '.join(map(repr, POLICIES))}, not {if_in_flight!r}")
        wait_s = FOREVER if timeout is None else wait_s_of(timeout)
        put_now = self._put_now
        if key is None or put_now(key, value) is None:
            await self._put(key, value, if_in_flight, wait_s)

    async def get(self, timeout: float | None = None, *, lease_timeout: float | None = None) -> tuple[K, V, Lease[K]]:
        """Lease the first item; wait for one, `timeout` seconds in all or without one for ever. Raises `TimeoutError`."""
        lease_s = self._lease_s if lease_timeout is None else lease_s_of(lease_timeout, None)
        wait_s = FOREVER if timeout is None else wait_s_of(timeout)
        claim_now = self._claim_now
        message = claim_now(None, self._holder, lease_s, "front")
        return self._handed(await self._claim(None, wait_s, lease_s) if message is None else message)

    async def take(self, key: K, timeout: float | None = None, *, lease_timeout: float | None = None) -> tuple[K, V, Lease[K]]:
        """Lease the item under the key, wherever it stands; wait for it as `get` does. Raises `TimeoutError`."""
        lease_s = self._lease_s if lease_timeout is None else lease_s_of(lease_timeout, None)
        wait_s = FOREVER if timeout is None else wait_s_of(timeout)
        claim_now = self._claim_now
        message = None if key is None else claim_now(key, self._holder, lease_s, "front")
        return self._handed(await self._claim(self._form.key_in(key), wait_s, lease_s) if message is None else message)

    async def ack(self, lease: Lease[K]) -> None:
        """Remove the item: it is done. Raises `LeaseAlreadyAcknowledgedError` or `InvalidLeaseError`."""
        held, ack_now = lease.held, self._ack_now
        if held is not None and held.holder in _of_parents:
            raise inherited(lease)
        if held is None or not ack_now(held):
            await self._settle(lease, Settle([self._receipt(lease)]))
        lease.ended = "acknowledged"

    async def release(self, lease: Lease[K], *, requeue_front: bool = False) -> None:
        """Give the item back, to the back of the line or to its front. Raises `LeaseAlreadyAcknowledgedError` or `InvalidLeaseError`."""
        held, release_now = lease.held, self._release_now
        if held is not None and held.holder in _of_parents:
            raise inherited(lease)
        return_to: ReturnTo = "front" if requeue_front else "back"
        if held is None or not release_now(held, return_to):
            await self._settle(lease, Settle([self._receipt(lease)], "ready", return_to))
        lease.ended = "released"

    async def fail(self, lease: Lease[K], error: str | None = None) -> None:
        """Give the item back as failed: to the back, or where its budget is spent to the dead letters. Raises as `release` does."""
        max_attempts, dead_letter = self._budget
        command = Settle([self._receipt(lease)], "ready", "back", 0.0, error, True, max_attempts, dead_letter)  # noqa: FBT003 - it counts
        await self._settle(lease, command)
        lease.ended = "released"

    async def renew(self, lease: Lease[K], lease_timeout: float | None = None) -> None:
        """Keep the lease from now on for so many seconds, by default the queue's. Raises as `release` does."""
        await self._settle(lease, Extend([self._receipt(lease)], lease_s_of(lease_timeout, self._lease_s)))

    async def peek(self, key: K) -> V | None:
        """The value that waits under the key, None if none does."""
        found = await self._waiting(key)
        return None if found is None else self._form.value_out(found.value)

    async def contains(self, key: K) -> bool:
        """Whether an item waits under the key."""
        return await self._waiting(key) is not None

    async def available_keys(self) -> set[K]:
        """The keys of the items that wait."""
        keys = set[K]()
        for state in STATES:
            async for page in pages(self._store, self.name, state):
                keys.update(self._form.key_out(message.key) for message in page.messages if not message.held_at(page.now))
        return keys

    async def inflight_keys(self) -> set[K]:
        """The keys of the items that are leased, by whomever."""
        return {record.key for record in await self.inflight()}

    async def inflight(self) -> list[LeaseRecord[K, V]]:
        """The items that are leased, by whomever, those whose lease ends first in front."""
        records = list[LeaseRecord[K, V]]()
        async for page in pages(self._store, self.name, "leased"):
            now = monotonic()
            for message in page.messages:
                if message.held_at(page.now):
                    key, value, lease = self._handed(message)
                    timeout = None if message.until >= NEVER else seconds_in(message.until - message.since)
                    created_at = now - seconds_in(page.now - message.since)
                    records.append(LeaseRecord(lease, key, value, created_at=created_at, timeout=timeout))
        return records

    async def qsize(self) -> int:
        """How many items wait."""
        waiting, _ = await self._sizes()
        return waiting

    async def inflight_size(self) -> int:
        """How many items are leased, by whomever."""
        _, leased = await self._sizes()
        return leased

    async def _put(self, key: K, value: V, if_in_flight: InFlightPolicy, wait_s: float) -> None:
        self._refuse_if_closed()
        await self._limit()
        item = Item(new_id(), self._form.value_in(value), self._form.key_in(key), "update", if_in_flight)
        try:
            await put(self._store, Put(self.name, [item]), wait_s)
        except KeyInFlight as error:
            raise KeyAlreadyInFlightError(f"key {key!r} is in flight, and the policy of this put is reject") from error
        except Closed as error:
            raise self._closed() from error

    async def _claim(self, key: Any, wait_s: float, lease_s: float | None) -> Message:
        self._refuse_if_closed()
        max_attempts, dead_letter = self._budget
        command = Claim(self.name, self._holder, lease_s, key=key, expired_to="front", max_attempts=max_attempts, dead_letter=dead_letter)
        try:
            messages = await claim(self._store, command, wait_s)
        except Closed as error:
            raise self._closed() from error
        if not messages:
            raise TimeoutError(f"nothing came within {wait_s} seconds")
        if self._store.is_ended:
            # Claimed while the queue was being closed, perhaps after it gave everything back.
            await self._store.execute(Settle([messages[0].receipt], "ready", "front"))
            raise self._closed()
        return messages[0]

    def _handed(self, message: Message) -> tuple[K, V, Lease[K]]:
        form = self._form
        key = form.key_out(message.key)
        lease: Lease[K] = Lease("", key, message)
        return key, form.value_out(message.value), lease

    async def _settle(self, lease: Lease[K], command: Command[WasHeld]) -> None:
        """End or renew a lease by its command; raise if it is not held."""
        self._refuse_if_closed()
        if lease.ended == "acknowledged":
            raise LeaseAlreadyAcknowledgedError(f"the lease on {lease.key!r} was acknowledged before")
        if not (await self._store.execute(command)).held[0]:
            raise InvalidLeaseError(
                f"the lease on {lease.key!r} is not held: it ended, was released, or is of another queue; take the key again"
            )

    def _receipt(self, lease: Lease[K]) -> Receipt:
        if lease.held is not None and lease.held.holder in _of_parents:
            raise inherited(lease)
        try:
            receipt = Receipt.parse(lease.token)
        except ValueError as error:
            raise InvalidLeaseError(f"{lease!r} is not a lease that a queue gave out") from error
        if receipt.queue != self.name:
            raise InvalidLeaseError(f"{lease!r} is of queue {receipt.queue!r}: settle it there")
        return receipt

    async def _waiting(self, key: K) -> Message | None:
        """The item under a key that is not held; of two, the one whose turn comes first."""
        page = await self._store.execute(Browse(self.name, keys=[self._form.key_in(key)]))
        return next((message for message in page.messages if not message.held_at(page.now)), None)

    async def _sizes(self) -> tuple[int, int]:
        known = self._sizes_now()
        if known is not None:
            return known
        stats = await self._store.execute(Count(self.name))
        return stats.ready + stats.delayed + stats.buffered, stats.leased

    async def _limit(self) -> None:
        """Set `max_size`, once."""
        if self._max_size is not None:
            await self._store.execute(Configure("queue", self.name, maxsize=self._max_size))
            self._max_size = None

    def _refuse_if_closed(self) -> None:
        if self._store.is_ended:
            raise self._closed()

    def begin_in_child(self) -> None:
        """Go on in a forked child: what was leased before belongs to the parent."""
        _of_parents.add(self._holder)
        self._holder = new_holder()

    def _refuse(self, *_: object) -> NoReturn:
        raise self._closed()

    def _closed(self) -> QueueClosedError:
        return QueueClosedError(f"queue {self.name!r} was closed: make a new one")


STATES: Final[tuple[Literal["ready", "buffered", "leased"], ...]] = ("ready", "buffered", "leased")
"""Where items may wait; a leased one does when its lease has ended."""


def not_now(*_: object) -> None:
    """Return nothing: for a store without a fast path of its own."""


def wait_s_of(timeout: float) -> float:
    """How long to wait; what is negative does not wait."""
    return 0.0 if isinstance(timeout, Real) and timeout < 0 else check_duration(timeout, "timeout", allow_inf=True)


def lease_s_of(timeout: float | None, default_s: float | None, what: str = "lease_timeout") -> float | None:
    """How long a lease lasts, None for ever."""
    return default_s if timeout is None else check_duration(timeout, what, zero=False)


def new_holder() -> str:
    """A name that no other queue object has, here or in another process."""
    return f"{this_process()}:{new_id()}"


def inherited(lease: Lease[Any]) -> InvalidLeaseError:
    """What a forked child gets that settles a lease of its parent's."""
    return InvalidLeaseError(f"the lease on {lease.key!r} belongs to the process that this one was forked from: settle it there")


_of_parents: set[str] = set()
"""Under which names the processes that this one was forked from hold leases."""
