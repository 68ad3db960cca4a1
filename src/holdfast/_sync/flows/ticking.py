# Generated from src/holdfast/_async/flows/ticking.py by tools/unasync.py; do not edit.
"""Puts the runs of schedules when they are due: any number of processes do, and each run is put once."""

import logging
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from holdfast._sync.flows.schedule_book import ScheduleBook, Stored, schedule_of, schedules_of
from holdfast._sync.flows.working.registering import workers
from holdfast.codec import encode_key
from holdfast.commands import Browse, Change, Put, Puts, Together, Write
from holdfast.commands.topics import dict_topic, watch_topic
from holdfast.errors import Closed, NotAllowed, QueueFull, Refused, StoreError, StoreUnavailable
from holdfast.schedules.definition import Synced
from holdfast.schedules.entries import REMOVED_US, SCHEDULES, SKIPPED, Due, ScheduleEntry, due, shown
from holdfast.schedules.rules import SECOND
from holdfast.schedules.turns import PEERS_S, Peers
from holdfast.stores import Store
from holdfast.workers.running.wakeup import Bell

POLL_S = 60.0
"""How much a missed wake-up can cost a schedule that was just saved."""

AGAIN_S = 5.0
"""When to try again after an error of the store, or where a queue is full."""

QUIET_S = 1.0
"""How often what others changed is read at most, and so how late it may be known of a schedule that was just saved."""

CROWD = 50
"""Where more processes than these put runs, each reads it less often, so that all together ask the store no more often than these do."""

SEEN_US = 300 * SECOND
"""How often a schedule that this code declares is marked as seen."""

_log = logging.getLogger("holdfast.schedules")


class Look(NamedTuple):
    """When to look at a schedule again."""

    revision: int
    """As which it was looked at last; 0 if it is to be looked at again once it was read."""
    at: int | None
    """None is never, unless it is changed."""
    is_run: bool = False
    """Whether that is when it runs: then each process has its turn."""


NEVER_LOOKED = Look(0, None)


class Ticker:
    """Puts what is due until it is told to stop, from any thread. `declared` are the schedules that the code of this process has."""

    def __init__(self, store: Store, me: str, declared: Mapping[str, ScheduleEntry] | None = None) -> None:
        self._store = store
        self._me = me
        self._declared = declared or {}
        self._bell = Bell()
        self._book = ScheduleBook(store)
        self._next: dict[str, Look] = {}
        self._peers: tuple[float, Peers] = (-math.inf, Peers(me))

    def stop(self) -> None:
        """Put no more."""
        self._bell.ring()

    def begin(self) -> None:
        """Save what this code declares and put what is due, before `run`: the worker may end as soon as its queues are empty."""
        with suppress(NotAllowed, Closed):  # What comes after this says so.
            self._turn(is_fresh=True)

    def run(self) -> None:
        """Wait for what is due, and put it. Each run is a hint to all who wait: a hint is noted, and what changed is read once for many."""
        fresh_at = look_at = -math.inf
        is_stale = True
        with self._store.mark(watch_topic(dict_topic(SCHEDULES))) as mark:
            while self._bell.listen(mark):
                now = time.monotonic()
                is_fresh = is_stale and now >= min(fresh_at, look_at)
                try:
                    if is_fresh or mark.is_due or now >= look_at:
                        turn_s = self._turn(is_fresh=is_fresh)
                        look_at = math.inf if turn_s is None else time.monotonic() + turn_s
                    if is_fresh:
                        is_stale, fresh_at = False, now + QUIET_S * max(1.0, self._peers[1].count / CROWD)
                    now = time.monotonic()
                    due_s = max(0.0, look_at - now)
                    quiet_s = max(0.0, fresh_at - now) if is_stale else math.inf
                    # A due moment wakes one of those who wait on a topic; here each has a turn of its own, so it is a time-out, too.
                    self._store.wait(mark, min(quiet_s, due_s), due_s, POLL_S)
                    is_stale = True
                except NotAllowed as error:
                    _log.debug("this process puts no runs of schedules: %s", error)
                    break
                except Closed:
                    break
        self._bell.ignore()

    def _turn(self, *, is_fresh: bool) -> float | None:
        try:
            return self.tick(is_fresh=is_fresh)
        except (StoreUnavailable, StoreError) as error:
            _log.debug("schedules cannot be looked at for now: %s", error)
            return AGAIN_S

    def tick(self, *, is_fresh: bool = True) -> float | None:
        """Put what is due at this moment; return after how many seconds to look again, None if nothing will be due.

        Unless `is_fresh`, what changed is read only if there may be something to put.
        """
        now = now_of(self._store)
        if not is_fresh and (later_s := self._wakes_in(now)) != 0.0:
            return later_s
        known = self._book.read()
        if self._declare(known, now):
            known = self._book.read()
        for name in self._next.keys() - known.keys():
            del self._next[name]
        for stored in list(known.values()):
            try:
                self._look(stored, now)
            except ValueError as error:
                self._next.pop(stored.name, None)
                _log.error("schedule %s cannot be run, and is passed over: %s", stored.name, error)
        return self._wakes_in(now)

    def _wakes_in(self, now: int) -> float | None:
        """After how many seconds there may be something to put, by what was read last: 0 if it is due, None if there is nothing.

        That is at the turn of this process, or at the run itself where it is not known yet who else there will be then.
        """
        read_at, peers = self._peers
        known_until = max(now, now + (read_at + PEERS_S - time.monotonic()) * SECOND)
        moments = [
            peers.turn_at(name, at) if is_run and at <= known_until else at
            for name, (_, at, is_run) in self._next.items()
            if at is not None
        ]
        return max(0.0, (min(moments) - now) / SECOND) if moments else None

    def _look(self, stored: Stored, now: int) -> None:
        """Put what is due of one schedule, and note when to look at it again."""
        entry = stored.entry
        if entry.is_orphan(now):
            self._next.pop(stored.name, None)
            if now - (entry.seen_at or 0) > REMOVED_US:
                remove(self._store, stored)
            return
        look = self._next.get(stored.name, NEVER_LOOKED)
        if look.revision == stored.revision and entry.last <= now and (look.at is None or look.at > now):
            return
        found = due(entry, now)
        if found is not None:
            look = self._put(stored, found, now)
        else:
            look = Look(stored.revision, None if entry.paused is not None else entry.next_run(max(entry.last, 0)), is_run=True)
        self._next[stored.name] = look

    def _put(self, stored: Stored, found: Due, now: int) -> Look:
        """Put these runs, unless it is another's turn; return when to look at the schedule again."""
        if found.entry.restarted_at == now:
            _log.warning("schedule %s starts again: the clock was set back, and its last run lies ahead of it", stored.name)
        turn_at = (self._living()).turn_at(stored.name, found.runs[-1]) if found.runs else now
        if now < turn_at:
            return Look(0, turn_at)
        try:
            put = put_due(self._store, stored, found)
        except Refused:
            return Look(0, 0)  # Another one was faster, or it was edited: look at once.
        except NotAllowed as error:
            _log.debug("schedule %s is left to others: %s", stored.name, error)
            return Look(0, None)
        except QueueFull as error:
            _log.warning("schedule %s waits with its run of %s: %s", stored.name, shown(found.runs[-1]), error)
            return Look(0, now + round(AGAIN_S * SECOND))
        if put:
            _log.info("schedule %s put its run of %s into queue %r", stored.name, shown(found.runs[-1]), found.entry.queue)
        return Look(0, found.entry.next_run(found.entry.last), is_run=True)

    def _living(self) -> Peers:
        """The processes that put runs of schedules, as of lately."""
        read_at, peers = self._peers
        if time.monotonic() - read_at > PEERS_S:
            peers = Peers(self._me, {worker.incarnation for worker in workers(self._store) if worker.schedules})
            self._peers = (time.monotonic(), peers)
        return peers

    def _declare(self, known: Mapping[str, Stored], now: int) -> bool:
        """Save the schedules of this code that are new or changed, and say of the others now and then that they are still wanted."""
        has_saved = False
        for name, wanted in self._declared.items():
            there = known.get(name)
            if there is None or there.entry.definition != wanted.definition or now - (there.entry.seen_at or 0) >= SEEN_US:
                with suppress(Refused):  # Another worker saved it at the same time: the next look compares again.
                    save(self._store, name, replace(wanted, seen_at=now), now, seen_every=SEEN_US)
                has_saved = True
        return has_saved


def now_of(store: Store) -> int:
    """The moment, by the store's clock, in microseconds of the wall clock."""
    return (store.execute(Browse(SCHEDULES, ids=[]))).now + store.wall_offset_us()


def save(store: Store, name: str, wanted: ScheduleEntry, now: int, *, seen_every: int = 0) -> None:
    """Store a schedule; what became of it so far stays. A new one, and one with another rule, has its first run after now.

    Raises `Refused` if another caller changed it meanwhile.
    """
    stored = schedule_of(store, name)
    if stored is None:
        change = Change(encode_key(name), value=replace(wanted, last=now).raw, expect="absent")
        (written,) = store.execute(Write(SCHEDULES, [change]))
    else:
        was = stored.entry
        is_seen = wanted.seen_at is None or wanted.seen_at - (was.seen_at or 0) < seen_every
        if was.definition == wanted.definition and is_seen:
            return
        last = was.last if was.timing == wanted.timing else now
        kept = {name: getattr(was, name) for name in ("paused", "runs", "missed", "restarted_at")}
        (written,) = store.execute(stored.write(replace(wanted, last=last, **kept)))
    if not written.written:
        raise Refused(f"schedule {name!r} was changed by another caller at the same time; nothing was written: read it again")


def put_due(store: Store, stored: Stored, found: Due) -> list[str]:
    """Put the runs and store that they were, in one step; return the ids. Raises `Refused` if another process was faster."""
    written = stored.write(found.entry)
    if not found.runs:
        (answer,) = store.execute(written)
        if not answer.written:
            raise Refused(f"schedule {stored.name!r} was changed meanwhile")
        return []
    puts: Puts
    _, puts = store.execute(Together([written, Put(found.entry.queue, [found.entry.item(stored.name, run) for run in found.runs])]))
    skipped = puts.created.count(False)
    if skipped:
        store.execute(Write(SKIPPED, [Change(encode_key(stored.name), "increment", by=skipped)]))
    return puts.ids


def remove(store: Store, stored: Stored) -> bool:
    """Remove a schedule as it was read; False if it was changed or removed since."""
    gone = Change(encode_key(stored.name), "delete", expect="revision", revision=stored.revision)
    (written,) = store.execute(Write(SCHEDULES, [gone]))
    store.execute(Write(SKIPPED, [Change(encode_key(stored.name), "delete")]))
    return written.written


def sync(store: Store, source: str, declared: Mapping[str, ScheduleEntry], *, prune: bool) -> Synced:
    """Save what code declares, as its workers would at their start; with `prune` remove what it declared before and does not any more."""
    now = now_of(store)
    for name, wanted in declared.items():
        save(store, name, replace(wanted, seen_at=now), now)
    others = [stored for stored in schedules_of(store) if stored.entry.source == source and stored.name not in declared]
    removed = [stored.name for stored in others if prune and remove(store, stored)]
    return Synced(list(declared), removed, [stored.name for stored in others if stored.name not in removed])
