"""What a claim sees of a queue, and what it returns."""

from collections.abc import Iterator

from msgspec import Struct

from holdfast.commands.transaction import Line, Transaction
from holdfast.records import NO_VALUE, Message

SWEEP = 100
"""How many ended leases a claim looks after beyond as many as it may hand out."""


class Claimed(Struct, frozen=True, gc=False, omit_defaults=True):
    """What was leased, or, when that is nothing, in how many seconds time alone will make something claimable."""

    messages: list[Message]
    due_in_s: float | None = None
    careful: bool = False
    """Whether a limit, a rate or a strict order makes it wrong to claim more than is worked on now."""


def key_line(tx: Transaction, queue: str, key: str) -> Line:
    """The line as a claim of one key sees it: at most one message long."""
    live = [message for message in tx.keyed(queue, [key]) if message.state != "buffered"]
    overdue = [m for m in live if m.is_late(tx.now) or (m.state == "leased" and not m.held_at(tx.now))]
    heads = [m for m in live if m.state == "ready" and m.position <= tx.now and not m.is_late(tx.now)]
    due = min((m.until if m.state == "leased" else m.position for m in live), default=None)
    return Line(tx.settings("queue", queue), list(with_values(tx, queue, heads)), overdue, due)


def with_values(tx: Transaction, queue: str, messages: list[Message]) -> Iterator[Message]:
    """The same messages, with the values of those that were read without, which are read as they are asked for."""
    bare = [message.id for message in messages if message.value is NO_VALUE]
    picked = iter(tx.messages(queue, bare, values=True) if bare else ())
    return (message.valued(next(picked).value) if message.value is NO_VALUE else message for message in messages)
