"""Commands of one commit that are alike, carried out together: a statement for all costs little more than one for each.

Callers who share a commit asked at the same time, so claims and settlements may go in any order; puts into one queue keep theirs.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, Protocol

from holdfast.commands import Claim, Claimed, Command, Held, Put, Puts, Settle
from holdfast.commands.endings import told
from holdfast.commands.topics import queue_topic
from holdfast.commands.transaction import Draft
from holdfast.records import NEVER, end_of
from holdfast.stores.group_commit import Job
from holdfast.stores.sqlite.counts import LEASED, READY
from holdfast.stores.sqlite.fast.commands import has_odd, is_plain, is_plain_line, leased, put_many, settle_many
from holdfast.stores.sqlite.fast.lanes import follow_settled, told_settled
from holdfast.stores.sqlite.fast.sql_transaction import SqlTransaction
from holdfast.stores.sqlite.rows import is_large
from holdfast.stores.sqlite.statements import SQL

SHORTEST_S: Final = 0.001
"""A lease that is shorter may end before the next claim of its commit, which would have to look after it."""


class SharedTransaction(SqlTransaction, Protocol):
    """A transaction that looks up and keeps the answers to several commands at once."""

    def recalled(self, command_ids: Sequence[str]) -> set[str]: ...

    def record_each(self, notes: Sequence[tuple[str, bytes]]) -> None: ...


def carry_out_alike(tx: SharedTransaction, jobs: Sequence[Job]) -> Iterator[Job]:
    """Carry out what goes together; the others are handed out in their order, each to be carried out before the next."""
    for family, stretch in groupby(jobs, key=lambda job: _family(job.command)):
        alike = list(stretch)
        yield from alike if family is None or len(alike) == 1 else _carry_out(tx, alike)


def _family(command: Command[Any]) -> str | None:
    """What may share statements with others of the same kind and queue, and be reordered with others of the same family."""
    if type(command) is Put:
        return "put" if len(command.items) == 1 and _is_plain_put(command) else None
    if type(command) is Claim:
        is_long = command.lease_s is None or command.lease_s >= SHORTEST_S
        return "work" if is_long and command.limit == 1 and command.plain() else None
    return "work" if type(command) is Settle and len(command.receipts) == 1 and command.to == "done" and command.plain() else None


def _is_plain_put(command: Put) -> bool:
    item = command.items[0]
    return command.plain() and not is_large(item.value) and is_plain(item)


def _carry_out(tx: SharedTransaction, jobs: list[Job]) -> list[Job]:
    """Answer what can be answered together, and give back what takes the rules."""
    groups: dict[tuple[type, str], list[Job]] = {}
    for job in _new(tx, jobs):
        groups.setdefault((type(job.command), _queue(job.command)), []).append(job)
    done: dict[Job, None] = {}
    for (kind, queue), alike in groups.items():
        if len(alike) > 1:
            done.update(dict.fromkeys(_TOGETHER[kind](tx, queue, alike)))
    tx.record_each([(job.command.id, job.command.note(job.answer)) for job in done if job.command.id])
    return [job for job in jobs if job not in done]


def _new(tx: SharedTransaction, jobs: list[Job]) -> list[Job]:
    """Those that are not executed yet, nor repeat another of these."""
    ids = [job.command.id for job in jobs if job.command.id]
    if not ids:
        return jobs
    known, new = tx.recalled(ids), []
    for job in jobs:
        if job.command.id not in known:
            new.append(job)
        if job.command.id:
            known.add(job.command.id)
    return new


def _queue(command: Any) -> str:
    queue: str = command.receipts[0].queue if type(command) is Settle else command.queue
    return queue


def _put(tx: SharedTransaction, queue: str, jobs: list[Job]) -> list[Job]:
    commands: list[Any] = [job.command for job in jobs]
    items = [command.items[0] for command in commands]
    if not put_many(tx, queue, items, {item.id for item in items}):
        return []
    tx.shift(queue, READY, len(items))
    topic = queue_topic(queue)
    tx.append([Draft(topic, "put", {"ids": [item.id]}) for item in items])
    tx.hints.wake(topic, len(items))
    for job, item in zip(jobs, items, strict=True):
        job.answer, job.error = Puts([item.id], [True]), None
    return jobs


def _claim(tx: SharedTransaction, queue: str, jobs: list[Job]) -> list[Job]:
    """To each the next in line, while no lease has ended."""
    rows = tx.head_rows(queue, len(jobs))
    if len(rows) < len(jobs) or not is_plain_line(rows[0]) or has_odd(rows):
        return []
    commands: list[Any] = [job.command for job in jobs]
    claimed = list(zip(commands, rows, strict=True))
    topic = queue_topic(queue)
    first = tx.append([Draft(topic, "claimed", told([row[1]], [row[2]], {"holder": command.holder})) for command, row in claimed])
    leases = []
    for token, (job, (command, row)) in enumerate(zip(jobs, claimed, strict=True), first):
        until = end_of(tx.now, command.lease_s)
        claim = (command.holder, token, tx.now, until, command.expired_to)
        leases.append((until if until < NEVER else None, *claim, row[0]))
        job.answer, job.error = Claimed([leased(queue, row, claim)]), None
    tx.sql.executemany(SQL["lease_one"], leases)
    tx.shift(queue, READY, -len(leases))
    tx.shift(queue, LEASED, len(leases))
    return jobs


def _settle(tx: SharedTransaction, queue: str, jobs: list[Job]) -> list[Job]:
    """Those that still hold something; of two with one receipt, the first. Of two claims on one message each is settled for itself."""
    first: dict[str, tuple[Job, int]] = {}
    for job in jobs:
        command: Any = job.command
        receipt = command.receipts[0]
        if first.setdefault(receipt.id, (job, receipt.token))[1] != receipt.token:
            return []
    gone = settle_many(tx, queue, {message_id: token for message_id, (_, token) in first.items()})
    done = {message_id: job for message_id, (job, _) in first.items() if message_id in gone}
    if done:
        topic = queue_topic(queue)
        tx.append([Draft(topic, "settled", told_settled([message_id], [gone[message_id]])) for message_id in done])
        tx.shift(queue, LEASED, -len(done))
        follow_settled(tx, queue, gone.values())
    for job in done.values():
        job.answer, job.error = Held([True]), None
    return list(done.values())


_TOGETHER: Final[dict[type, Callable[[SharedTransaction, str, list[Job]], list[Job]]]] = {Put: _put, Claim: _claim, Settle: _settle}
