"""Leases with capacity: who is granted a share, who waits in line, and who is woken when room appears.

A waiter takes its share itself: a ticket in the line is only a place, kept by asking again. So no lease goes to a process that died.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from holdfast.commands import refusal_errors
from holdfast.commands.acquired import Acquired, ends_in_s
from holdfast.commands.topics import lease_topic, line_topic, log_topic
from holdfast.commands.transaction import Draft, Record, Transaction
from holdfast.records import NEVER, Lease, end_of
from holdfast.records.shares import SHARED_HOLDER, Share, Shared, ShareOrder

if TYPE_CHECKING:
    from holdfast.commands.leases import Acquire

SWEPT: Final = 100
"""So many ended grants, and as many ended tickets, are removed by the next caller that asks."""

HOLDERS: Final = 100
"""So many holders are named to a caller that is not granted a share."""

LINE: Final = 1_000
"""So far the line is looked at."""

ENDING: Final[tuple[ShareOrder, ...]] = ("grants", "tickets")
"""The orders by end."""


class Swept(Struct, frozen=True):
    """A name with capacity without what time has ended."""

    shared: Shared
    ended: list[Share]

    @classmethod
    def of(cls, tx: Transaction, before: Shared, lease_id: str | None = None) -> "Swept":
        """Those that ended first, and what stands under this id if it has ended."""
        own = [] if lease_id is None else tx.shares(before.key, [lease_id]).values()
        grants, tickets = (tx.find_shares(before.key, by, SWEPT) for by in ENDING)
        ended = {share.lease_id: share for share in (*grants, *tickets, *own) if share.until <= tx.now}
        return cls(without(before, list(ended.values())), list(ended.values()))

    def write(self, tx: Transaction) -> None:
        """Forget what has ended, and the name, too, unless something is left of it."""
        if drafts := self.drafts():
            tx.append(drafts)
        tx.save(self.records())

    def drafts(self) -> list[Draft]:
        """The events of grants that have ended."""
        return [told("expired", share) for share in self.ended if share.token]

    def records(self) -> list[Record]:
        """What to save."""
        return [*[share.released() for share in self.ended], self.shared]


class SharePlan(Struct):
    """What a name with capacity will be, and what the caller gets of it."""

    swept: Swept | None
    """None where the caller has its share already."""
    before: Lease | None = None
    """A plain lease that has ended."""
    grants: bool = False
    ticket: Share | None = None
    answer: Acquired | None = None


def new_shared(key: str, capacity: int) -> Shared:
    """A name with capacity that is not in use."""
    return Shared(None, key, SHARED_HOLDER, "", 0, 0, NEVER, capacity)


def check_share(command: "Acquire", capacity: int, tx: Transaction) -> SharePlan:
    """Whether there is room for the caller, behind all who came before."""
    key, lease_id = command.key, command.lease_id
    current = tx.leases([(None, key)]).get((None, key))
    if current is not None and not isinstance(current, Shared):
        if current.held_at(tx.now):
            raise refusal_errors.plain_lease(current)
        return SharePlan(Swept(new_shared(key, capacity), []), current, grants=True)
    if current is None:
        return SharePlan(Swept(new_shared(key, capacity), []), grants=True)
    own = tx.shares(key, [lease_id]).get(lease_id)
    if own is not None and own.until > tx.now and own.token:
        return SharePlan(None, answer=Acquired(own.lease, ends_in_s(tx.now, own.until)))
    ticket = own if own is not None and own.until > tx.now else None
    swept = Swept.of(tx, current, lease_id)
    swept = replace(swept, shared=_with_capacity(swept.shared, capacity))
    if command.weight > swept.shared.capacity:
        raise refusal_errors.too_heavy(key, command.weight, swept.shared.capacity)
    if swept.shared.room - _ahead(tx, swept.shared, ticket) >= command.weight:
        return SharePlan(swept, grants=True, ticket=ticket)
    return _refused(command, tx, swept, ticket)


def _with_capacity(found: Shared, asked: int) -> Shared:
    """The name with the capacity that counts: what was set, else what all who use it say."""
    if found.resized or found.capacity == asked:
        return found
    if not found.is_gone:
        raise refusal_errors.other_capacity(found.key, found.capacity, asked)
    return replace(found, capacity=asked)


def _ahead(tx: Transaction, found: Shared, ticket: Share | None) -> int:
    """The weights of all who wait before this ticket, or of all, as far as there is room for them."""
    ahead = 0
    for other in _line(tx, found):
        if ahead > found.room or (ticket is not None and other.place >= ticket.place):
            break
        ahead += other.weight
    return ahead


def _line(tx: Transaction, found: Shared) -> Iterator[Share]:
    """Those who wait, the first first."""
    if not found.waiting:
        return iter(())
    return (share for share in tx.find_shares(found.key, "line", LINE) if share.until > tx.now)


def _refused(command: "Acquire", tx: Transaction, swept: Swept, ticket: Share | None) -> SharePlan:
    """Say who is in the way, and take a place in the line if the caller wants one."""
    key, now, found = command.key, tx.now, swept.shared
    holders = list(tx.find_shares(key, "grants", HOLDERS, after=now))
    others = tx.find_shares(key, "tickets", 2, after=now)
    in_the_way = [*holders[:1], *[share for share in others if share.lease_id != command.lease_id][:1]]
    first = next(iter(_line(tx, found)), None)
    # Where only what has ended is in the way, more than is swept at once, the next one to ask goes on.
    lease = in_the_way[0].lease if in_the_way else Lease(None, key, "", "", 0, now, now)
    ends = ends_in_s(now, min(share.until for share in in_the_way)) if in_the_way else 0.0
    leases = [share.lease for share in holders]
    if command.all_or_none:
        raise refusal_errors.shares_held(key, lease, ends, leases)
    if command.in_line_s is None:
        return SharePlan(swept, answer=Acquired(lease, ends, holders=leases))
    if ticket is None and command.max_waiters is not None and found.waiting >= command.max_waiters:
        raise refusal_errors.line_full(key, found.waiting, lease, ends, leases)
    place, since = (ticket.place, ticket.since) if ticket is not None else (found.last + 1, now)
    own = Share(key, command.lease_id, command.holder, command.weight, since, end_of(now, command.in_line_s), place=place)
    answer = Acquired(lease, ends, holders=leases, place=place - (first.place if first is not None else place) + 1)
    if ticket is None:
        found = replace(found, waiting=found.waiting + 1, last=place)
    return SharePlan(replace(swept, shared=found), ticket=own, answer=answer)


def write_share(command: "Acquire", tx: Transaction, plan: SharePlan) -> Acquired:
    """Grant it, or keep the place in the line."""
    swept = plan.swept
    if plan.answer is not None and swept is None:
        return plan.answer
    assert swept is not None  # noqa: S101 - one of the two is always there
    if plan.answer is not None:
        swept.write(tx)
        if plan.ticket is not None:
            tx.save([plan.ticket])
        _wake_after(tx, swept)
        return plan.answer
    found = swept.shared
    waiting = found.waiting - (plan.ticket is not None)
    swept = Swept(replace(found, used=found.used + command.weight, waiting=waiting), swept.ended)
    drafts = [*swept.drafts(), told("acquired", command)]
    if plan.before is not None:
        drafts.insert(0, Draft(log_topic(None, command.key), "expired", {"key": command.key, "holder": plan.before.holder}))
    token = tx.append(drafts) + len(drafts) - 1
    share = Share(command.key, command.lease_id, command.holder, command.weight, tx.now, end_of(tx.now, command.lease_s), token)
    tx.save([*swept.records(), share])
    _wake_after(tx, swept)
    return Acquired(share.lease, ends_in_s(tx.now, share.until))


def recall_share(command: "Acquire", tx: Transaction, note: Acquired) -> Acquired:
    """The share if the caller has one, else the answer as it was: a repetition never takes one."""
    own = tx.shares(command.key, [command.lease_id]).get(command.lease_id)
    return Acquired(own.lease, ends_in_s(tx.now, own.until)) if own is not None and own.token and own.until > tx.now else note


def end_shares(tx: Transaction, shares: Sequence[Share], event: str = "released", **facts: object) -> None:
    """Give grants of one name back, and places in its line, which are there, and wake those who fit now."""
    key = shares[0].key
    current = tx.leases([(None, key)])[None, key]
    assert isinstance(current, Shared)  # noqa: S101 - it has shares
    ended = [told(event, share, **facts) for share in shares if share.token]
    if ended:
        tx.append(ended)
        tx.hints.wake(lease_topic(None, key), len(ended))
    left = without(current, shares)
    tx.save([*[share.released() for share in shares], left])
    wake_line(tx, left)


def without(found: Shared, gone: Sequence[Share]) -> Shared:
    """The name without these."""
    if not gone:
        return found
    used, waiting = found.used, found.waiting
    for share in gone:
        used -= share.weight if share.token else 0
        waiting -= not share.token
    return replace(found, used=used, waiting=waiting)


def _wake_after(tx: Transaction, swept: Swept) -> None:
    if swept.ended:
        wake_line(tx, swept.shared)


def wake_line(tx: Transaction, found: Shared) -> None:
    """Wake exactly those in line for whom, behind all before them, there is room."""
    room = found.room
    for share in _line(tx, found):
        room -= share.weight
        if room < 0:
            return
        tx.hints.wake(line_topic(found.key, share.lease_id), 1)


def told(event: str, share: "Share | Acquire", **facts: object) -> Draft:
    """What the log says of a grant, or of what asked for it."""
    return Draft(log_topic(None, share.key), event, {"key": share.key, "holder": share.holder, "weight": share.weight, **facts})


def seen(tx: Transaction, found: Shared, limit: int) -> Acquired | None:
    """Who holds the name, so many at most; None if there is none."""
    holders = tx.find_shares(found.key, "grants", limit, after=tx.now)
    leases = [share.lease for share in holders]
    return Acquired(leases[0], ends_in_s(tx.now, leases[0].until), holders=leases) if leases else None


def held_of(tx: Transaction, lease: Lease, limit: int) -> list[Lease]:
    """The leases that are held of one that is stored: itself, or up to so many grants of a name with capacity."""
    if isinstance(lease, Shared):
        return [share.lease for share in tx.find_shares(lease.key, "grants", limit, after=tx.now)]
    return [lease] if lease.held_at(tx.now) else []
