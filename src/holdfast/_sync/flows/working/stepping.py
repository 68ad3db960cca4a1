# Generated from src/holdfast/_async/flows/working/stepping.py by tools/unasync.py; do not edit.
"""The one step of a worker: settle what is done, write what is to be kept, and claim what is next."""

import logging
from collections.abc import Iterator
from typing import Any

from msgspec import Raw

from holdfast.commands import Claim, Claimed, Held, Together
from holdfast.errors import ClaimLost, Closed, HoldfastError, StoreUnavailable
from holdfast.stores import Store
from holdfast.workers.orders import Orders
from holdfast.workers.outcomes import Outcome, shown
from holdfast.workers.runs import Finished, Run
from holdfast.workers.settling import settling_commands
from holdfast.workers.wording import counted

NOTHING = Claimed([])

_log = logging.getLogger("holdfast.worker")


def step(
    store: Store, orders: Orders, finished: list[Finished], progress: dict[Run, Raw] | None = None, claim: Claim | None = None
) -> Claimed:
    """Settle these runs and claim, as one atomic step; runs whose claim was lost meanwhile are left out.

    Raises `StoreUnavailable` with nothing done, or perhaps all of it: whoever asks again finds out.
    """
    finished = _settle_alone(store, orders, finished)
    while True:
        commands = settling_commands(finished, progress or {}, orders)
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
            _settle_each(store, orders, finished, error)
            finished = []
        else:
            _tell_lost(finished, answers)
            claimed: Claimed = answers[-1] if claim is not None else NOTHING
            return claimed


def _execute(store: Store, commands: list[Any]) -> list[Any]:
    if len(commands) == 1:
        return [store.execute(commands[0])]
    answers: list[Any] = store.execute(Together(commands))
    return answers


def _settle_alone(store: Store, orders: Orders, finished: list[Finished]) -> list[Finished]:
    """Settle those that bring commands of their own, each in a step of its own: only they are refused for them. Answer the others."""
    plain: list[Finished] = []
    for run, outcome in finished:
        extra = run.job.commands if outcome.how == "done" else []
        if not extra:
            plain.append((run, outcome))
            continue
        try:
            store.execute(Together([*settling_commands([(run, outcome)], {}, orders), *extra]))
        except ClaimLost as error:
            if run.receipt not in error.lost:
                raise
            _log.warning("%s; what it did is not acknowledged, and it will be run again", error)
        except (StoreUnavailable, Closed):
            raise
        except (HoldfastError, ValueError) as error:
            plain.append((run, _refused(run, outcome, shown(error))))
    return plain


def _settle_each(store: Store, orders: Orders, finished: list[Finished], reason: Exception) -> None:
    """Settle one by one what could not be settled together."""
    _log.warning("%s could not be settled together, and are settled one by one: %s", counted(len(finished), "job"), reason)
    for run, outcome in finished:
        for attempt in _attempts(run, outcome, reason):
            try:
                store.execute(Together(settling_commands([(run, attempt)], {}, orders)))
            except (StoreUnavailable, Closed):
                raise
            except Exception:  # noqa: BLE001 - as above
                _log.exception("job %s of queue %r could not be settled as %s", run.message.id, run.message.queue, attempt.how)
            else:
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
    _log.warning("%s; what these jobs did is not acknowledged, and they will be run again", error)
    return kept


def _tell_lost(finished: list[Finished], answers: list[Any]) -> None:
    """Tell of claims that a lone `Settle`, which refuses nothing, found lost."""
    lost = sum(answer.held.count(False) for answer in answers if isinstance(answer, Held)) if finished else 0
    if lost:
        _log.warning("%s no longer held when done; they will be run again", counted(lost, "job was", "jobs were"))
