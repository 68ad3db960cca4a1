"""Putting with patience: while a bounded queue is full, wait until it may have room."""

import time
from collections.abc import Callable, Sequence

from holdfast.codec.fields import POLL_INTERVAL_S, TIMEOUT_S
from holdfast.commands import Count, Names, Put, Puts, Together
from holdfast.commands.topics import queue_topic, room_topic, watch_topic
from holdfast.errors import QueueFull
from holdfast.stores import AsyncStore

POLL_S = 0.5


async def put(store: AsyncStore, command: Put, timeout_s: float | None = None, poll_s: float = POLL_S) -> Puts:
    """Put; into a full queue as soon as there is room, with a time-out for so long in all, `math.inf` for ever.

    Several at once need as much room at once: they look again after `poll_s`, and leave the wake-ups to those who can use each of them.
    """
    timeout_s, poll_s = TIMEOUT_S.check(timeout_s), POLL_INTERVAL_S.check(poll_s)
    if timeout_s is None:
        return await store.execute(command)
    deadline = time.monotonic() + timeout_s
    try:
        # Nearly always there is room, and nobody needs to be told of this put's wait.
        return await store.execute(command)
    except QueueFull:
        if timeout_s <= 0:
            raise
    return await _put_patiently(store, command, deadline, poll_s)


async def _put_patiently(store: AsyncStore, command: Put, deadline: float, poll_s: float) -> Puts:
    topic = room_topic(command.queue)
    with store.mark(topic if len(command.items) == 1 else f"{topic}:{command.items[0].id}") as mark:
        while True:
            try:
                puts = await store.execute(command)
            except QueueFull:
                remaining_s = deadline - time.monotonic()
                if remaining_s <= 0 or await _can_never_fit(store, command):
                    raise
            else:
                mark.used()
                return puts
            await store.wait(mark, remaining_s, None, poll_s)


async def _can_never_fit(store: AsyncStore, command: Put) -> bool:
    """Whether there are more new messages than the queue may hold; those with a key may update others."""
    count = sum(item.key is None for item in command.items)
    if count <= 1:
        return False
    found = (await store.execute(Names("queue", command.queue, limit=1))).settings
    return any(one.name == command.queue and one.maxsize is not None and one.maxsize < count for one in found)


async def put_together(store: AsyncStore, commands: Sequence[Put], timeout_s: float | None = None, poll_s: float = POLL_S) -> list[Puts]:
    """Put to several queues, all or none; while any of them is full, wait as `put` does."""
    if len(commands) == 1:
        return [await put(store, commands[0], timeout_s, poll_s)]
    command, full = Together(commands), commands[0].queue
    deadline = time.monotonic() + (timeout_s or 0.0)
    while True:
        with store.mark(room_topic(full)) as mark:
            try:
                puts: list[Puts] = await store.execute(command)
            except QueueFull:
                remaining_s = deadline - time.monotonic()
                if remaining_s <= 0:
                    raise
            else:
                mark.used()
                return puts
            was_full, full = full, await _full_of(store, commands) or full
            if full == was_full:
                await store.wait(mark, remaining_s, None, poll_s)


async def wait_for_room(
    store: AsyncStore, queue: str, is_full: Callable[[int], bool], timeout_s: float | None = None, poll_s: float = POLL_S
) -> None:
    """Wait, as `put` does, while somebody's own rule says of the number of ready messages that the queue is full; then `QueueFull`."""
    deadline = time.monotonic() + (timeout_s or 0.0)
    with store.mark(watch_topic(queue_topic(queue))) as mark:
        while True:
            stats = await store.execute(Count(queue))
            if not is_full(stats.ready + stats.delayed):
                return
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                raise QueueFull(f"queue {queue!r} is full, says its strategy, with {stats.ready + stats.delayed} messages ready")
            await store.wait(mark, remaining_s, None, poll_s)


async def _full_of(store: AsyncStore, commands: Sequence[Put]) -> str | None:
    """The first of the queues that has no room."""
    for command in commands:
        found = (await store.execute(Names("queue", command.queue, limit=1))).settings
        if any(one.name == command.queue and one.maxsize is not None and one.size + len(command.items) > one.maxsize for one in found):
            return command.queue
    return None
