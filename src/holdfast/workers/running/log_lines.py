"""The log lines of a worker about its jobs."""

import logging
from typing import Any

from holdfast.wording import seconds
from holdfast.workers.handlers.outcomes import Bury, Outcome
from holdfast.workers.handlers.tracebacks import users_part
from holdfast.workers.orders import Orders
from holdfast.workers.running.runs import Run
from holdfast.workers.running.settlements import is_last
from holdfast.workers.steps.rows import FOREVER_S

log: logging.Logger = logging.getLogger("holdfast.worker")


def log_begin(orders: Orders, place: str) -> None:
    """Say what a worker does, and which of its queues none of its functions is for: a name may be misspelt."""
    log.info("worker %s begins: %s on %s", orders.name, orders.summary, place)
    own = {options.queue for options in orders.table.all()}
    for queue in orders.queues:
        if queue not in own:
            shown = ", ".join(map(repr, sorted(own)))
            log.warning("worker %s serves queue %r, for which it has no function: those that it has are for %s", orders.name, queue, shown)


def log_settled(run: Run, outcome: Outcome) -> None:
    """Say how a run ended, once the store knows."""
    if outcome.how == "done" and outcome.missing is None and not log.isEnabledFor(logging.INFO):
        return
    level, text, values = _line(run, outcome)
    if not log.isEnabledFor(level):
        return
    trace = "" if outcome.trace is None else f"\n{outcome.trace}"
    log.log(level, "job %s of queue %r %s%s", run.message.id, run.message.queue, text % values, trace, exc_info=_raised(run, outcome))


def _line(run: Run, outcome: Outcome) -> tuple[int, str, tuple[Any, ...]]:
    match outcome.how:
        case "done" if outcome.missing is not None:
            return logging.WARNING, "is done, but its result cannot be kept: %s", (outcome.missing,)
        case "done" | "settled":
            return logging.INFO, "is done%s", (_took(run),)
        case "failed" if is_last(run):
            return logging.ERROR, "failed%s and is dead: %s", (_attempt(run), outcome.error)
        case "failed":
            return logging.WARNING, "failed%s, again in %s: %s", (_attempt(run), seconds(outcome.delay_s or 0.0), outcome.error)
        case "buried":
            return logging.ERROR, "is buried: %s", (outcome.error,)
        case "snoozed":
            what = "snoozes, again in" if outcome.throttles is None else f"throttles its {outcome.throttles} for"
            return logging.INFO, "%s %s%s", (what, seconds(outcome.delay_s or 0.0), f": {outcome.error}" if outcome.error else "")
        case "suspended" if (outcome.delay_s or 0.0) >= FOREVER_S:
            return logging.INFO, "sleeps until a signal comes", ()
        case "suspended":
            return logging.INFO, "sleeps, at most for %s", (seconds(outcome.delay_s or 0.0),)
        case "cancelled":
            return logging.INFO, "is cancelled", ()
        case _:
            return logging.DEBUG, "is given back", ()


def _took(run: Run) -> str:
    return "" if run.began_at is None or run.ended_at is None else f" in {seconds(run.ended_at - run.began_at)}"


def _attempt(run: Run) -> str:
    most = run.options.max_attempts if run.message.max_attempts is None else run.message.max_attempts
    return f" (attempt {run.message.failures + 1}{'' if most is None else f' of {most}'})"


def _raised(run: Run, outcome: Outcome) -> Any:
    """What the log shows the traceback of, beginning in the user's code; for a `Bury` its cause, since its text says it all."""
    error = run.job.raised
    if isinstance(error, Bury):
        error = error.__cause__ or error.__context__
    if error is None or outcome.how not in ("failed", "buried"):
        return None
    return type(error), error, users_part(error.__traceback__)
