"""The contract of a store: it executes commands, and lets callers wait until asking again may be worth it.

A flow takes a mark, executes a command, and waits on the mark when there was nothing:

    with store.mark(topic) as mark:
        while not (claimed := store.execute(claim)).messages:
            store.wait(mark, timeout_s, claimed.due_in_s)
        mark.used()

The mark comes before the question, so no wake-up is lost in between. A wake-up carries nothing but a hint; one that comes for nothing
does no harm, and a slow poll covers one that is missed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from msgspec import Struct

from holdfast.errors import StoreError

if TYPE_CHECKING:
    from holdfast.codec import Limits
    from holdfast.commands import Command
    from holdfast.records import Message, ReturnTo
    from holdfast.stores.waiting.waiters import Mark, Waiters

R = TypeVar("R")


class Guarantees(Struct, frozen=True):
    """What a store promises beyond what all of them do."""

    survives: Literal["nothing", "process", "power"]
    """What an acknowledged command outlives: not even the process, its death, or a loss of power."""
    shared_by: Literal["threads", "processes", "hosts"]
    clock: str
    """Whose clock ends leases."""
    engine: str
    """The engine underneath, with its version."""
    settings: dict[str, str] = {}
    """The engine's own settings that the promises follow from, where it has any."""


class Executor(Protocol):
    """What carries commands out: a store, or a transaction of the caller's own in one."""

    def execute(self, command: "Command[R]") -> R:
        """Apply the command, all or nothing."""
        ...


class AsyncExecutor(Protocol):
    """What carries commands out, for tasks."""

    async def execute(self, command: "Command[R]") -> R:
        """Apply the command, all or nothing."""
        ...


class Renewer(Protocol):
    """What the keepalive renews through, from one thread: connections of its own, so that no other call can hold a renewal up."""

    def execute(self, command: "Command[R]", timeout_s: float) -> R:
        """Try the command once, for at most `timeout_s` from the first byte of a new connection to the answer.

        Raises `StoreUnavailable` or `OutcomeUnknown` when there is no answer in time, and never uses that connection again: the caller
        decides when to try again, and the next try opens a new connection. A renewal may arrive twice without harm.
        """
        ...

    def close(self) -> None:
        """Close its connections, without waiting for a server that is silent."""
        ...


class FastQueue(Struct, frozen=True):
    """The steps of one queue. A caller tries these first, and sends the command when the result is None."""

    put: Callable[..., bool | None]
    """(key, value, id, priority, delay, item): a new message. Without an id it has its number; `item` is given where it says more."""
    claim: "Callable[[Any, str, float | None, ReturnTo], Message | None]"
    """(key or None, holder, lease_s, expired_to): the first message that is due, or the one under the key."""
    ack: "Callable[[Message], bool | None]"
    """(the message as it was claimed): while it is the one that is kept, nothing has happened to it since."""
    release: "Callable[[Message, ReturnTo], bool | None]"
    """(the message as it was claimed, return_to)."""
    sizes: Callable[[], tuple[int, int] | None]
    """How many messages wait, buffered ones too, and how many are leased."""


class Store(Protocol):
    """A store, for threads; what few stores need is in `StoreDefaults`."""

    limits: "Limits"
    by_reference: bool
    """Whether keys and values are the caller's own objects, as they can be in memory only."""
    is_on_connection: bool
    """Whether it works on a connection of the caller's own, which no other thread may use."""

    @property
    def url(self) -> str:
        """Where it is, without a password."""
        ...

    @property
    def waiters(self) -> "Waiters":
        """Everyone in this process who waits on it."""
        ...

    @property
    def guarantees(self) -> Guarantees:
        """What it promises beyond what all stores do."""
        ...

    def execute(self, command: "Command[R]") -> R:
        """Apply the command, all or nothing and as if alone; durable, as `guarantees` says, when it returns."""
        ...

    def mark(self, topic: str) -> "Mark":
        """Take a point to wait from."""
        ...

    def wait(self, mark: "Mark", timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        """Return when the topic may have changed since the mark, when `due_in_s` has passed, or at the time-out."""
        ...

    def wall_offset_us(self) -> int:
        """What to add to a moment of the store's clock to get one of the wall clock."""
        ...

    def for_tasks(self) -> "AsyncStore":
        """The same store for tasks; closing either closes both."""
        ...

    def for_renewals(self) -> Renewer:
        """What one keepalive thread renews through; it connects at its first command. The caller closes it before the store."""
        ...

    def within(self, connection: Any) -> Executor:
        """What executes commands in the transaction of a connection of the caller's own to the same database.

        Raises `StoreError` where the store takes part in no such transaction.
        """
        ...

    def within_async(self, connection: Any) -> AsyncExecutor:
        """See `within`, for tasks."""
        ...

    def hint_committed(self, topic: str) -> None:
        """Wake who waits for the topic, in any process: for a caller who has committed a transaction of `within`.

        It does nothing where the database tells them itself.
        """
        ...

    def fast(self, queue: str) -> FastQueue | None:
        """The fast path of a queue, for a caller that has no commands; None where a store offers it to commands alone."""
        ...

    def close(self) -> None:
        """End every wait with `Closed`, and give back what the store holds. Idempotent."""
        ...


class StoreDefaults:
    """What most stores say to the questions that only few stores have an answer of their own to."""

    by_reference: bool = False
    is_on_connection: bool = False

    def fast(self, queue: str) -> FastQueue | None:
        del queue
        return None

    def hint_committed(self, topic: str) -> None:
        del topic

    def within(self: Store, connection: Any) -> Executor:  # noqa: ARG002 - see `Store.within`
        raise _no_transaction(self)

    def within_async(self: Store, connection: Any) -> AsyncExecutor:  # noqa: ARG002 - see `Store.within`
        raise _no_transaction(self)


def _no_transaction(store: Store) -> StoreError:
    kind = store.url.partition("://")[0]
    return StoreError(
        f"a store of {kind}:// cannot take part in the transaction of a connection: leave connection= out, or use SQLite or PostgreSQL"
    )


class AsyncStore(Protocol):
    """A store, for tasks."""

    limits: "Limits"

    @property
    def url(self) -> str:
        """See `Store.url`."""
        ...

    @property
    def waiters(self) -> "Waiters":
        """See `Store.waiters`."""
        ...

    @property
    def guarantees(self) -> Guarantees:
        """See `Store.guarantees`."""
        ...

    async def execute(self, command: "Command[R]") -> R:
        """See `Store.execute`."""
        ...

    def mark(self, topic: str) -> "Mark":
        """See `Store.mark`."""
        ...

    async def wait(self, mark: "Mark", timeout_s: float, due_in_s: float | None = None, poll_s: float | None = None) -> None:
        """See `Store.wait`."""
        ...

    def wall_offset_us(self) -> int:
        """See `Store.wall_offset_us`."""
        ...

    async def aclose(self) -> None:
        """See `Store.close`."""
        ...
