"""Converts the ends of jobs to commands."""

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Raw, json
from msgspec.structs import replace

from holdfast.codec import encode_key
from holdfast.commands import Change, Configure, Move, Settle, Write
from holdfast.commands.endings import Budget
from holdfast.records import Message
from holdfast.workers.handlers.outcomes import Outcome
from holdfast.workers.handlers.tracebacks import trace_of
from holdfast.workers.names import errors_of, failure_key, ledger_of, progress_of, results_of
from holdfast.workers.once_record import LedgerEntry
from holdfast.workers.running.kept_errors import error_key, error_of
from holdfast.workers.running.runs import Finished, Run
from holdfast.workers.steps.map_reports import MapReports
from holdfast.workers.steps.rows import CANCELS, CHILDREN, Parent, Report, number_of, parent_in, report_key, signal_key, signals_of

__all__ = ["CANCELS", "decided", "failure_key", "is_last", "late_parents", "runs_alone", "settling_commands", "throttles_of"]


LATE = 200
"""So many of the last children of a map look whether all have ended."""

LATER = ("failed", "buried", "snoozed", "suspended")

COUNT_TTL_S = 30 * 86_400.0
"""How long the count of a job's ended children stays without another one."""


def settling_commands(finished: Sequence[Finished], progress: dict[Run, Raw]) -> list[Any]:
    """The commands of one atomic step that settles these and writes what is to be kept of them."""
    writes = _Writes()
    for run, outcome in finished:
        _remember(writes, run, outcome)
    # The last word of a run that sleeps, or is tried again, stays; what others say that have ended is of no interest.
    goes_on = {run for run, outcome in finished if not is_final(run, outcome)} if progress else ()
    for run, report in progress.items():
        if run in goes_on or not run.has_ended:
            run.has_reported = True
            writes.put(progress_of(run.message.queue), encode_key(run.message.id), report, run.options.keep_result_s)
    return [*_settles(finished), *writes.commands(), *_wake_ups(finished)]


def _settles(finished: Sequence[Finished]) -> list[Settle]:
    done = [run.receipt for run, outcome in finished if outcome.how in ("done", "cancelled")]
    back = [(run, outcome) for run, outcome in finished if outcome.how == "released" and not _waits(outcome)]
    released = [run.receipt for run, _ in back if not _is_unstarted(run)]
    unstarted = [run.receipt for run, _ in back if _is_unstarted(run)]
    settles = [Settle(done)] if done else []
    if released:
        settles.append(Settle(released, "ready", "place"))
    if unstarted:
        settles.append(Settle(unstarted, "ready", "place", unstarted=True))
    return settles + [_settle(run, outcome) for run, outcome in finished if outcome.how in LATER or _waits(outcome)]


def _waits(outcome: Outcome) -> bool:
    """Whether it is given back for later."""
    return outcome.how == "released" and outcome.delay_s is not None


def _is_unstarted(run: Run) -> bool:
    """Whether the store is to know that it never began: what it used of a rate is given back."""
    return run.is_careful and run.began_at is None


def throttles_of(finished: Sequence[Finished]) -> list[Configure]:
    """What handlers asked to be throttled, each for the longest time; no part of the step that settles them, which is under the queue."""
    longest: dict[tuple[str, str | None], float] = {}
    for run, outcome in finished:
        if outcome.throttles is not None:
            named = run.message.queue, (run.message.group or "") if outcome.throttles == "group" else None
            longest[named] = max(longest.get(named, 0.0), outcome.delay_s or 0.0)
    return [Configure("queue", queue, group=group, throttle_s=delay_s) for (queue, group), delay_s in longest.items()]


def _trace(run: Run, outcome: Outcome) -> str | None:
    """Where it failed, for a queue that keeps that."""
    if not run.keeps_trace:
        return None
    return outcome.trace if outcome.trace is not None or run.job.raised is None else trace_of(run.job.raised)


def _settle(run: Run, outcome: Outcome) -> Settle:
    options = run.options
    match outcome.how:
        case "snoozed" if outcome.throttles is not None:
            return Settle([run.receipt], "ready", "place", error=outcome.error)
        case "released":
            return Settle([run.receipt], "ready", delay_s=outcome.delay_s or 0.0, unstarted=_is_unstarted(run))
        case "snoozed" | "suspended":
            return Settle([run.receipt], "ready", delay_s=outcome.delay_s or 0.0, error=outcome.error)
        case "buried":
            return Settle(
                [run.receipt], "dead", error=outcome.error, counts=True, dead_letter=options.dead_letter_queue, trace=_trace(run, outcome)
            )
        case _:
            return Settle(
                [run.receipt],
                "ready",
                delay_s=decided(run, outcome).delay_s or 0.0,
                error=outcome.error,
                counts=True,
                max_attempts=options.max_attempts,
                dead_letter=options.dead_letter_queue,
                trace=_trace(run, outcome),
            )


def decided(run: Run, outcome: Outcome) -> Outcome:
    """The outcome with the delay before the next try, which differs a little each time it is chosen."""
    if outcome.how != "failed" or outcome.delay_s is not None:
        return outcome
    return replace(outcome, delay_s=run.options.backoff.delay_s(run.message.failures + 1))


def _remember(writes: "_Writes", run: Run, outcome: Outcome) -> None:
    options, queue, message_id = run.options, run.message.queue, run.message.id
    has_ended = is_final(run, outcome)
    if options.results and outcome.how == "done" and outcome.missing is None:
        writes.put(results_of(queue), encode_key(message_id), outcome.stored, options.keep_result_s)
    elif options.results and has_ended:
        state = outcome.how if outcome.how in ("done", "cancelled") else "dead"
        report = Raw(json.encode({"state": state, "error": outcome.missing or outcome.error}))
        writes.put(results_of(queue), failure_key(message_id), report, options.keep_result_s)
    if run.ledger_key is not None and outcome.how == "done":
        entry = LedgerEntry("done", run.receipt.claim_id, run.message.holder, outcome.stored, outcome.missing)
        writes.put(ledger_of(queue), run.ledger_key, entry.raw, options.remember_s)
    elif run.ledger_key is not None and outcome.how != "lost":
        # It ended by itself and says how: whoever tries again begins afresh.
        writes.delete(ledger_of(queue), run.ledger_key)
    if options.tracebacks and outcome.how in ("failed", "buried"):
        writes.put(errors_of(queue), error_key(run), error_of(run, outcome), options.keep_result_s)
    if has_ended and run.has_reported:
        writes.delete(progress_of(queue), encode_key(message_id))
    if has_ended and run.job.stop_reason == "cancelled":
        writes.delete(CANCELS, encode_key((run.message.queue, message_id)))
    if has_ended and (parent := parent_in(run.message.metadata)) is not None:
        _report(writes, parent, run.message, outcome)


def _report(writes: "_Writes", parent: Parent, message: Message, outcome: Outcome) -> None:
    """Tell the job that waits for it how a child ended."""
    kept = outcome.how == "done" and outcome.missing is None
    state: Literal["done", "failed", "cancelled"] = "done" if kept else "cancelled" if outcome.how == "cancelled" else "failed"
    report = Report(state, outcome.stored if kept else None, None if kept else outcome.missing or outcome.error)
    if parent.marks is not None and parent.total:
        writes.reports.add(parent.marks, number_of(parent, message.id), report, message)
        return
    if parent.marks is not None:
        writes.put(parent.marks, encode_key(number_of(parent, message.id)), report.raw, None)
        return
    writes.put(signals_of(parent.queue), report_key(parent.id, message.id), report.raw, None)
    writes.count(signals_of(parent.queue), signal_key(parent.id, CHILDREN))


def _with_parents(finished: Sequence[Finished]) -> list[tuple[Run, Parent]]:
    """Those that ended for good and have a parent that waits for them."""
    return [
        (run, parent)
        for run, outcome in finished
        if run.message.metadata is not None and (parent := parent_in(run.message.metadata)) is not None and is_final(run, outcome)
    ]


def _wake_ups(finished: Sequence[Finished]) -> list[Move]:
    """What ends the sleep of the parents of those that ended for good; one that is settled in the same step sees it for itself."""
    parents = {(parent.queue, parent.id): None for _, parent in _with_parents(finished) if not parent.total}
    if not parents:
        return []
    for run, _ in finished:
        parents.pop((run.message.queue, run.message.id), None)
    by_queue: dict[str, list[str]] = {}
    for queue, parent_id in parents:
        by_queue.setdefault(queue, []).append(parent_id)
    return [Move(queue, "due", ids) for queue, ids in by_queue.items()]


def late_parents(settled: Sequence[Finished]) -> list[Parent]:
    """The parents of maps of which the last child may have ended now, each once; one that is missed looks for itself."""
    found: dict[str, Parent] = {}
    for run, parent in _with_parents(settled):
        if (
            parent.marks is not None
            and parent.total
            and (number_of(parent, run.message.id) >= parent.total - LATE or run.message.attempts > 1)
        ):
            found[parent.marks] = parent
    return list(found.values())


def is_final(run: Run, outcome: Outcome) -> bool:
    """Whether a job ended for good, at least until someone redrives it."""
    return outcome.how in ("done", "cancelled", "buried") or (outcome.how == "failed" and is_last(run))


def is_last(run: Run) -> bool:
    """Whether another failure of this run's message is its last."""
    return Budget(run.options.max_attempts).is_spent(run.message, run.message.failures + 1)


def runs_alone(run: Run) -> bool:
    """Whether nothing is to be held behind it, nor it behind anything: it has one attempt left, or a worker died with it.

    A worker that dies burns an attempt of all it holds. So what kills workers takes nothing else along once it has, and what has one
    attempt left does not lose it to others.
    """
    message = run.message
    return is_last(run) or (message.failures > 0 and any(ending.how == "expired" for ending in message.history))


class _Writes:
    """Changes by dict; one key is changed once."""

    def __init__(self) -> None:
        self._changes: dict[str, dict[str, Change]] = {}
        self.reports = MapReports()

    def put(self, name: str, key: str, value: Raw | None, ttl_s: float | None) -> None:
        self._add(name, Change(key, value=Raw(b"null") if value is None else value, ttl_s=ttl_s))

    def count(self, name: str, key: str) -> None:
        known = self._changes.get(name, {}).get(key)
        self._add(name, Change(key, "increment", by=1 if known is None else known.by + 1, ttl_s=COUNT_TTL_S))

    def delete(self, name: str, key: str) -> None:
        self._add(name, Change(key, "delete"))

    def _add(self, name: str, change: Change) -> None:
        self._changes.setdefault(name, {})[change.key] = change

    def commands(self) -> list[Write]:
        return [*(Write(name, [*changes.values()]) for name, changes in self._changes.items()), *self.reports.commands()]
