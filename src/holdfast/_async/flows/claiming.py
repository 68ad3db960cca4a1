"""Claims with a time-out: asks, and while there is no message, waits until one may be available."""

import math
import time
from collections.abc import Callable

from holdfast.codec.call_fields import POLL_INTERVAL_S, TIMEOUT_S
from holdfast.commands import Claim, Claimed
from holdfast.commands.topics import key_topic, queue_topic
from holdfast.errors import HoldfastError
from holdfast.records import Message
from holdfast.stores import AsyncStore
from holdfast.wording import counted

POLL_S = 1.0
"""How much a missed wake-up can cost."""

NOTHING = Claimed([])


async def claim(store: AsyncStore, command: Claim, timeout_s: float | None = None, poll_s: float = POLL_S) -> list[Message]:
    """Claim what is due; with a time-out wait for it so long in all, `math.inf` for ever. Nothing came: an empty list."""
    messages, _ = await claim_since(store, command, timeout_s, poll_s)
    return messages


async def claim_since(
    store: AsyncStore, command: Claim, timeout_s: float | None = None, poll_s: float = POLL_S, now: Callable[[], float] = time.monotonic
) -> tuple[list[Message], float]:
    """Claim what is due as `claim` does; return also the moment on the clock `now` before it was asked for."""
    timeout_s, poll_s = TIMEOUT_S.check(timeout_s), POLL_INTERVAL_S.check(poll_s)
    if timeout_s is None:
        return await _ask_once(store, command, now)
    topic = queue_topic(command.queue) if command.key is None else key_topic(command.queue, command.key)
    deadline = time.monotonic() + timeout_s
    claimed = NOTHING
    try:
        with store.mark(topic) as mark:
            while True:
                started = now()
                claimed = await store.execute(command)
                if claimed.messages:
                    mark.used()
                    return claimed.messages, started
                remaining_s = deadline - time.monotonic()
                if claimed.due_in_s == 0.0:
                    continue
                if remaining_s <= 0:
                    return [], started
                await store.wait(mark, remaining_s, _ask_again_in_s(command, claimed, poll_s), poll_s)
    except BaseException as error:
        await give_back(store, command, claimed.messages, error)
        raise


def _ask_again_in_s(command: Claim, claimed: Claimed, poll_s: float) -> float | None:
    """When to ask again unless a hint comes. A group, limit or rate that lets a key through hints at the queue, not at its keys."""
    return claimed.due_in_s if command.key is None else min(poll_s, math.inf if claimed.due_in_s is None else claimed.due_in_s)


async def give_back(store: AsyncStore, command: Claim, messages: list[Message], error: BaseException) -> None:
    """Give back what was claimed for a caller who was interrupted, or cannot read it: no one else would settle it."""
    if not messages:
        return
    try:
        for undo in command.undo(Claimed(messages)):
            await store.execute(undo)
    except HoldfastError as failure:
        error.add_note(f"{counted(len(messages), 'message')} of queue {command.queue!r} could not be given back: {failure}")


async def claim_now(store: AsyncStore, command: Claim) -> list[Message]:
    """Claim what is due at this moment."""
    messages, _ = await _ask_once(store, command, time.monotonic)
    return messages


async def _ask_once(store: AsyncStore, command: Claim, now: Callable[[], float]) -> tuple[list[Message], float]:
    started = now()
    claimed = await store.execute(command)
    while not claimed.messages and claimed.due_in_s == 0.0:
        # More leases had ended than one claim looks after, and those it saw were out of attempts.
        started = now()
        claimed = await store.execute(command)
    return claimed.messages, started
