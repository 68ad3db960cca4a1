# Generated from src/holdfast/surfaces/sentinel/_async/lease.py by tools/unasync.py; do not edit.
"""A lease that is held while a body runs: acquired, kept alive from another connection, and released however the body ends."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from holdfast._sync.flows import acquiring
from holdfast._sync.flows.holding import Holding
from holdfast.commands import LeaseName, Release
from holdfast.errors import LeaseHeld, LockTimeout
from holdfast.holding.hold import Hold
from holdfast.holding.keepalive import Keepalive
from holdfast.surfaces.sentinel._sync.calls import borrowed
from holdfast.surfaces.sentinel.connections import OnDemand, in_transaction, opener
from holdfast.surfaces.sentinel.results import answer, question, wait_s_of

R = TypeVar("R")


class Lease:
    """Holds the lease on a key; `lease` makes one.

    Its heartbeat runs in a thread, on a connection of its own, so a blocked body loses nothing. `is_valid` turns false when the lease is
    lost, or could not be kept alive in time, whatever the database thinks.
    """

    def __init__(
        self,
        conn: Any,
        key: str,
        ttl_ms: float,
        get_conn: "Callable[[], Any] | None",
        *,
        auto_release: bool,
        owner_id: str | None,
        wait_ms: float | None,
        max_hold_ms: float | None,
    ) -> None:
        self.key = key
        self.ttl_ms = ttl_ms
        self.owner_id: str | None = None
        self.fencing_token: int | None = None
        self._conn = conn
        self._apart: Any = None
        self._get_conn = get_conn
        self._auto_release = auto_release
        self._wait_s = wait_s_of(wait_ms)
        self._max_hold_s = None if max_hold_ms is None else max_hold_ms / 1000
        self._question = question(key, owner_id, ttl_ms)
        self._keepalive: Keepalive | None = None
        self._holding: Holding | None = None

    @property
    def is_valid(self) -> bool:
        """Whether it is held, as far as its holder can know; does not ask the database."""
        return self._holding is not None and not self._holding.hold.lost

    def assert_valid(self) -> None:
        """Raise `LeaseLost` if it is not held; does not ask the database."""
        if self._holding is None:
            raise RuntimeError("the lease was not entered: use it in a with statement")
        self._holding.hold.check()

    def run(self, fn: "Callable[[Self], R]") -> R:
        """Call a function with the lease, and raise `LeaseLost` if it was not held before or after."""
        self.assert_valid()
        result = fn(self)
        self.assert_valid()
        return result

    def release(self) -> bool:
        """Give it back now; the body goes on without it. Returns whether it was held."""
        if self._holding is None or self._holding.hold.is_inherited or self._holding.hold.is_over:
            return False
        if self._keepalive is not None:
            self._keepalive.drop(self._holding.hold)
        return self._end(self._holding.hold)

    def __enter__(self) -> Self:
        if self._keepalive is not None:
            raise RuntimeError(f"this lease on {self.key!r} was entered before: make another")
        heartbeats = OnDemand(opener(self._conn, self._get_conn))
        if self._get_conn is not None and in_transaction(self._conn):
            # What the transaction does nobody sees before its end, so the lease lives on a connection apart.
            self._conn = self._apart = self._get_conn()
        self._keepalive = Keepalive(heartbeats)
        try:
            self._holding = Holding(self._keepalive, self._acquire(self._keepalive))
        except BaseException:
            self._let_go(self._keepalive)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._holding is None or self._keepalive is None:
            return
        try:
            self._holding.leave(error, self._give_back)
        finally:
            self._let_go(self._keepalive)

    def _let_go(self, keepalive: Keepalive) -> None:
        # A heartbeat that is under way ends by itself; nobody waits for it.
        keepalive.close(wait=False)
        if self._apart is not None:
            self._apart.close()

    def _acquire(self, keepalive: Keepalive) -> Hold:
        command = self._question
        with borrowed(self._conn) as store:
            acquired, started = acquiring.acquire(store, command, self._wait_s, now=keepalive.now)
            result = answer(command, acquired, store.wall_offset_us())
        if not result.acquired:
            problem = f"the lease on {self.key!r} is held by {result.held_by!r}"
            if self._wait_s is not None:
                raise LockTimeout(f"{problem}, and did not become free within {self._wait_s:.3g} seconds")
            raise LeaseHeld(f"{problem}: try again later, or wait for it with wait_ms=", acquired.lease, acquired.ends_in_s)
        self.owner_id, self.fencing_token = result.owner_id, result.fencing_token
        name = LeaseName(None, command.key, command.lease_id)
        return Hold(name, command.lease_s, started, keepalive.now, max_hold_s=self._max_hold_s, label=f"the lease on {self.key!r}")

    def _give_back(self) -> bool:
        hold = self._holding.hold if self._holding is not None else None
        if hold is None or self._auto_release:
            return hold is not None and self._end(hold)
        was_held = not hold.lost
        hold.end("its body has ended, and it will end by itself")
        return was_held

    def _end(self, hold: Hold) -> bool:
        with borrowed(self._conn) as store:
            (was_held,) = (store.execute(Release([LeaseName(None, self._question.key, self._question.lease_id)]))).held
        hold.end("it was given back" if was_held else "the store reports that it is no longer held")
        return was_held


def lease(
    conn: Any,
    key: str,
    ttl_ms: float = 5_000,
    get_conn: "Callable[[], Any] | None" = None,
    auto_release: bool = True,  # noqa: FBT001, FBT002 - as documented
    *,
    owner_id: str | None = None,
    wait_ms: float | None = None,
    max_hold_ms: float | None = None,
) -> Lease:
    """Hold the lease on a key for the body of a `with`.

    `get_conn` makes the connection that its heartbeat uses, in the heartbeat's thread; without it, and always for tasks, one like `conn` is
    made. If `conn` is in a transaction, whose work no one else sees, the lease itself lives on a connection of `get_conn`, too. Raises
    `LeaseHeld`, or after `wait_ms` `LockTimeout`, if it is held. After `max_hold_ms` it is kept alive no more, so a body that
    hangs cannot hold it for ever. Leaving raises `LeaseLost` if it was lost; without `auto_release` it then ends by itself.
    """
    return Lease(conn, key, ttl_ms, get_conn, auto_release=auto_release, owner_id=owner_id, wait_ms=wait_ms, max_hold_ms=max_hold_ms)
