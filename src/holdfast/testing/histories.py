"""Checks over what clients saw while many worked at once: what no order of the steps could explain."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from itertools import pairwise

from msgspec import Struct


class Delivery(Struct, frozen=True, gc=False):
    """One message handed to one worker, and what became of it, as the worker saw it."""

    message: str
    holder: str
    token: int
    since: int
    until: int
    """When the lease ended, on the store's clock, had nobody settled before."""
    ending: str
    """`done`, or anything else."""
    accepted: bool
    """Whether the store said that the claim was still held when it was settled."""


def leased_violations(deliveries: Iterable[Delivery], put: Collection[str], left: Collection[str] = ()) -> list[str]:
    """What a leased queue must not do: a sentence for each time it did.

    `put` are the messages whose put was acknowledged, `left` those still in the queue at the end. Deliveries come in any order; each
    was settled, or given up, after it was made.
    """
    by_message: dict[str, list[Delivery]] = defaultdict(list)
    tokens: dict[int, set[tuple[str, int]]] = defaultdict(set)
    for delivery in deliveries:
        by_message[delivery.message].append(delivery)
        tokens[delivery.token].add((delivery.holder, delivery.since))
    found = [f"token {token} was given to more than one claim" for token, claims in tokens.items() if len(claims) > 1]
    for message, mine in by_message.items():
        found += _message_violations(message, sorted(mine, key=lambda delivery: delivery.token))
        if message not in put:
            found.append(f"message {message} was handed out and never put")
    done = {message for message, mine in by_message.items() if any(d.ending == "done" and d.accepted for d in mine)}
    found += [f"message {message} is lost: it was put, and is neither done nor left" for message in put if message not in done | set(left)]
    found += [f"message {message} is done and still there" for message in left if message in done]
    return found


def _message_violations(message: str, deliveries: list[Delivery]) -> list[str]:
    """What went wrong with one message, its deliveries in order of their tokens."""
    found = []
    done = [delivery for delivery in deliveries if delivery.ending == "done" and delivery.accepted]
    if len(done) > 1:
        found.append(f"message {message} was done {len(done)} times")
    for earlier, later in pairwise(deliveries):
        if later.since < earlier.since:
            found.append(f"message {message}: token {later.token} is larger than {earlier.token} and was given out earlier")
        if later.since < earlier.until and not earlier.accepted:
            found.append(f"message {message} was held twice: under token {earlier.token} and, before its lease ended, under {later.token}")
        if earlier.ending == "done" and earlier.accepted:
            found.append(f"message {message} was done under token {earlier.token} and handed out again under {later.token}")
    return found


class Settled(Struct, frozen=True, gc=False):
    """One settling, in the order in which the store did it (`at`), and whether it was accepted."""

    message: str
    token: int
    at: int
    accepted: bool


def stale_settles(deliveries: Iterable[Delivery], settles: Iterable[Settled]) -> list[str]:
    """Settlings that were accepted although a newer claim had been given out before, or after their lease had ended."""
    claims: dict[str, list[Delivery]] = defaultdict(list)
    for delivery in deliveries:
        claims[delivery.message].append(delivery)
    found = []
    for settled in settles:
        if not settled.accepted:
            continue
        mine = [delivery for delivery in claims[settled.message] if delivery.token == settled.token]
        newer = [delivery for delivery in claims[settled.message] if delivery.token > settled.token and delivery.since < settled.at]
        if not mine:
            found.append(f"message {settled.message} was settled under token {settled.token}, which nobody was given")
        elif newer:
            found.append(f"message {settled.message} was settled under token {settled.token} while {newer[0].token} held it")
        elif mine[0].until <= settled.at:
            found.append(f"message {settled.message} was settled under token {settled.token} after its lease had ended")
    return found
