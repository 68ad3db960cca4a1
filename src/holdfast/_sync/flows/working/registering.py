# Generated from src/holdfast/_async/flows/working/registering.py by tools/unasync.py; do not edit.
"""Keeps the worker's entry in the registry alive with heartbeats, and removes it at the end."""

import logging
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from holdfast.codec import encode_key
from holdfast.commands import Change, Names, Read, Write
from holdfast.errors import NotAllowed
from holdfast.records.policies import Policy
from holdfast.stores import Store
from holdfast.views.task_work import TaskWork
from holdfast.workers.handlers.definitions import name_of
from holdfast.workers.orders import Orders
from holdfast.workers.registry import MISSED_BEATS, WORKERS, WorkerHealth, WorkerInfo, functions_of, info_of, shown_functions
from holdfast.workers.running.running_jobs import NO_POLICY

NO_WORK: Final[Mapping[str, Mapping[str, TaskWork]]] = {}

_log = logging.getLogger("holdfast.worker")


class Registration:
    """One incarnation of a worker in the registry."""

    def __init__(self, store: Store, orders: Orders, incarnation: str) -> None:
        self._store = store
        self._orders = orders
        self._incarnation = incarnation
        self._key = encode_key((orders.name, incarnation))
        self._started_at = datetime.now(UTC)
        self._has_beaten = self._has_looked = False

    def beat(self, health: WorkerHealth, work: Mapping[str, Mapping[str, TaskWork]] = NO_WORK) -> None:
        """Show that it lives, how it is, and what it has done."""
        orders = self._orders
        if orders.heartbeat_s is None:
            return
        info = WorkerInfo(
            name=orders.name,
            incarnation=self._incarnation,
            queue=orders.queues[0],
            host=platform.node(),
            pid=os.getpid(),
            execution=orders.execution,
            concurrency=orders.concurrency,
            started_at=self._started_at,
            seen_at=datetime.now(UTC),
            health=health,
            schedules=orders.schedules,
            tasks=orders.table.names,
            queues=orders.queues,
            consumers={queue: name_of(one.handler.function) for queue, one in orders.table.consumers.items() if queue in orders.queues},
            # What it had done when its entry appears is told by the next one: rates are worked out from what was added.
            work=dict(work) if self._has_beaten else {},
        )
        change = Change(self._key, value=info.raw, ttl_s=MISSED_BEATS * orders.heartbeat_s)
        self._store.execute(Write(WORKERS, [change]))
        self._has_beaten = True
        if info.consumers and not self._has_looked:
            self._has_looked = True
            self._look(info)

    def _look(self, info: WorkerInfo) -> None:
        """Warn if another worker calls another function for the same messages."""
        try:
            living = workers(self._store)
        except NotAllowed:
            return
        for queue in info.consumers:
            functions = functions_of(living, queue)
            if len(functions) > 1:
                _log.warning(
                    "queue %r has workers with different functions: %s. Each gets messages that were put for the other: give each function "
                    "a queue of its own, or make them tasks of Tasks",
                    *(queue, shown_functions(functions)),
                )

    def end(self) -> None:
        """Leave the registry."""
        if self._orders.heartbeat_s is not None:
            self._store.execute(Write(WORKERS, [Change(self._key, "delete")]))


def policy_of(store: Store, queue: str) -> Policy:
    """What the settings of a queue say about its messages."""
    settings = (store.execute(Names("queue", queue, limit=1, exact=True))).settings
    return NO_POLICY if not settings or settings[0].policy is None else settings[0].policy


def workers(store: Store) -> list[WorkerInfo]:
    """Every worker that lives, in order of their names."""
    page = store.execute(Read(WORKERS))
    entries = page.entries
    while page.more:
        page = store.execute(Read(WORKERS, after=entries[-1].key))
        entries += page.entries
    return [info_of(entry.value) for entry in entries]
