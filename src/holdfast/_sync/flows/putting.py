# Generated from src/holdfast/_async/flows/putting.py by tools/unasync.py; do not edit.
"""Putting with patience: while a bounded queue is full, wait until it may have room."""

import time

from holdfast.codec import check_duration
from holdfast.commands import Names, Put, Puts
from holdfast.commands.topics import room_topic
from holdfast.errors import QueueFull
from holdfast.stores import Store

POLL_S = 0.5


def put(store: Store, command: Put, timeout_s: float | None = None, poll_s: float = POLL_S) -> Puts:
    """Put; into a full queue as soon as there is room, with a time-out for so long in all, `math.inf` for ever.

    Several at once need as much room at once: they look again after `poll_s`, and leave the wake-ups to those who can use each of them.
    """
    if timeout_s is None:
        return store.execute(command)
    check_duration(timeout_s, "timeout_s", allow_inf=True)
    check_duration(poll_s, "poll_interval_s", zero=False, allow_inf=True)
    deadline = time.monotonic() + timeout_s
    try:
        # Nearly always there is room, and nobody needs to be told of this put's wait.
        return store.execute(command)
    except QueueFull:
        if timeout_s <= 0:
            raise
    return _put_patiently(store, command, deadline, poll_s)


def _put_patiently(store: Store, command: Put, deadline: float, poll_s: float) -> Puts:
    topic = room_topic(command.queue)
    with store.mark(topic if len(command.items) == 1 else f"{topic}:{command.items[0].id}") as mark:
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
            store.wait(mark, remaining_s, None, poll_s)


def _can_never_fit(store: Store, command: Put) -> bool:
    """Whether there are more new messages than the queue may hold; those with a key may update others."""
    count = sum(item.key is None for item in command.items)
    if count <= 1:
        return False
    found = (store.execute(Names("queue", command.queue, limit=1))).settings
    return any(one.name == command.queue and one.maxsize is not None and one.maxsize < count for one in found)
