"""The claim that a call of a queue asks for, and how long it is held."""

from typing import Any, Final

from msgspec import UNSET, UnsetType

from holdfast.codec.call_fields import HELD_S
from holdfast.commands import Claim
from holdfast.holding.hold import claimer_of, lease_of
from holdfast.records import Message

LEASE_S: Final[float] = 60.0
"""How long a claim lasts where neither the call nor the queue says so. A call that says nothing has this very object as its default."""


def make_claim(queue: str, claimer: str | None, lease_s: float, limit: int = 1, **fields: Any) -> Claim:
    """The command; without `lease_s` the queue's own counts, if it has one."""
    if lease_s is LEASE_S:
        return Claim(queue, claimer_of(claimer), LEASE_S, limit, by_policy=True, **fields)
    return Claim(queue, claimer_of(claimer), HELD_S.check(lease_s), limit, **fields)


def held_s(command: Claim, message: Message) -> float | None:
    """How long what was claimed by the command is held."""
    return lease_of(message) if command.by_policy else command.lease_s


def given_delay(delay_s: float | None) -> float | UnsetType:
    """The delay of a failure as a `Settle` has it; None leaves that to the queue."""
    return UNSET if delay_s is None else delay_s
