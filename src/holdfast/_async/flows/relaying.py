"""Passes due messages of a queue to a function, one after the other."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from holdfast._async.flows.claiming import claim_since
from holdfast._async.flows.holding import AsyncHolding
from holdfast.backoff import Backoff
from holdfast.client import ControlPlaneClient
from holdfast.codec import JSON
from holdfast.commands import Claim, Settle
from holdfast.errors import ClaimLost
from holdfast.holding.hold import Hold
from holdfast.records import Message

BACKOFF = Backoff(first_s=1.0, most_s=300.0)

_log = logging.getLogger("holdfast")


class Relayed(Struct, frozen=True):
    """How many were handed on, and how many could not be and will be tried again."""

    delivered: int = 0
    failed: int = 0


async def relay(
    client: ControlPlaneClient,
    queue: str,
    deliver: Callable[[Any], Awaitable[None]],
    *,
    lease_s: float,
) -> Relayed:
    """Hand on what is due, each at least once and renewed while it takes; what fails comes back later, longer each time.

    Several relays share the work. One that dies leaves what it held to the others.
    """
    delivered = failed = 0
    command = Claim(queue, "relay", lease_s)
    while True:
        messages, started = await claim_since(client.async_store, command, None, now=client.keepalive.now)
        if not messages:
            return Relayed(delivered, failed)
        hold = Hold(messages[0].receipt, lease_s, started, client.keepalive.now)
        if await _hand_on(client, messages[0], hold, deliver):
            delivered += 1
        else:
            failed += 1


async def _hand_on(client: ControlPlaneClient, message: Message, hold: Hold, deliver: Callable[[Any], Awaitable[None]]) -> bool:
    holding = AsyncHolding(client.keepalive, hold)

    async def settle(**how: Any) -> bool:
        held = (await client.async_store.execute(Settle([message.receipt], **how))).held[0]
        if held:
            hold.end()
        return held

    async def give_back() -> bool:
        return await settle(to="ready")

    async def fail() -> bool:
        return await settle(to="ready", counts=True, delay_s=BACKOFF.delay_s(message.failures + 1))

    try:
        await deliver(JSON.decode(message.value))
    except Exception as error:  # noqa: BLE001 - foreign code, and the others are still to be handed on
        _log.warning("message %s of %s could not be relayed, and is retried", message.id, message.queue, exc_info=error)
        await holding.leave(error, fail)
        return False
    except BaseException as error:
        await holding.leave(error, give_back)
        raise
    try:
        await holding.leave(None, settle)
    except ClaimLost:
        _log.warning("message %s of %s took longer than its lease, and is relayed again", message.id, message.queue)
        return False
    return True
