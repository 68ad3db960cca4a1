"""Claiming messages; expired leases are collected in the same step."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self

from msgspec import Struct, json

from holdfast.codec import DURATION_MAX_S, Limits, check_batch, check_name
from holdfast.codec.fields import BY_POLICY, CLAIM_KEY, HOLDER, LEASE_S, LIMIT, MAX_ATTEMPTS, TAKE, Field, check_fields
from holdfast.codec.limits import SHORT
from holdfast.commands.argument_checks import RETURNS, check_choice, check_queue
from holdfast.commands.claim_line import SWEEP, Claimed, key_line, with_values
from holdfast.commands.command import Command, Resource
from holdfast.commands.endings import Budget, Endings, bury_late, event, plan_endings, promote, resize
from holdfast.commands.lanes import follow
from holdfast.commands.names import Renamer, Verb, later, renamed
from holdfast.commands.putting import Put, item_of
from holdfast.commands.ruled_claim import RuledClaim
from holdfast.commands.settling import Settle, check_held
from holdfast.commands.transaction import Draft, Line, Transaction
from holdfast.records import NEVER, Message, Receipt, ReturnTo, end_of, seconds_in
from holdfast.records.policies import TOLD_GROUP, Policy, Settings


class Claim(Command[Claimed], frozen=True):
    """Lease what is due, or with `take` remove it."""

    verb: ClassVar[Verb] = "claim"
    answer_type: ClassVar[Any] = Claimed
    checked: ClassVar[tuple[Field, ...]] = (HOLDER, LEASE_S, LIMIT, CLAIM_KEY, TAKE, MAX_ATTEMPTS, BY_POLICY)

    plain_fields: ClassVar[tuple[str, ...]] = (
        *("id", "queue", "holder", "lease_s", "limit", "expired_to", "max_attempts", "dead_letter", "by_policy"),
    )

    queue: str
    holder: str = ""
    lease_s: float | None = None
    """None is as the queue's policy says, else a lease without end."""
    limit: int = 1
    key: str | None = None
    take: bool = False
    expired_to: ReturnTo = "place"
    """Where the messages go if this lease ends before they are settled."""
    max_attempts: int | None = None
    dead_letter: str | None = None
    by_policy: bool = False
    """Whether the `lease_s` of the queue's policy, where it has one, counts instead of this claim's."""

    def __post_init__(self) -> None:
        check_queue(self.queue)
        if self.expired_to not in RETURNS:
            check_choice(self.expired_to, RETURNS, "expired_to")
        if self.dead_letter is not None:
            check_name(self.dead_letter, "dead-letter queue")
        # Every claim pays for this, so what is plain is passed without a call.
        lease_s, limit, holder = self.lease_s, self.limit, self.holder
        is_plain = type(limit) is int and limit == 1 and type(self.take) is bool and self.max_attempts is None and self.key is None
        is_plain = is_plain and type(self.by_policy) is bool
        if (
            not is_plain
            or type(holder) is not str
            or len(holder) > SHORT
            or not holder.isprintable()
            or (lease_s is not None and (type(lease_s) is not float or not 0 < lease_s <= DURATION_MAX_S))
        ):
            check_fields(self, self.checked)

    def named(self, names: Renamer) -> Self:
        return renamed(self, queue=names.object("queue", self.queue, self.verb), dead_letter=later(names, self.dead_letter))

    def measure(self, limits: Limits) -> int:
        return check_batch(self.limit, 0, limits)

    def touches(self) -> Iterator[tuple[Resource, bool]]:
        yield ("queue", self.queue), False
        yield ("line", self.queue), True

    def check(self, tx: Transaction) -> "ClaimPlan":
        line = tx.line(self.queue, self.limit, self.limit + SWEEP) if self.key is None else key_line(tx, self.queue, self.key)
        if line.settings is None or line.settings.paused or line.settings.is_ruled:
            return ClaimPlan(line.settings)
        if not line.overdue and line.heads:
            return ClaimPlan(line.settings, tx.allowance.fitting(line.heads))
        plan = ClaimPlan(line.settings)
        plan.late = [message for message in line.overdue if message.is_late(tx.now)]
        plan.expired = [message for message in line.overdue if message.state == "leased"]
        plan.endings = self.end(tx, plan.expired, line.settings.policy)
        plan.chosen = self._choose(tx, line.heads, plan.endings)
        plan.leave_next()
        plan.due_in_s = None if plan.chosen else self._due_in_s(tx, line)
        return plan

    def end(self, tx: Transaction, expired: list[Message], policy: Policy | None) -> Endings:
        """What becomes of messages whose lease has ended."""
        endings = plan_endings(tx, self.queue, expired, policy)
        budget = self.budget(policy)
        behind = Counter(message.priority for message in expired if message.expired_to == "front")
        for message in expired:
            ending = message.ending(message.until, "expired")
            # Those that go to the front stand there in order of lease end, which is the order they come in.
            behind[message.priority] -= message.expired_to == "front"
            if budget.is_spent(message, message.failures + 1):
                endings.bury(tx, message, budget.burial_place(message), ending, failed=True)
            else:
                position = endings.position(tx, message, message.expired_to, message.until)
                before = behind[message.priority] if message.expired_to == "front" else 0
                endings.release(message, position - before, ending, failed=True)
        return endings

    def budget(self, policy: Policy | None) -> Budget:
        return Budget.of(Budget(self.max_attempts, self.dead_letter), policy)

    def lease_under(self, policy: Policy | None) -> float | None:
        """How long the lease is."""
        is_open = self.by_policy or self.lease_s is None
        return policy.lease_s if is_open and policy is not None and policy.lease_s is not None else self.lease_s

    def _choose(self, tx: Transaction, heads: list[Message], endings: Endings) -> list[Message]:
        """The first in line, among them what this very step puts back into it."""
        copies = [m for m in tx.keyed(self.queue, endings.keys) if m.state == "buffered"] if endings.keys else []
        line = [m for m in (*heads, *endings.back, *copies) if m.position <= tx.now and not m.is_late(tx.now)]
        chosen = sorted(line, key=lambda message: message.order)[: self.limit]
        return tx.allowance.fitting(with_values(tx, self.queue, chosen))

    def _due_in_s(self, tx: Transaction, line: Line) -> float | None:
        if len(line.overdue) >= self.limit + SWEEP:
            # More ended than one claim looks after, and all it saw was buried: ask again at once.
            return 0.0
        due = line.next_due
        return None if due is None or due >= NEVER else seconds_in(max(0, due - tx.now))

    def write(self, tx: Transaction, plan: "ClaimPlan") -> Claimed:
        if plan.settings is not None and plan.settings.is_ruled:
            return RuledClaim(tx, self, plan.settings).claim()
        drafts = self._write_sweep(tx, plan) if plan.expired or plan.late else []
        if not plan.chosen:
            if drafts:
                tx.append(drafts)
            return Claimed([], plan.due_in_s)
        drafts.append(event(self.queue, "claimed", plan.chosen, holder=self.holder))
        token = tx.append(drafts) + len(drafts) - 1
        until = end_of(tx.now, self.lease_under(None if plan.settings is None else plan.settings.policy))
        claim = (self.holder, token, tx.now, until, self.expired_to)
        messages = [message.leased(*claim, tied=0 if message.group is None else TOLD_GROUP) for message in plan.chosen]
        if self.take:
            self._remove(tx, plan.chosen)
        else:
            tx.lease(messages, self.holder, token, until, self.expired_to)
        if plan.settings is not None and plan.settings.maxsize is not None:
            resize(tx, self.queue, -len(messages))
        return Claimed(messages)

    def _write_sweep(self, tx: Transaction, plan: "ClaimPlan") -> list[Draft]:
        drafts = []
        if plan.expired and plan.endings is not None:
            plan.endings.write(tx)
            drafts += [event(self.queue, "expired", plan.expired), *plan.endings.drafts()]
            follow(tx, plan.expired, plan.endings.entered)
        if plan.late:
            drafts += self._drop_late(tx, plan)
        return drafts

    def _drop_late(self, tx: Transaction, plan: "ClaimPlan") -> list[Draft]:
        policy = None if plan.settings is None else plan.settings.policy
        resize(tx, self.queue, -len(plan.late))
        if policy is None or policy.late_to == "drop":
            self._remove(tx, plan.late)
            return [event(self.queue, "expired", plan.late, started=False)]
        endings = bury_late(tx, self.queue, plan.late, policy, self.budget(policy))
        return [event(self.queue, "expired", plan.late, started=False), *endings.drafts()]

    def _remove(self, tx: Transaction, messages: Sequence[Message]) -> None:
        tx.remove(messages)
        promote(tx, self.queue, messages)

    def undo(self, answer: Claimed) -> list[Command[Any]]:
        """Give back what will not be worked on; what was taken is put again, under its id."""
        if not answer.messages:
            return []
        if not self.take:
            return [Settle([message.receipt for message in answer.messages], "ready", "place", unstarted=answer.careful)]
        return [Put(self.queue, [item_of(message) for message in answer.messages])]

    def note(self, answer: Claimed) -> bytes:
        """Ids and tokens are enough to read the messages again; only what was taken is gone and is kept here."""
        return json.encode(answer.messages if self.take else [(message.id, message.token) for message in answer.messages])

    def recall(self, tx: Transaction, note: bytes) -> Claimed:
        if self.take:
            return Claimed(json.decode(note, type=list[Message]))
        claims = json.decode(note, type=list[tuple[str, int]])
        if not claims:
            return Claimed([], self._due_again(tx))
        held = check_held(tx, [Receipt(self.queue, message_id, token) for message_id, token in claims], all_or_none=False)
        return Claimed(list(with_values(tx, self.queue, [message for message in held if message is not None])))

    def _due_again(self, tx: Transaction) -> float | None:
        """When a claim that found nothing may find something, of those it could find now at once."""
        line = tx.line(self.queue, 1, 1) if self.key is None else key_line(tx, self.queue, self.key)
        if line.settings is None or line.settings.paused:
            return None
        return 0.0 if line.heads or line.overdue or line.settings.is_ruled else self._due_in_s(tx, line)


class ClaimPlan(Struct):
    """What a claim will hand out, and what becomes of the leases it found ended."""

    settings: Settings | None
    chosen: list[Message] = []
    expired: list[Message] = []
    late: list[Message] = []
    endings: Endings | None = None
    due_in_s: float | None = None

    def leave_next(self) -> None:
        """Leave to the next claims, as they are, those that go to the front and are next in line.

        Put in line now, they would stand behind what later claims collect and send to the front, too.
        """
        if self.endings is None or not self.chosen:
            return
        chosen, least = {message.n for message in self.chosen}, min(message.priority for message in self.chosen)
        left = {m.n for m in self.endings.back if m.expired_to == "front" and m.priority >= least} - chosen
        self.endings.back = [message for message in self.endings.back if message.n not in left]
        self.expired = [message for message in self.expired if message.n not in left]
