# Generated from src/holdfast/_async/handles/lease_steps.py by tools/unasync.py; do not edit.
"""The leases that one atomic step takes, renews and gives back."""

from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack
from typing import Any

from holdfast._sync.handles.leases import HeldLease, granted, let_go
from holdfast._sync.handles.named import NamedLease
from holdfast.arguments.named_claims import LettingGo
from holdfast.client import ControlPlaneClient
from holdfast.codec import encode_key
from holdfast.codec.call_fields import HELD_S
from holdfast.commands import Acquire, Acquired, LeaseName, Release, Released, Renew, Renewed, Together
from holdfast.holding.hold import Hold, this_process
from holdfast.holding.lease_request import Terms
from holdfast.ids import new_id
from holdfast.records import Lease
from holdfast.steps import Handle, Step, in_another_store, is_same_store, name_of, named
from holdfast.stores.caller_transaction import Connection

Part = tuple[Any, Callable[[Any], None]]
"""A command, and who is told its answer."""


class LeaseSteps:
    """Base of a step: its leases, and its execution."""

    def __init__(self, client: ControlPlaneClient, connection: Connection | None) -> None:
        self._client = client
        self._connection = connection
        self._is_over = False
        self._leases: list[Part] = []
        self._taken: list[tuple[Terms, str]] = []
        self._given_back: list[LettingGo] = []
        self._started = 0.0

    def acquire_lease(self, shared: Handle | str, key: Hashable, *, holder: str | None = None, lease_s: float = 60.0) -> Step[Lease]:
        """Take the lease on a key; if it is held, the whole step is refused with `LeaseHeld`."""
        name, _ = named(shared, self._client)
        step = Step[Lease]()
        command = Acquire(name, encode_key(key), holder or this_process(), new_id(), HELD_S.check(lease_s))
        self._add_lease(command, lambda answer: step.answer(answer.lease))
        return step

    def renew_lease(self, shared: Handle | str, key: Hashable, *, lease_id: str, lease_s: float) -> Step[Lease]:
        """Keep a lease from now on for `lease_s`."""
        name, _ = named(shared, self._client)
        step = Step[Lease]()
        command = Renew([LeaseName(name, encode_key(key), lease_id)], HELD_S.check(lease_s))
        self._add_lease(command, lambda answer: step.answer(answer.leases[0]))
        return step

    def release_lease(self, shared: Handle | str, key: Hashable, *, lease_id: str) -> Step[bool]:
        """Give a lease back."""
        name, _ = named(shared, self._client)
        step = Step[bool]()
        self._add_lease(Release([LeaseName(name, encode_key(key), lease_id)]), lambda answer: step.answer(answer.held[0]))
        return step

    def acquire_lock(self, lock: NamedLease) -> Step[HeldLease[Any]]:
        """Take a `Lock`, a share of a `Semaphore`, or the `reading()` or `writing()` of an `RWLock`, and renew it until it is released.

        Nothing waits in a step: if it is held, or others stand in line, the whole step is refused with `LeaseHeld`. A `ValueError` on a
        connection of your own: the lease might have to be renewed before your transaction ends.
        """
        if self._connection is not None:
            raise ValueError(f"lock {lock.name!r} is renewed as soon as it is held, which your transaction would hide: take it before")
        name_of(lock, self._client)
        self._client.check_renewal()
        step, terms = Step[HeldLease[Any]](), lock._terms  # noqa: SLF001 - a handle, and what takes it in a step
        command = terms.ask(new_id(), waits=False)

        def tell(answer: Acquired) -> None:
            step.answer(granted(self._client, terms, answer, self._started).keep())

        self._add_lease(command, tell)
        self._taken.append((terms, command.lease_id))
        return step

    def renew_lock(self, held: HeldLease[Any], *, lease_s: float | None = None) -> Step[HeldLease[Any]]:
        """Keep what `acquire` returned from now on for `lease_s`, by default as long as before; the step happens only while it is held."""
        name, hold = self._held(held)
        step, lease_s = Step[HeldLease[Any]](), hold.lease_s if lease_s is None else HELD_S.check(lease_s)

        def tell(_: Renewed) -> None:
            if self._connection is None:  # Else it may be rolled back.
                hold.renewed(self._started, lease_s)
            step.answer(held)

        self._add_lease(Renew([name], lease_s), tell)
        return step

    def release_lock(self, held: HeldLease[Any]) -> Step[bool]:
        """Give back what `acquire` returned; if it is lost, the whole step is refused with `LeaseLost`."""
        name, hold = self._held(held)
        step = Step[bool]()

        def tell(answer: Released) -> None:
            hold.end()
            step.answer(answer.held[0])

        self._add_lease(Release([name]), tell)
        if hold.keeper is not None:
            self._given_back.append(LettingGo([(held._client.keepalive, hold)]))  # noqa: SLF001 - as in `_held`
        return step

    def _held(self, held: HeldLease[Any]) -> tuple[LeaseName, Hold]:
        """The name and the hold of a lease that is to be changed."""
        name, hold, client = held._name, held._hold, held._client  # noqa: SLF001 - both twins keep these three
        if not is_same_store(client, self._client):
            raise in_another_store(held.key)
        if hold.is_inherited or hold.is_over:
            raise hold.error()
        return name, hold

    def _add_lease(self, command: Acquire | Renew | Release, tell: Callable[[Any], None]) -> None:
        self._refuse_when_over()
        self._leases.append((command, tell))

    def _refuse_when_over(self) -> None:
        if self._is_over:
            raise RuntimeError("this step is finished: begin another with client.together()")

    def _execute(self, parts: Sequence[Part], letting_go: Sequence[LettingGo]) -> None:
        """Commit the parts, and tell each its answer."""
        store = self._client.store_on(self._connection)
        self._started = self._client.keepalive.now()
        try:
            with ExitStack() as stack:
                for one in (*letting_go, *self._given_back):
                    stack.enter_context(one)
                answers = store.execute(Together([command for command, _ in parts]))
            for (_, tell), answer in zip(parts, answers, strict=True):
                tell(answer)
        except BaseException as error:
            for terms, lease_id in self._taken:
                let_go(self._client, terms, lease_id, error)
            raise
