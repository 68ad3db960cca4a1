"""The effects of a command on messages, from the command and its result, for metrics."""

from collections.abc import Collection, Iterator
from typing import Any, Literal, NamedTuple

from holdfast._async.flows.naming import messages_of
from holdfast.commands import Claimed, Command, Held, Move, Moved, Put, Puts, Settle, Together
from holdfast.commands.endings import Budget
from holdfast.records import Receipt
from holdfast.server.auth.callers import Caller, check
from holdfast.server.auth.permissions import needs_of
from holdfast.stores import AsyncStore

Op = Literal["put", "claimed", "done", "ready", "dead", "removed"]

MOVES: dict[str, Op] = {"ready": "ready", "dead": "dead", "gone": "removed", "due": "ready"}


class Effect(NamedTuple):
    """So many messages of a queue were put, claimed or ended in one way."""

    queue: str
    op: Op
    messages: int


def parts_of(command: Command[Any], answer: Any) -> Iterator[tuple[Command[Any], Any]]:
    """The command and its answer; of a step, each of its commands with its own."""
    if isinstance(command, Together):
        for step, part in zip(command.commands, answer, strict=True):
            yield from parts_of(step, part)
    else:
        yield command, answer


def effects_of(command: Command[Any], answer: Any, last: Collection[Receipt] = ()) -> Iterator[Effect]:
    """What the command did; `last` are the claims whose failure is one too many for their message."""
    for step, part in parts_of(command, answer):
        if isinstance(step, Put) and isinstance(part, Puts):
            yield Effect(step.queue, "put", sum(part.created))
        elif isinstance(part, Claimed) and part.messages:
            yield Effect(part.messages[0].queue, "claimed", len(part.messages))
        elif isinstance(step, Settle) and isinstance(part, Held):
            for receipt, is_held in zip(step.receipts, part.held, strict=True):
                yield Effect(receipt.queue, "dead" if receipt in last else step.to, is_held)
        elif isinstance(step, Move) and isinstance(part, Moved):
            yield Effect(step.queue, MOVES[step.to], len(part.ids))


async def last_failures(store: AsyncStore, command: Command[Any], caller: Caller) -> Collection[Receipt]:
    """The claims in the command whose failure buries their message; ask before it is executed.

    Only the store decides that, and its answer does not say so. But nothing changes the failures of a message while it is held.
    """
    last: set[Receipt] = set()
    for settle in _failing(command):
        for need in needs_of(settle):
            check(caller, need)
        budget = Budget(settle.max_attempts)
        for queue in {receipt.queue for receipt in settle.receipts}:
            receipts = {receipt.id: receipt for receipt in settle.receipts if receipt.queue == queue}
            async for page in messages_of(store, caller.namespace.inside(queue), list(receipts)):
                last.update(receipts[each.id] for each in page if budget.is_spent(each, each.failures + 1))
    return last


def _failing(command: Command[Any]) -> Iterator[Settle]:
    if isinstance(command, Together):
        for step in command.commands:
            yield from _failing(step)
    elif isinstance(command, Settle) and command.counts and command.to == "ready":
        yield command
