# Generated from src/holdfast/_async/flows/working/stepping.py by tools/unasync.py; do not edit.
"""The step of a worker: settles finished jobs, writes their results, and claims the next ones."""

import logging
from collections.abc import Iterator
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from holdfast.commands import Change, Claim, Claimed, Held, Length, Move, Together, Write
from holdfast.errors import ClaimLost, Closed, HoldfastError, NotAllowed, Refused, StoreUnavailable
from holdfast.stores import Store
from holdfast.wording import counted
from holdfast.workers.handlers.outcomes import Outcome, shown
from holdfast.workers.running.runs import Finished, Run
from holdfast.workers.running.settlements import COUNT_TTL_S, decided, late_parents, settling_commands, throttles_of
from holdfast.workers.steps.map_reports import may_be_all, read_counts
from holdfast.workers.steps.rows import CHILDREN, signal_key, signals_of

NOTHING = Claimed([])

AGAIN = Outcome("snoozed", delay_s=0.0)

_log = logging.getLogger("holdfast.worker")


def step(
    store: Store,
    finished: list[Finished],
    settled: list[Finished],
    *,
    progress: dict[Run, Raw] | None = None,
    claim: Claim | None = None,
) -> Claimed:
    """Settle these runs and claim, as one atomic step; runs whose claim was lost meanwhile are left out.

    `settled` gets those that were settled, and how. Raises `StoreUnavailable` with nothing more done, or perhaps all of it: the caller who
    asks again finds out.
    """
    finished = _settle_alone(store, _throttled(store, finished), settled)
    while True:
        commands = settling_commands(finished, progress or {})
        if claim is not None:
            commands.append(claim)
        if not commands:
            return NOTHING
        try:
            answers = _execute(store, commands)
        except ClaimLost as error:
            finished = _without(finished, error)
        except (StoreUnavailable, Closed):
            raise
        except Exception as error:
            # One run that cannot be settled must not stop the others.
            if not finished:
                raise
            _settle_each(store, finished, settled, error)
            finished = []
        else:
            held = _held(finished, commands, answers)
            settled += held
            _wake_parents(store, held)
            claimed: Claimed = answers[-1] if claim is not None else NOTHING
            return claimed


def _wake_parents(store: Store, settled: list[Finished]) -> None:
    """End the sleep of parents whose map has ended; where that is missed, they look for themselves."""
    for parent in late_parents(settled):
        if parent.marks is not None and may_be_all(store.execute(read_counts(parent.marks)), parent.total):
            count = Change(signal_key(parent.id, CHILDREN), "increment", by=1, ttl_s=COUNT_TTL_S)
            store.execute(Together([Write(signals_of(parent.queue), [count]), Move(parent.queue, "due", [parent.id])]))


def _throttled(store: Store, finished: list[Finished]) -> list[Finished]:
    """Throttle what handlers asked for, before their jobs are back in line; where that is not allowed, at least the job waits."""
    if all(outcome.throttles is None for _, outcome in finished):
        return finished
    try:
        for command in throttles_of(finished):
            store.execute(command)
    except (NotAllowed, Refused) as error:
        _log.warning("a job could not throttle its queue, and waits alone: %s", error)
        return [(run, replace(outcome, throttles=None)) for run, outcome in finished]
    return finished


def _execute(store: Store, commands: list[Any]) -> list[Any]:
    if len(commands) == 1:
        return [store.execute(commands[0])]
    answers: list[Any] = store.execute(Together(commands))
    return answers


def _settle_alone(store: Store, finished: list[Finished], settled: list[Finished]) -> list[Finished]:
    """Settle those that bring commands of their own, each in a step of its own: only they are refused for them. Return the others."""
    plain: list[Finished] = []
    for run, outcome in finished:
        extra = run.job.ending_commands(outcome.how)
        if not extra:
            plain.append((run, outcome))
            continue
        try:
            answers = store.execute(Together([*settling_commands([(run, outcome)], {}), *extra]))
        except ClaimLost as error:
            if run.receipt not in error.lost:
                raise
            _log.warning("%s; the job is not acknowledged, and will be run again", error)
        except (StoreUnavailable, Closed):
            raise
        except Refused as error:
            # What it was about to sleep for came meanwhile: it is run again at once.
            again = AGAIN if outcome.how == "suspended" else _refused(run, outcome, shown(error))
            plain.append((run, decided(run, again)))
        except (HoldfastError, ValueError) as error:
            plain.append((run, decided(run, _refused(run, outcome, shown(error)))))
        else:
            settled.append((run, outcome))
            if outcome.how == "suspended" and _has_marks(extra, answers[-len(extra) :]):
                store.execute(Move(run.message.queue, "due", [run.message.id]))
    return plain


def _has_marks(commands: list[Any], answers: list[Any]) -> bool:
    """Whether children had reported when their parent fell asleep: those that did not yet find it asleep, and wake it."""
    return any(isinstance(command, Length) and answer for command, answer in zip(commands, answers, strict=True))


def _settle_each(store: Store, finished: list[Finished], settled: list[Finished], reason: Exception) -> None:
    """Settle one by one what could not be settled together."""
    _log.warning("%s could not be settled together, and are settled one by one: %s", counted(len(finished), "job"), reason)
    for run, outcome in finished:
        for choice in _attempts(run, outcome, reason):
            attempt = decided(run, choice)
            try:
                store.execute(Together(settling_commands([(run, attempt)], {})))
            except (StoreUnavailable, Closed):
                raise
            except Exception:  # noqa: BLE001 - as above
                _log.exception("job %s of queue %r could not be settled as %s", run.message.id, run.message.queue, attempt.how)
            else:
                settled.append((run, attempt))
                break


def _attempts(run: Run, outcome: Outcome, reason: Exception) -> Iterator[Outcome]:
    """How to settle it, and, each time that is refused, how else."""
    yield outcome
    if outcome.how == "done" and outcome.stored is not None:
        yield Outcome("done", missing=shown(reason))  # What ran must not run again because of its result.
    yield _refused(run, outcome, f"it could not be settled: {shown(reason)}")


def _refused(run: Run, outcome: Outcome, error: str) -> Outcome:
    """How a run ends whose ending the store does not accept."""
    if outcome.how == "done":
        # It happened, and it cannot be noted that it did: the note that it began stays, so that nothing repeats it unasked.
        run.ledger_key = None
    return Outcome("failed", error=error)


def _without(finished: list[Finished], error: ClaimLost) -> list[Finished]:
    lost = set(error.lost)
    kept = [(run, outcome) for run, outcome in finished if run.receipt not in lost]
    if len(kept) == len(finished):
        raise error  # Not one of ours: dropping nothing would ask for ever.
    _log.warning("%s; these jobs are not acknowledged, and will be run again", error)
    return kept


def _held(finished: list[Finished], commands: list[Any], answers: list[Any]) -> list[Finished]:
    """Those that were settled; a lone `Settle` refuses nothing, and says which claims it found lost."""
    lost = {
        receipt
        for command, answer in zip(commands, answers, strict=True)
        if isinstance(answer, Held) and not all(answer.held)
        for receipt, is_held in zip(command.receipts, answer.held, strict=True)
        if not is_held
    }
    if lost:
        _log.warning("%s no longer held when done, and will be run again", counted(len(lost), "job was", "jobs were"))
    return [(run, outcome) for run, outcome in finished if run.receipt not in lost] if lost else finished
