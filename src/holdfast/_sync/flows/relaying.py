# Generated from src/holdfast/_async/flows/relaying.py by tools/unasync.py; do not edit.
"""Passes due messages of a queue to a function, one after the other."""

import logging
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from holdfast._sync.flows.claiming import claim_since
from holdfast._sync.flows.holding import Holding
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


def relay(
    client: ControlPlaneClient,
    queue: str,
    deliver: Callable[[Any], None],
    *,
    lease_s: float,
) -> Relayed:
    """Hand on what is due, each at least once and renewed while it takes; what fails comes back later, longer each time.

    Several relays share the work. One that dies leaves what it held to the others.
    """
    delivered = failed = 0
    command = Claim(queue, "relay", lease_s)
    while True:
        messages, started = claim_since(client.store, command, None, now=client.keepalive.now)
        if not messages:
            return Relayed(delivered, failed)
        hold = Hold(messages[0].receipt, lease_s, started, client.keepalive.now)
        if _hand_on(client, messages[0], hold, deliver):
            delivered += 1
        else:
            failed += 1


def _hand_on(client: ControlPlaneClient, message: Message, hold: Hold, deliver: Callable[[Any], None]) -> bool:
    holding = Holding(client.keepalive, hold)

    def settle(**how: Any) -> bool:
        held = (client.store.execute(Settle([message.receipt], **how))).held[0]
        if held:
            hold.end()
        return held

    def give_back() -> bool:
        return settle(to="ready")

    def fail() -> bool:
        return settle(to="ready", counts=True, delay_s=BACKOFF.delay_s(message.failures + 1))

    try:
        deliver(JSON.decode(message.value))
    except Exception as error:  # noqa: BLE001 - foreign code, and the others are still to be handed on
        _log.warning("message %s of %s could not be relayed, and is retried", message.id, message.queue, exc_info=error)
        holding.leave(error, fail)
        return False
    except BaseException as error:
        holding.leave(error, give_back)
        raise
    try:
        holding.leave(None, settle)
    except ClaimLost:
        _log.warning("message %s of %s took longer than its lease, and is relayed again", message.id, message.queue)
        return False
    return True
