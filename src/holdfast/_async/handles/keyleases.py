"""The leases on a dict's keys: take, hold, renew and give back, lock, and lead."""

import math
from collections.abc import Hashable, Sequence
from typing import Any, Generic, TypeVar, Unpack

from msgspec import Raw

from holdfast._async.flows.listing import break_lease, held_leases
from holdfast._async.handles.leases import AsyncDictLease, AsyncDictLock, AsyncLeaseContext, release_by_name, renew_by_name, take, try_take
from holdfast.arguments.options import show_options
from holdfast.arguments.where import StoreHandle, Where
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON, Codec, check_name, encode_key
from holdfast.codec.call_fields import HELD_S
from holdfast.commands import LeaseName, Look, Read
from holdfast.holding.hold import this_process
from holdfast.holding.lease_request import HoldOptions, LeaseOptions, Terms
from holdfast.results import MISSING, DictResponse, LeaseGrant, LeaseHolder, LeaseInfo, Missing, wall_time

V = TypeVar("V")


@show_options
class AsyncDictLeases(StoreHandle, Generic[V]):
    """The half of a dict's handle that is about leases."""

    name: str

    def __init__(self, name: str, *, codec: Codec = JSON, **where: Unpack[Where]) -> None:
        self.name = check_name(name, "dict")
        super().__init__(codec, **where)

    async def acquire_lease(
        self, key: Hashable, *, holder: str | None = None, lease_s: float = 60.0, **where: Unpack[Where]
    ) -> AsyncDictLease[V]:
        """Take the lease on a key for `lease_s`; renew and release it yourself.

        Raises `LeaseHeld` if it is held, also under the same holder's name.
        """
        return await take(self._reach(**where), self._terms(key, lease_s, auto_renew=False, holder=holder))

    def lease(
        self, key: Hashable, *, lease_s: float = 60.0, auto_renew: bool = True, **options: Unpack[LeaseOptions]
    ) -> AsyncLeaseContext[V]:
        """Hold the lease on a key while a body runs: `with shared.lease(…) as lease:`. Raises `LeaseHeld` if it is held.

        It is renewed in the background, by default every third of `lease_s`, until the body ends or has taken `max_hold_s`. When it is
        lost, a task's body is cancelled, and leaving raises `LeaseLost`.
        """
        return AsyncLeaseContext(*self._request(key, lease_s, MISSING, auto_renew=auto_renew, **options))

    async def release_lease(self, key: Hashable, *, lease_id: str, **where: Unpack[Where]) -> DictResponse:
        """Give a lease back. What was lost before raises nothing, and is in the answer's `lost`."""
        return await release_by_name(self._reach(**where), LeaseName(self.name, encode_key(key), lease_id))

    async def renew_lease(self, key: Hashable, *, lease_id: str, lease_s: float, **where: Unpack[Where]) -> AsyncDictLease[V]:
        """Keep a lease from now on for `lease_s`. Raises `LeaseLost` if it is no longer held."""
        reached, text, lease_s = self._reach(**where), encode_key(key), HELD_S.check(lease_s)
        lease, hold = await renew_by_name(reached, LeaseName(self.name, text, lease_id), lease_s)
        found = (await reached.async_store.execute(Read(self.name, [text]))).entries
        value = self._codec.decode(found[0].value) if found else None
        return AsyncDictLease(reached, self._terms(key, lease_s, auto_renew=False, holder=lease.holder), lease, value, hold)

    async def lease_holder(self, key: Hashable, **where: Unpack[Where]) -> LeaseHolder | None:
        """Who holds the lease on a key at this moment, None if no one does."""
        reached = self._reach(**where)
        (found,) = (await reached.async_store.execute(Look(self.name, [encode_key(key)]))).leases
        if found is None:
            return None
        return LeaseHolder(found.lease.holder, found.lease.token, wall_time(found.lease.since, reached.store.wall_offset_us()))

    async def leases(self, *, limit: int = 1_000, **where: Unpack[Where]) -> Sequence[LeaseInfo]:
        """The keys whose leases are held, in the order of their texts, at most `limit`, and who holds them."""
        return await held_leases(self._reach(**where).async_store, self.name, "", limit)

    async def break_lease(self, key: Hashable, reason: str, *, token: int | None = None, **where: Unpack[Where]) -> Sequence[LeaseGrant]:
        """Take the lease on a key from its holder, and say why; see `Lock.break_`."""
        return await break_lease(self._reach(**where).async_store, self.name, encode_key(key), reason, token)

    def locked(
        self,
        key: Hashable,
        *,
        lease_s: float = 60.0,
        wait_timeout_s: float | None = None,
        poll_interval_s: float = 0.5,
        default_value: Any = True,
        auto_renew: bool = True,
        **options: Unpack[LeaseOptions],
    ) -> AsyncLeaseContext[V]:
        """Wait for the lease on a key, and hold it while a body runs; `default_value` is stored where the key is absent.

        Where the dict has a type that does not allow `True`, that is not stored. Without `wait_timeout_s` it waits for ever; with it, it
        raises `LockTimeout`. Not reentrant, whatever the holder's name. For the rest see `lease`.
        """
        reached, terms = self._request(key, lease_s, default_value, auto_renew=auto_renew, **options)
        timeout_s = math.inf if wait_timeout_s is None else wait_timeout_s
        return AsyncLeaseContext(reached, terms, timeout_s, poll_interval_s)

    async def try_become_leader(
        self,
        key: Hashable,
        *,
        lease_s: float = 60.0,
        default_value: Any = True,
        auto_renew: bool = False,
        **options: Unpack[LeaseOptions],
    ) -> AsyncDictLock[V] | None:
        """Take the lease on a key if it is free, else None; `default_value` is stored where the key is absent.

        `renew()` it in time and `release()` it at the end, or with `auto_renew` only release it.
        """
        _, leader = await try_take(*self._request(key, lease_s, default_value, auto_renew=auto_renew, **options))
        if leader is not None and auto_renew:
            leader.keep()
        return leader

    def _request(
        self,
        key: Hashable,
        lease_s: float,
        default_value: Any,
        *,
        auto_renew: bool,
        client: ControlPlaneClient | None = None,
        base_url: str | None = None,
        **how: Unpack[HoldOptions],
    ) -> tuple[ControlPlaneClient, Terms]:
        """Whom to ask for the lease on a key, and for what."""
        return self._reach(client, base_url), self._terms(key, lease_s, default_value, auto_renew=auto_renew, **how)

    def _terms(
        self,
        key: Hashable,
        lease_s: float,
        default_value: Any = MISSING,
        *,
        auto_renew: bool,
        holder: str | None = None,
        renew_interval_s: float | None = None,
        max_hold_s: float | None = None,
    ) -> Terms:
        return Terms(
            self.name,
            encode_key(key),
            key,
            this_process() if holder is None else holder,
            lease_s,
            self._codec,
            self._default(default_value),
            auto_renew,
            renew_interval_s,
            max_hold_s,
        )

    def _default(self, value: Any) -> Raw | None:
        if isinstance(value, Missing):
            return None
        try:
            return self._codec.encode(value)
        except TypeError:
            if value is not True:
                raise
            # Nobody chose it, and a dict of another type cannot hold it.
            return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"
