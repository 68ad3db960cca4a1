"""Converts a script's reply to a result, or to the error of the command."""

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import convert, msgpack

from holdfast.commands import Command, refusal_errors
from holdfast.errors import HoldfastError
from holdfast.records import Receipt, seconds_in
from holdfast.stores.redis.records import KeptLease
from holdfast.stores.redis.requests import answer_to

R = TypeVar("R")


def _lease_held(facts: dict[str, Any]) -> HoldfastError:
    return refusal_errors.lease_held(convert(facts["lease"], KeptLease).lease(), seconds_in(facts["ends_in"]))


def _not_written(facts: dict[str, Any]) -> HoldfastError:
    due_in_s = None if facts.get("due_in") is None else seconds_in(facts["due_in"])
    return refusal_errors.not_written(facts["dict"], facts["key"], facts["because"], facts.get("lease"), due_in_s)


def _shares(facts: dict[str, Any]) -> tuple[Any, ...]:
    lease, *holders = (convert(one, KeptLease).lease() for one in (facts["lease"], *facts.get("holders", ())))
    return lease, None if facts.get("ends_in") is None else seconds_in(facts["ends_in"]), holders


REFUSALS: dict[str, Callable[[dict[str, Any]], HoldfastError]] = {
    "QueueFull": lambda facts: refusal_errors.queue_full(**facts),
    "KeyInFlight": lambda facts: refusal_errors.key_in_flight(**facts),
    "KeyIsRecent": lambda facts: refusal_errors.key_is_recent(**facts),
    "IdTaken": lambda facts: refusal_errors.id_taken(**facts),
    "ClaimLost": lambda facts: refusal_errors.claims_lost([Receipt(*receipt) for receipt in facts["lost"]], facts["of"]),
    "LeaseHeld": _lease_held,
    "SharesHeld": lambda facts: refusal_errors.shares_held(facts["key"], *_shares(facts)),
    "LineFull": lambda facts: refusal_errors.line_full(facts["key"], facts["waiting"], *_shares(facts)),
    "OtherCapacity": lambda facts: refusal_errors.other_capacity(facts["key"], facts["capacity"], facts.get("asked")),
    "PlainLease": lambda facts: refusal_errors.plain_lease(convert(facts["lease"], KeptLease).lease()),
    "TooHeavy": lambda facts: refusal_errors.too_heavy(**facts),
    "LeaseLost": lambda facts: refusal_errors.lease_lost(facts.get("dict"), facts["key"], facts["lease_id"]),
    "NotWritten": _not_written,
    "FenceLost": lambda facts: refusal_errors.fence_lost(**facts),
    "FenceTooHigh": lambda facts: refusal_errors.fence_too_high(**facts),
    "NoRate": lambda facts: refusal_errors.no_rate(**facts),
    "NoNumber": lambda facts: refusal_errors.no_number(**facts),
    "NumberRange": lambda facts: refusal_errors.out_of_range(**facts),
    "Compacted": lambda facts: refusal_errors.compacted(**facts),
    "AnswerTooLarge": lambda _: refusal_errors.answer_too_large(),
    "NotEmpty": lambda _: refusal_errors.not_empty(),
    "OtherCopy": lambda facts: refusal_errors.other_copy(**facts),
    "NoCopy": lambda facts: refusal_errors.no_copy(**facts),
    "OtherPlace": lambda facts: refusal_errors.other_place(**facts),
    "BothHave": lambda facts: refusal_errors.both_have(**facts),
    "WrittenMeanwhile": lambda _: refusal_errors.written_meanwhile(),
    "PoliciesClash": lambda facts: refusal_errors.policies_clash(**facts),
    "TooManyMessages": lambda facts: refusal_errors.too_many_messages(**facts),
    "StoreMoved": lambda facts: refusal_errors.moved(**facts),
}


def read_reply(command: Command[R], reply: Any) -> R:
    """The answer in a reply; raises what the script refused for, of which it gives the name and the facts."""
    if isinstance(reply, list):
        name, facts = reply
        raise REFUSALS[name.decode()](msgpack.decode(facts))
    return answer_to(command, reply)
