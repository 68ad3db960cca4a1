# Generated from src/holdfast/_async/flows/once.py by tools/unasync.py; do not edit.
"""Runs something once: records the start, runs it, records the result; a death in between leaves it unknown."""

import logging
import time
from collections.abc import Callable
from typing import Any

from holdfast._sync.flows.acquiring import acquire
from holdfast._sync.flows.holding import Holding
from holdfast.client import ControlPlaneClient
from holdfast.codec import Codec
from holdfast.commands import Acquire, Browse, Browsed, Change, LeaseName, Look, Looked, Read, Release, Together, Write
from holdfast.errors import ExecutionRunning, ExecutionUnknown, Refused
from holdfast.holding.hold import Hold
from holdfast.ids import new_id
from holdfast.records import Entry, Receipt
from holdfast.stores import Executor, Store
from holdfast.workers.once_record import LedgerEntry, OnceRecord, done_entry, entry_of

_log = logging.getLogger("holdfast.once")


class OnceRun:
    """One attempt to do something once."""

    def __init__(
        self, client: ControlPlaneClient, ledger: str, key: str, holder: str, lease_s: float, *, max_hold_s: float | None = None
    ) -> None:
        self._client = client
        self._store = client.store
        self._ledger = ledger
        self._key = key
        self._holder = holder
        self._lease_s = lease_s
        self._max_hold_s = max_hold_s
        self._lease_id = new_id()

    def run(self, function: Callable[[], Any], codec: Codec, *, timeout_s: float, keep_s: float | None) -> Any:
        """Return the stored result, or call the function and store its result; while another caller does, wait for `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        begun = LedgerEntry("started", self._lease_id, self._holder)
        command = Acquire(self._ledger, self._key, self._holder, self._lease_id, self._lease_s, begun.raw)
        acquired, started = acquire(self._store, command, timeout_s, now=self._client.keepalive.now)
        found = begun if acquired.entry is None else entry_of(acquired.entry.value)
        is_ours = acquired.lease.lease_id == self._lease_id
        if is_ours and found.by == self._lease_id:
            return self._do(function, codec, started, keep_s)
        is_running = not is_ours
        if is_ours:
            self._release()
            entry, is_running = standing(self._store, self._ledger, acquired.entry)
            if entry is None:
                self._lease_id = new_id()  # It ended a moment ago and did not happen, so it may.
                return self.run(function, codec, timeout_s=max(0.0, deadline - time.monotonic()), keep_s=keep_s)
            found = entry_of(entry.value)
        if found.state == "done":
            return found.decoded(codec, self._what())
        if is_running:
            raise ExecutionRunning(f"{self._what()} is being done by {found.holder} now")
        raise ExecutionUnknown(
            f"{self._what()} was begun by {found.holder}, which died: it may have happened; find out, then resolve() or forget() it"
        )

    def _do(self, function: Callable[[], Any], codec: Codec, started: float, keep_s: float | None) -> Any:
        name = LeaseName(self._ledger, self._key, self._lease_id)
        keepalive = self._client.keepalive
        holding = Holding(keepalive, Hold(name, self._lease_s, started, keepalive.now, max_hold_s=self._max_hold_s, label=self._what()))
        # Whatever it raises, it says with it that it has not happened.
        ending = Change(self._key, "delete", lease=self._lease_id)

        def settle() -> bool:
            (answer,) = self._store.execute(Write(self._ledger, [ending]))
            self._release()
            return answer.written

        try:
            result = function()
        except BaseException as error:
            holding.leave(error, settle)
            raise
        done = done_entry(self._lease_id, self._holder, result, codec, self._store.limits)
        if done.missing is not None:
            _log.warning("%s was done and will not be repeated, but its result cannot be kept: %s", self._what(), done.missing)
        ending = Change(self._key, value=done.raw, lease=self._lease_id, ttl_s=keep_s)
        holding.leave(None, settle)
        return result

    def take_back(self, store: Executor) -> None:
        """Leave nothing of a run whose function was not called, for a caller who was cut off before the grant was heard of."""
        begun = LedgerEntry("started", self._lease_id, self._holder).raw
        store.execute(Write(self._ledger, [Change(self._key, "delete", expect="value", expected=begun)]))
        store.execute(Release([LeaseName(self._ledger, self._key, self._lease_id)]))

    def _release(self) -> None:
        self._store.execute(Release([LeaseName(self._ledger, self._key, self._lease_id)]))

    def _what(self) -> str:
        return f"{self._key} of ledger {self._ledger!r}"


def standing(store: Store, ledger: str, entry: Entry | None) -> tuple[Entry | None, bool]:
    """The entry as it is now, and whether the execution that it describes still runs.

    Both are read in one step, the execution first: one that ends changes both in one step, so an entry that is still the same afterwards
    was left by an execution that will never end it.
    """
    while entry is not None and (found := entry_of(entry.value)).state == "started":
        held, entries = store.execute(Together([_holder(ledger, entry.key, found), Read(ledger, [entry.key])]))
        before, entry = entry, next(iter(entries.entries), None)
        if entry is not None and entry.revision == before.revision:
            return entry, _is_held(held, found)
    return entry, False


def _holder(ledger: str, key: str, found: LedgerEntry) -> Look | Browse:
    """What asks for the lease or the claim under which something was begun."""
    if "/" not in found.by:  # A lease of the ledger; the text of a claim has slashes.
        return Look(ledger, [key])
    receipt = Receipt.parse(found.by)
    return Browse(receipt.queue, ids=[receipt.id])


def _is_held(answer: Looked | Browsed, found: LedgerEntry) -> bool:
    if isinstance(answer, Looked):
        return any(lease is not None and lease.lease.is_under(found.by) for lease in answer.leases)
    token = Receipt.parse(found.by).token
    return any(message.token == token and message.held_at(answer.now) for message in answer.messages)


def record(store: Store, ledger: str, key: str, codec: Codec) -> OnceRecord | None:
    """What is known about something that is to happen once."""
    entry, is_running = standing(store, ledger, _entry(store, ledger, key))
    if entry is None:
        return None
    found = entry_of(entry.value)
    if found.state == "started":
        return OnceRecord("running" if is_running else "unknown", found.holder)
    result = None if found.result is None else codec.decode(found.result)
    return OnceRecord("done", found.holder, result, found.missing)


def reconcile(store: Store, ledger: str, key: str, change: Change) -> bool:
    """Change what is unknown, by a change of its entry; False if nothing is known of it. Raises `ExecutionRunning`."""
    entry, is_running = standing(store, ledger, _entry(store, ledger, key))
    if entry is None:
        return False
    if is_running:
        raise ExecutionRunning(f"{key} of ledger {ledger!r} is being done by {entry_of(entry.value).holder} now")
    same = Change(key, change.do, change.value, expect="revision", revision=entry.revision, ttl_s=change.ttl_s)
    (answer,) = store.execute(Write(ledger, [same]))
    if not answer.written:
        raise Refused(f"{key} of ledger {ledger!r} has changed meanwhile: check again")
    return True


def _entry(store: Store, ledger: str, key: str) -> Entry | None:
    return next(iter((store.execute(Read(ledger, [key]))).entries), None)
