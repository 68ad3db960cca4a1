# Generated from src/holdfast/_async/flows/putting.py by tools/unasync.py; do not edit.
"""Puts with a time-out: while a bounded queue is full, waits until it may have room."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Raw, Struct

from holdfast._sync.flows.naming import entries_of
from holdfast.client import ControlPlaneClient
from holdfast.codec import encode_key
from holdfast.codec.call_fields import POLL_INTERVAL_S, TIMEOUT_S
from holdfast.commands import Change, Count, Names, Put, Puts, Stats, Together, Write
from holdfast.commands.topics import queue_topic, room_topic, watch_topic
from holdfast.errors import QueueFull, Refused
from holdfast.stores import Store
from holdfast.stores.caller_transaction import Connection

POLL_S = 0.5

NOTED = Raw(b"true")


def put(store: Store, command: Put, timeout_s: float | None = None, poll_s: float = POLL_S) -> Puts:
    """Put; into a full queue as soon as there is room, with a time-out for so long in all, `math.inf` for ever.

    Several at once need as much room at once: they look again after `poll_s`, and leave the wake-ups to those who can use each of them.
    """
    if timeout_s is not None or poll_s != POLL_S:  # Most puts give neither, and need not pay for the checks.
        timeout_s, poll_s = TIMEOUT_S.check(timeout_s), POLL_INTERVAL_S.check(poll_s)
    if timeout_s is None:
        return store.execute(command)
    deadline = time.monotonic() + timeout_s
    try:
        # Nearly always there is room, and nobody needs to be told of this put's wait.
        return store.execute(command)
    except QueueFull:
        if timeout_s <= 0:
            raise
    return _put_patiently(store, command, deadline, poll_s)


def put_by(
    client: ControlPlaneClient,
    command: Put,
    timeout_s: float | None = None,
    poll_s: float = POLL_S,
    connection: Connection | None = None,
) -> Puts:
    """Put through a client, or within the open transaction of a connection to the same database."""
    if connection is None:
        return put(client.store, command, timeout_s, poll_s)
    if timeout_s is not None:
        raise ValueError("timeout_s= waits for consumers to make room, and they may wait for your transaction: leave connection= out")
    return client.store_on(connection).execute(command)


def _put_patiently(store: Store, command: Put, deadline: float, poll_s: float) -> Puts:
    topic = room_topic(command.queue)
    # Nothing hints at the second, so these are due for another look after `poll_s`, however seldom the store polls.
    topic, look_in_s = (topic, None) if len(command.items) == 1 else (f"{topic}:{command.items[0].id}", poll_s)
    with store.mark(topic) as mark:
        while True:
            try:
                puts = store.execute(command)
            except QueueFull:
                remaining_s = deadline - time.monotonic()
                if remaining_s <= 0 or _can_never_fit(store, command):
                    raise
            else:
                mark.used()
                return puts
            store.wait(mark, remaining_s, look_in_s, poll_s)


def _can_never_fit(store: Store, command: Put) -> bool:
    """Whether there are more new messages than the queue may hold; those with a key may update others."""
    count = sum(item.key is None for item in command.items)
    if count <= 1:
        return False
    found = (store.execute(Names("queue", command.queue, limit=1, exact=True))).settings
    return any(one.maxsize is not None and one.maxsize < count for one in found)


def put_together(store: Store, commands: Sequence[Put], timeout_s: float | None = None, poll_s: float = POLL_S) -> list[Puts]:
    """Put to several queues, all or none; while any of them is full, wait as `put` does."""
    if len(commands) == 1:
        return [put(store, commands[0], timeout_s, poll_s)]
    timeout_s, poll_s = TIMEOUT_S.check(timeout_s), POLL_INTERVAL_S.check(poll_s)
    command, full = Together(commands), commands[0].queue
    deadline = time.monotonic() + (timeout_s or 0.0)
    while True:
        with store.mark(room_topic(full)) as mark:
            try:
                puts: list[Puts] = store.execute(command)
            except QueueFull:
                remaining_s = deadline - time.monotonic()
                if remaining_s <= 0:
                    raise
            else:
                mark.used()
                return puts
            was_full, full = full, _full_of(store, commands) or full
            if full == was_full:
                store.wait(mark, remaining_s, None, poll_s)


class Room(Struct, frozen=True):
    """A limit that is the callers' own, not the queue's."""

    is_full: Callable[[Stats], bool]
    notes: str
    """The dict in which all who keep this kind of limit note their puts."""


def put_within(store: Store, commands: Sequence[Put], room: Room, timeout_s: float | None, poll_s: float = POLL_S) -> list[Puts]:
    """Put to several queues, all or none, if there is room in each; else wait as `put` does, then `QueueFull`.

    Among those who keep the limit it is exact: a put that was overtaken since it looked is refused by its note, and looks again.
    """
    timeout_s, poll_s = TIMEOUT_S.check(timeout_s), POLL_INTERVAL_S.check(poll_s)
    deadline = time.monotonic() + (timeout_s or 0.0)
    full = commands[0].queue
    while True:
        with store.mark(watch_topic(queue_topic(full))) as mark:
            watched, note = full, _note_of(store, commands, room)
            full = _first_full(store, commands, room) or ""
            if not full:
                try:
                    answers: list[Any] = store.execute(Together([*commands, note]))
                except Refused:
                    full = watched
                    continue
                except QueueFull:
                    full = watched
                else:
                    return answers[:-1]
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                raise QueueFull(f"queue {full!r} is full: remove messages, or wait for longer than {timeout_s or 0} seconds")
            if full == watched:
                store.wait(mark, remaining_s, None, poll_s)


def _note_of(store: Store, commands: Sequence[Put], room: Room) -> Write:
    """What notes these puts, unless another put was noted since now."""
    keys = [encode_key(command.queue) for command in commands]
    found = {entry.key: entry.revision for page in entries_of(store, room.notes, keys) for entry in page}
    return Write(room.notes, [Change(key, value=NOTED, expect="revision", revision=found.get(key, 0)) for key in keys])


def _first_full(store: Store, commands: Sequence[Put], room: Room) -> str | None:
    for command in commands:
        if room.is_full(store.execute(Count(command.queue))):
            return command.queue
    return None


def _full_of(store: Store, commands: Sequence[Put]) -> str | None:
    """The first of the queues that has no room."""
    for command in commands:
        found = (store.execute(Names("queue", command.queue, limit=1, exact=True))).settings
        if any(one.maxsize is not None and one.size + len(command.items) > one.maxsize for one in found):
            return command.queue
    return None
