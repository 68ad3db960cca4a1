"""From a script's reply to the command's answer, or to the error that the command itself would raise."""

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import convert, msgpack

from holdfast.commands import Command, refused
from holdfast.errors import HoldfastError
from holdfast.records import Receipt, seconds_in
from holdfast.stores.redis.requests import answer_to
from holdfast.stores.redis.wire import KeptLease

R = TypeVar("R")


def _lease_held(facts: dict[str, Any]) -> HoldfastError:
    return refused.lease_held(convert(facts["lease"], KeptLease).lease(), seconds_in(facts["ends_in"]))


REFUSALS: dict[str, Callable[[dict[str, Any]], HoldfastError]] = {
    "QueueFull": lambda facts: refused.queue_full(**facts),
    "KeyInFlight": lambda facts: refused.key_in_flight(**facts),
    "ClaimLost": lambda facts: refused.claims_lost([Receipt(*receipt) for receipt in facts["lost"]], facts["of"]),
    "LeaseHeld": _lease_held,
    "LeaseLost": lambda facts: refused.lease_lost(facts.get("dict"), facts["key"], facts["lease_id"]),
    "NotWritten": lambda facts: refused.not_written(facts["dict"], facts["key"], facts["because"], facts.get("lease")),
    "FenceTooHigh": lambda facts: refused.fence_too_high(**facts),
    "NoNumber": lambda facts: refused.no_number(**facts),
    "NumberRange": lambda facts: refused.out_of_range(**facts),
    "Compacted": lambda facts: refused.compacted(**facts),
    "AnswerTooLarge": lambda _: refused.answer_too_large(),
    "NotEmpty": lambda _: refused.not_empty(),
    "OtherCopy": lambda facts: refused.other_copy(**facts),
    "NoCopy": lambda facts: refused.no_copy(**facts),
    "OtherPlace": lambda facts: refused.other_place(**facts),
    "BothHave": lambda facts: refused.both_have(**facts),
    "WrittenMeanwhile": lambda _: refused.written_meanwhile(),
    "StoreMoved": lambda facts: refused.moved(**facts),
}


def read_reply(command: Command[R], reply: Any) -> R:
    """The answer in a reply; raises what the script refused for, of which it gives the name and the facts."""
    if isinstance(reply, list):
        name, facts = reply
        raise REFUSALS[name.decode()](msgpack.decode(facts))
    return answer_to(command, reply)
