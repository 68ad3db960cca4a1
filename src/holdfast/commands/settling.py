"""Extending and ending claims that are still held."""

from collections.abc import Collection, Iterator, Sequence
from operator import is_
from typing import Any, ClassVar, Literal, Self

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import force_setattr, replace

from holdfast.codec import Limits, check_batch, check_name, keepable
from holdfast.codec.fields import (
    ALL_OR_NONE,
    COUNTS,
    DELAY_S,
    EXTENSION_S,
    MAX_ATTEMPTS,
    PROGRESS,
    TRACE_BYTES,
    UNSTARTED,
    Field,
    check_fields,
)
from holdfast.commands.argument_checks import RETURNS, check_choice
from holdfast.commands.command import Command, Resource, as_a_whole
from holdfast.commands.endings import Budget, Endings, announce, by_queue, event, plan_endings, promote
from holdfast.commands.history import finish
from holdfast.commands.lanes import follow, give_back
from holdfast.commands.names import Renamer, Verb, later, renamed
from holdfast.commands.plain import is_plain
from holdfast.commands.refusal_errors import claims_lost
from holdfast.commands.transaction import Transaction
from holdfast.records import ERROR_CHARACTERS, Message, Receipt, ReturnTo, end_of, moment_in
from holdfast.records.policies import Policy

ENDINGS = ("done", "ready", "dead")


class Held(Struct, frozen=True, gc=False):
    """Which claims were still held, in the order asked."""

    held: list[bool]


class Extend(Command[Held], frozen=True):
    """Renew claims from now on; 0 seconds end them now, None never."""

    verb: ClassVar[Verb] = "claim"
    answer_type: ClassVar[Any] = Held
    checked: ClassVar[tuple[Field, ...]] = (EXTENSION_S, ALL_OR_NONE, PROGRESS)

    plain_fields: ClassVar[tuple[str, ...]] = ("id", "receipts", "lease_s", "all_or_none", "progress")

    receipts: Sequence[Receipt]
    lease_s: float | None
    all_or_none: bool = False
    progress: bool = False
    """Whether the holder got on: the failures before no longer count against the budget."""

    def __post_init__(self) -> None:
        check_fields(self, self.checked)

    def named(self, names: Renamer) -> Self:
        return renamed(self, receipts=_receipts(self, names))

    def measure(self, limits: Limits) -> int:
        return check_batch(len(self.receipts), 0, limits)

    def plain(self, *also: str) -> bool:
        """Whether it renews one claim."""
        return len(self.receipts) == 1 and self.lease_s != 0 and is_plain(self, also)

    def touches(self) -> Iterator[tuple[Resource, bool]]:
        return touched(self.receipts)

    def strictly(self) -> "Extend":
        return as_a_whole(self)

    def check(self, tx: Transaction) -> list[Message | None]:
        return check_held(tx, self.receipts, all_or_none=self.all_or_none)

    def write(self, tx: Transaction, plan: list[Message | None]) -> Held:
        held = [message for message in plan if message is not None]
        if held:
            tx.extend(held, end_of(tx.now, self.lease_s))
        if self.progress and any(message.failures for message in held):
            for queue, messages in by_queue(held).items():
                # As they are by now: another command of the same step may have changed their metadata.
                extended = tx.messages(queue, [message.id for message in messages])
                tx.save([replace(message, failures=0) for message in extended if message.failures])
        if self.lease_s == 0:
            announce(tx, held)
        return Held([message is not None for message in plan])


class Settle(Command[Held], frozen=True):
    """End claims: acknowledge, release, fail, snooze and dead-letter are this one command."""

    verb: ClassVar[Verb] = "claim"
    answer_type: ClassVar[Any] = Held
    checked: ClassVar[tuple[Field, ...]] = (DELAY_S, COUNTS, MAX_ATTEMPTS, ALL_OR_NONE, UNSTARTED)

    plain_fields: ClassVar[tuple[str, ...]] = (
        *("id", "receipts", "to", "return_to", "delay_s", "error", "counts", "max_attempts", "dead_letter", "all_or_none"),
    )

    receipts: Sequence[Receipt]
    to: Literal["done", "ready", "dead"] = "done"
    return_to: ReturnTo = "back"
    delay_s: float | UnsetType = UNSET
    """Left out it is what the queue's policy says of a failure, else 0."""
    error: str | None = None
    """Cut to 4,000 characters, with U+FFFD for what not every store can keep: the character 0 and lone surrogates."""
    counts: bool = False
    """Whether it is a failure, which is what a budget counts."""
    max_attempts: int | None = None
    dead_letter: str | None = None
    all_or_none: bool = False
    unstarted: bool = False
    """Whether no work was begun: then what the claim used of a rate is given back, where nothing was claimed under it since."""
    trace: str | None = None
    """A traceback, kept beside the error; its end is kept where it is longer than 16 KiB."""

    def __post_init__(self) -> None:
        if self.to not in ENDINGS or self.return_to not in RETURNS:
            check_choice(self.to, ENDINGS, "to")
            check_choice(self.return_to, RETURNS, "return_to")
        if self.dead_letter is not None:
            check_name(self.dead_letter, "dead-letter queue")
        # Every settling pays for this, so what is plain is passed without a call.
        are_flags = type(self.counts) is bool and type(self.all_or_none) is bool
        if not are_flags or self.delay_s is not UNSET or self.max_attempts is not None or self.unstarted is not False:
            check_fields(self, self.checked)
        if self.error is not None:
            force_setattr(self, "error", keepable(self.error[:ERROR_CHARACTERS]))
        if self.trace is not None:
            force_setattr(self, "trace", end_of_text(self.trace))

    def named(self, names: Renamer) -> Self:
        return renamed(self, receipts=_receipts(self, names), dead_letter=later(names, self.dead_letter))

    def measure(self, limits: Limits) -> int:
        return check_batch(len(self.receipts), 0, limits)

    def plain(self, *also: str) -> bool:
        """Whether it settles different messages of one queue."""
        receipts = self.receipts
        if len(receipts) != 1:
            queues, ids = {receipt.queue for receipt in receipts}, {receipt.id for receipt in receipts}
            if len(queues) != 1 or len(ids) < len(receipts):
                return False
        return is_plain(self, also)

    def touches(self) -> Iterator[tuple[Resource, bool]]:
        return touched(self.receipts)

    def strictly(self) -> "Settle":
        return as_a_whole(self)

    def check(self, tx: Transaction) -> tuple[list[Message | None], list[Endings]]:
        claims = check_held(tx, self.receipts, all_or_none=self.all_or_none)
        if self.to == "done":
            return claims, []
        groups = by_queue(message for message in claims if message is not None)
        return claims, [self._end(tx, queue, messages) for queue, messages in groups.items()]

    def _end(self, tx: Transaction, queue: str, messages: list[Message]) -> Endings:
        settings = tx.settings("queue", queue)
        policy = None if settings is None else settings.policy
        endings = plan_endings(tx, queue, messages, policy)
        budget = Budget.of(Budget(self.max_attempts, self.dead_letter), policy)
        if self.trace is not None:
            messages = [replace(message, trace=self.trace) for message in messages]
        for message in messages:
            if self.to == "dead" or (self.counts and budget.is_spent(message, message.failures + 1)):
                ending = message.ending(tx.now, "buried", self.error)
                endings.bury(tx, message, budget.burial_place(message), ending, failed=self.counts)
            else:
                ending = message.ending(tx.now, "failed" if self.counts else "released", self.error)
                position = endings.position(tx, message, self.return_to, tx.now, self._delay(message, policy))
                endings.release(message, position, ending, failed=self.counts)
        return endings

    def _delay(self, message: Message, policy: Policy | None) -> int:
        if self.delay_s is not UNSET:
            return moment_in(self.delay_s)
        return policy.delay_after(message.failures + 1) if self.counts and policy is not None else 0

    def write(self, tx: Transaction, plan: tuple[list[Message | None], list[Endings]]) -> Held:
        claims, all_endings = plan
        held = [message for message in claims if message is not None]
        groups = by_queue(held)
        how: dict[str, Any] = {"to": self.to, "failed": True} if self.counts and self.to != "done" else {"to": self.to}
        drafts = [event(queue, "settled", messages, **how) for queue, messages in groups.items()]
        for endings in all_endings:
            endings.write(tx)
            drafts += endings.drafts()
        if drafts:
            tx.append(drafts)
        if self.to == "done":
            for queue, messages in groups.items():
                finish(tx, queue, messages, self.trace)
                promote(tx, queue, messages)
        if self.unstarted:
            for queue, messages in groups.items():
                give_back(tx, queue, messages)
        follow(tx, held, [message for endings in all_endings for message in endings.entered])
        return Held([message is not None for message in claims])


def check_held(tx: Transaction, receipts: Sequence[Receipt], *, all_or_none: bool) -> list[Message | None]:
    """The message that each receipt still holds; a receipt that stands twice counts once."""
    different = dict.fromkeys(receipts) if len(receipts) > 1 else receipts
    claims = _held(tx, different)
    if len(claims) != len(receipts):
        found = dict(zip(different, claims, strict=True))
        claims = [found.pop(receipt, None) for receipt in receipts]
    if all_or_none and None in claims:
        lost = [receipt for receipt, claim in zip(receipts, claims, strict=True) if claim is None]
        raise claims_lost(lost, len(receipts))
    return claims


def _held(tx: Transaction, receipts: Collection[Receipt]) -> list[Message | None]:
    """For each receipt the message it still holds, without its value."""
    ids: dict[str, list[str]] = {}
    for receipt in receipts:
        ids.setdefault(receipt.queue, []).append(receipt.id)
    found = {queue: {message.id: message for message in tx.messages(queue, wanted)} for queue, wanted in ids.items()}
    held, now = list[Message | None](), tx.now
    for receipt in receipts:
        message = found[receipt.queue].get(receipt.id)
        is_held = message is not None and message.token == receipt.token and message.held_at(now)
        held.append(message if is_held else None)
    return held


def end_of_text(trace: str) -> str:
    """As much of a traceback as is kept: its end says most."""
    kept = keepable(trace).encode()[-TRACE_BYTES:]
    return kept.decode(errors="ignore")


def touched(receipts: Sequence[Receipt]) -> Iterator[tuple[Resource, bool]]:
    """What a command on these claims changes."""
    for receipt in receipts:
        yield ("queue", receipt.queue), False
        yield ("message", receipt.queue, receipt.id), True


def _receipts(command: Extend | Settle, names: Renamer) -> Sequence[Receipt]:
    queues = {queue: names.object("queue", queue, command.verb) for queue in {receipt.queue for receipt in command.receipts}}
    if all(map(is_, queues.keys(), queues.values())):
        return command.receipts
    return [renamed(receipt, queue=queues[receipt.queue]) for receipt in command.receipts]
