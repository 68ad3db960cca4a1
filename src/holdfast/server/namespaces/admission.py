"""Enforces the quotas of a namespace on all commands that write.

Queues and dicts are created under the quota in a step of their own, in which servers take turns, so there are never more. Bytes are counted
by each server: see `server/usage.py`.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Raw, json

from holdfast.commands import Acquire, Change, Claim, Command, Configure, Move, Names, Put, Read, Settle, Together, Write
from holdfast.errors import HoldfastError, Refused
from holdfast.records.policies import Kind
from holdfast.server.auth.permissions import Need, needs_of
from holdfast.server.namespaces.names import USAGE, Namespace
from holdfast.server.namespaces.quotas import UNLIMITED, KnownQuotas
from holdfast.server.namespaces.usage import Logged, all_names, count_bytes, logged_by, size_of
from holdfast.stores import AsyncStore
from holdfast.stores.http.problems import WireError

GROWING: Final = (Put, Write, Acquire, Configure, Move, Claim, Settle, Together)
"""What may create a queue or a dict, or make one larger."""

NAMESPACES: Final = 10_000
"""What so many namespaces use is remembered."""

SEEN: Final = 10_000
LOGS: Final = 1_000
"""The logs of so many dicts are told apart."""

KINDS: Final[tuple[Kind, ...]] = ("queue", "dict")
CREATES: Final = frozenset({"put", "write", "hold"})
KNOWN_S: Final = 1.0
"""How long a queue or dict that was seen counts as there."""

RECOUNT_S: Final = 600.0
"""How old a count of bytes may be while the namespace writes."""

SHARE: Final = 20
"""Counting takes at most one part in so many of the time."""

PATIENCE_S: Final = 5.0
"""How long a command waits for a count before it is refused."""

PATIENT: Final = 10
"""How many commands of a namespace wait for it; others are refused immediately, and take no other's place."""

TURNS: Final = 20
_log = logging.getLogger("holdfast.server")
_RETRY = ((b"retry-after", b"5"),)


class Tenants:
    """What the namespaces of one store use; on one event loop."""

    def __init__(self, store: AsyncStore, quotas: KnownQuotas, now: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._quotas = quotas
        self._now = now
        self._used: dict[str, _Used] = {}

    def is_free(self, command: Command[Any], namespace: Namespace) -> bool:
        """Whether it is known without asking the store that no quota limits the command; else it is to `enter`."""
        return not isinstance(command, GROWING) or (self._quotas.are_known_to_be_none() and namespace.name not in self._used)

    async def enter(self, command: Command[Any], namespace: Namespace) -> int:
        """Let a command in, or refuse it; return the bytes to be given to `leave` once it was executed."""
        if not isinstance(command, GROWING):
            return 0
        quota = await self._quotas.of(namespace.name)
        if quota == UNLIMITED:
            self._used.pop(namespace.name, None)
            return 0
        used = self._used.get(namespace.name)
        if used is None:
            if len(self._used) >= NAMESPACES:
                self._used.pop(next(iter(self._used))).close()  # It is counted anew when it comes again.
            used = self._used[namespace.name] = _Used(self._store, namespace, self._now)
        for kind in KINDS:
            most = quota.names(kind)
            if most is not None:
                await used.create({namespace.inside(name) for name in created_by(command, kind)}, kind, most)
        return 0 if quota.bytes is None else await used.add(command, quota.bytes)

    def leave(self, namespace: Namespace, size_bytes: int) -> None:
        """The command was executed, or failed."""
        if (used := self._used.get(namespace.name)) is not None:
            used.in_flight_bytes = max(0, used.in_flight_bytes - size_bytes)

    async def waits(self, namespace: Namespace) -> int | None:
        """How many requests of the namespace may wait here."""
        return (await self._quotas.of(namespace.name)).waits

    def close(self) -> None:
        for used in self._used.values():
            used.close()


class _Used:
    """What one namespace uses."""

    def __init__(self, store: AsyncStore, namespace: Namespace, now: Callable[[], float]) -> None:
        self._store = store
        self._namespace = namespace
        self._now = now
        self._creating = asyncio.Lock()
        self._seen: dict[tuple[Kind, str], float] = {}
        self._counted_bytes: int | None = None
        self._added_bytes = 0
        self._logged_bytes = 0
        self._logs: defaultdict[str, Logged] = defaultdict(lambda: Logged(now))
        self._counting: asyncio.Task[None] | None = None
        self._waiting = 0
        self._count_again_at = now()
        self._old_at = now()
        self.in_flight_bytes = 0
        """Of commands that were let in and may not be executed yet."""

    async def create(self, names: set[str], kind: Kind, most: int) -> None:
        """Create those that are not there, or refuse them."""
        new = {name for name in names if not await self._is_there(kind, name)}
        if new:
            async with self._creating:
                await self._create(new, kind, most)

    async def add(self, command: Command[Any], most: int) -> int:
        """Count what the command adds, or refuse it."""
        size_bytes = size_of(command)
        if not size_bytes:
            return 0
        logged = logged_by(command)
        more = size_bytes + sum(part for _, _, part in logged)
        if self._old_at <= self._now():
            self._count()
        if self._counted_bytes is None or self._bytes() + more > most:
            await self._count_now()
            if self._bytes() + more > most:
                raise self._over("bytes", most, "delete something, or write less often to dicts, whose log keeps each value for a day")
        self._added_bytes += size_bytes
        self.in_flight_bytes += size_bytes
        for name, events, part in logged:
            self._logs[name if len(self._logs) < LOGS or name in self._logs else ""].add(events, part)
            self._logged_bytes += part
        return size_bytes

    def close(self) -> None:
        if self._counting is not None:
            self._counting.cancel()

    async def _is_there(self, kind: Kind, name: str) -> bool:
        if self._now() - self._seen.get((kind, name), -KNOWN_S) < KNOWN_S:
            return True
        asked_at = self._now()
        if not (await self._store.execute(Names(kind, name, limit=1, exact=True))).settings:
            self._seen.pop((kind, name), None)
            return False
        if len(self._seen) >= SEEN:
            self._seen.clear()
        self._seen[kind, name] = asked_at
        return True

    async def _create(self, names: set[str], kind: Kind, most: int) -> None:
        for _ in range(TURNS):
            turn = await self._turn(kind)
            there = {settings.name async for settings in all_names(self._store, self._namespace, kind)}
            new = sorted(names - there)
            if not new:
                return
            if len(there) + len(new) > most:
                raise self._over(f"{kind}s", most, f"drop {kind}s that are not used any more")
            try:
                await self._store.execute(Together([*(Configure(kind, name) for name in new), turn]))
            except Refused:
                continue  # Another server was quicker: see what there is now.
            return
        raise WireError("too_many_requests", 503, f"too many {kind}s are being created in this namespace: try again", _RETRY)

    async def _turn(self, kind: Kind) -> Write:
        """What only one of those who looked at the same moment can write."""
        key = f"{self._namespace.name}:{kind}s"
        found = (await self._store.execute(Read(USAGE, [key]))).entries
        value = Raw(b"%d" % (json.decode(found[0].value, type=int) + 1 if found else 1))
        if not found:
            return Write(USAGE, [Change(key, value=value, expect="absent")])
        return Write(USAGE, [Change(key, value=value, expect="revision", revision=found[0].revision)])

    def _bytes(self) -> int:
        return (self._counted_bytes or 0) + self._added_bytes + self._logged_bytes

    async def _count_now(self) -> None:
        """Count again, as soon as it may be done, and wait for it a while."""
        if self._count_again_at - self._now() < PATIENCE_S:
            self._count()
        if self._counting is None or self._waiting >= PATIENT:
            return
        self._waiting += 1
        try:
            await asyncio.wait([self._counting], timeout=PATIENCE_S)
        finally:
            self._waiting -= 1

    def _count(self) -> None:
        if self._counting is None:
            self._counting = asyncio.create_task(self._run_count())

    async def _run_count(self) -> None:
        await asyncio.sleep(max(0.0, self._count_again_at - self._now()))
        begun_at, before, in_flight = self._now(), self._added_bytes, self.in_flight_bytes
        try:
            counted = await count_bytes(self._store, self._namespace)
            # What was let in before and executed since may not have been seen.
            self._counted_bytes, self._added_bytes = counted, self._added_bytes - before + in_flight
            self._logged_bytes = self._forget_logs()
            self._old_at = self._now() + RECOUNT_S
        except HoldfastError as error:
            _log.warning("the bytes of namespace %s could not be counted: %s", self._namespace.name, error)
        finally:
            self._counting = None
            self._count_again_at = self._now() + SHARE * (self._now() - begun_at)

    def _forget_logs(self) -> int:
        """Forget what the logs keep no longer; return how much they keep."""
        sizes = {name: log.size_bytes for name, log in self._logs.items()}
        for name in [name for name, size_bytes in sizes.items() if not size_bytes]:
            del self._logs[name]
        return sum(sizes.values())

    def _over(self, what: str, most: int, remedy: str) -> WireError:
        name = self._namespace.name
        detail = f"namespace {name} is limited to {most:,} {what}, and this would exceed it: {remedy}, or ask the operator"
        return WireError("over_quota", 403, f"{detail} (holdfast namespace quota {name} --{what} …)")


def created_by(command: Command[Any], kind: Kind) -> set[str]:
    """The queues or dicts that the command creates if they are not there, those for dead letters among them."""
    return {need.name for need in _creating(command) if need.kind == kind}


def _creating(command: Command[Any]) -> Iterator[Need]:
    if isinstance(command, Together):
        for step in command.commands:
            yield from _creating(step)
    else:
        yield from (need for need in needs_of(command) if need.verb in CREATES or isinstance(command, Configure))
