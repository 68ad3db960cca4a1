"""Quotas of namespaces: set on the store itself, and stored there."""

import time
from collections.abc import Callable
from typing import Final

from msgspec import Raw, Struct, json, to_builtins

from holdfast.commands import Change, Read, Together, Write
from holdfast.records import Entry
from holdfast.records.policies import Kind
from holdfast.server.audit import Act, Actor, recorded
from holdfast.server.auth.scopes import ANY
from holdfast.server.freshness import Asked, Hints
from holdfast.server.namespaces.names import QUOTAS, check_namespace
from holdfast.stores import AsyncStore, Store

KNOWN_S: Final = 10.0
"""How old what a server knows of quotas may be, where no hint reached it."""

NAMESPACES_MAX: Final = 10_000


class Quota(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The most that a namespace may have of each; None is any number."""

    queues: int | None = None
    dicts: int | None = None
    bytes: int | None = None
    """Of messages, entries and the log of dicts, as `server/usage.py` counts them."""
    waits: int | None = None
    """Requests that wait or watch, on each server."""

    def names(self, kind: Kind) -> int | None:
        return self.queues if kind == "queue" else self.dicts


UNLIMITED: Final = Quota()


def set_quota(store: Store, namespace: str, quota: Quota, *, by: Actor) -> None:
    """Keep the quota of a namespace, or of `*`: of every one that has none of its own."""
    if namespace != ANY:
        check_namespace(namespace)
    given = to_builtins(quota)
    for name, most in given.items():
        if most < 0:
            raise ValueError(f"the quota of {name} must be 0 or more, or none, not {most:,}")
    change = Change(namespace, do="delete") if quota == UNLIMITED else Change(namespace, value=Raw(json.encode(quota)))
    store.execute(Together([Write(QUOTAS, [change]), recorded(by, Act("set quota", f"namespace:{namespace}", given))]))


def list_quotas(store: Store) -> dict[str, Quota]:
    """All quotas, by namespace."""
    return _quotas(store.execute(_ALL).entries)


class KnownQuotas:
    """The quotas as one server knows them; used on one event loop."""

    def __init__(self, store: Store, tasks: AsyncStore, now: Callable[[], float] = time.monotonic) -> None:
        self._tasks = tasks
        self._hints = Hints(store, QUOTAS, KNOWN_S, now)
        self._quotas: dict[str, Quota] = {}
        self._asked: Asked | None = None

    def close(self) -> None:
        """Hear no hints any more."""
        self._hints.close()

    def are_known_to_be_none(self) -> bool:
        """Whether no namespace has a quota, and that is known without asking the store."""
        return not self._quotas and self._hints.is_fresh(self._asked)

    async def of(self, namespace: str) -> Quota:
        """The quota of a namespace."""
        if not self._hints.is_fresh(self._asked):
            asked = self._hints.asking()
            self._quotas = _quotas((await self._tasks.execute(_ALL)).entries)
            self._asked = asked
        return self._quotas.get(namespace) or self._quotas.get(ANY, UNLIMITED)


_ALL: Final = Read(QUOTAS, limit=NAMESPACES_MAX)


def _quotas(entries: list[Entry]) -> dict[str, Quota]:
    return {entry.key: json.decode(entry.value, type=Quota) for entry in entries}
