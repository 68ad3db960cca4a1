"""Records the start of a job whose effects must happen once, unless it was done or is unknown."""

from collections.abc import Sequence

from holdfast._async.flows.once import standing
from holdfast.codec import encode_key
from holdfast.commands import Change, Write
from holdfast.records import Entry
from holdfast.stores import AsyncStore
from holdfast.workers.handlers.outcomes import Bury, Outcome, UnknownTask, shown
from holdfast.workers.once_record import LedgerEntry, entry_of
from holdfast.workers.orders import ledger_of
from holdfast.workers.running.runs import Finished, Run

BUSY_S = 1.0
"""When to look again at a job whose effects another worker is about to have."""

BUSY = Outcome("snoozed", delay_s=BUSY_S)


async def admit(store: AsyncStore, queue: str, runs: Sequence[Run]) -> tuple[list[Run], list[Finished]]:
    """Say which of the runs may begin, and how the others end: a repetition is done with the stored result.

    Raises `StoreUnavailable`; asking again is safe.
    """
    plain = [run for run in runs if not run.options.idempotent]
    wanted, ended = _keyed([run for run in runs if run.options.idempotent])
    if not wanted:
        return plain, ended
    changes = [Change(key, value=_begun(run).raw, expect="absent", ttl_s=run.options.remember_s) for key, run in wanted.items()]
    written = await store.execute(Write(ledger_of(queue), changes))
    admitted = plain
    for (key, run), answer in zip(wanted.items(), written, strict=True):
        outcome = None if answer.written else await _look(store, queue, run, answer.entry)
        if outcome is None:
            run.ledger_key = key
            admitted.append(run)
        else:
            ended.append((run, outcome))
    return admitted, ended


def _keyed(runs: Sequence[Run]) -> tuple[dict[str, Run], list[Finished]]:
    """The runs by what their effects are remembered under; one of several with the same begins, the others look again later."""
    wanted: dict[str, Run] = {}
    ended: list[Finished] = []
    for run in runs:
        try:
            key = _key_of(run)
        except (UnknownTask, Bury) as error:
            ended.append((run, run.performance.judged(error, run.job)))
            continue
        except Exception as error:  # noqa: BLE001 - foreign code, of a value that may not even be readable
            ended.append((run, Outcome("failed", error=f"its idempotency key could not be computed: {shown(error)}")))
            continue
        if wanted.setdefault(key, run) is not run:
            ended.append((run, BUSY))
    return wanted, ended


def _key_of(run: Run) -> str:
    options = run.options
    if options.idempotency_key is None:
        return encode_key(run.message.id)
    key = options.handler.keyed(options.idempotency_key, run.job)
    # Several tasks may share a queue, and know nothing of each other's keys.
    return encode_key((options.task, key) if options.task else key)


async def _look(store: AsyncStore, queue: str, run: Run, entry: Entry | None) -> Outcome | None:
    """How a run ends whose effects another one has begun, or had, before; None if it may begin all the same."""
    entry, is_running = await standing(store, ledger_of(queue), entry)
    if entry is None:
        return BUSY  # The other one ended a moment ago and says that nothing happened: begin afresh.
    found = entry_of(entry.value)
    if found.state == "done":
        return Outcome("done", found.result, found.missing)
    if found.by == run.receipt.claim_id:
        return None  # Its own note, written by a request whose answer was lost.
    if is_running:
        return BUSY
    if run.options.reconcile is None:
        return Outcome("buried", error=_unknown(found))
    taken = Change(entry.key, value=_begun(run).raw, expect="revision", revision=entry.revision, ttl_s=run.options.remember_s)
    (answer,) = await store.execute(Write(ledger_of(queue), [taken]))
    if not answer.written:
        return BUSY
    run.is_unknown = True
    return None


def _begun(run: Run) -> LedgerEntry:
    return LedgerEntry("started", run.receipt.claim_id, run.message.holder)


def _unknown(found: LedgerEntry) -> str:
    return (
        f"ExecutionUnknown: {found.holder} began it under claim {found.by} and died, so it may have happened; "
        "find out, then resolve() or forget() it in the ledger and redrive the message"
    )
