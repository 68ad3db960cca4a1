"""The commands `stats`, `health`, `dead` and `requeue-dead`."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer

from holdfast.cli.commands import FAILED, REFUSED, ended
from holdfast.cli.localqueue.options import LoggedOptions, QueueName, StoreOptions, answer, configured, opened, tell
from holdfast.cli.localqueue.stop_signals import stopping
from holdfast.clock import wall_s

if TYPE_CHECKING:
    from holdfast.surfaces.localqueue import QueueMessage

Watch = Annotated[bool, typer.Option("--watch", help="Again and again, until SIGTERM or Ctrl-C.")]
Interval = Annotated[float, typer.Option(min=0.001, help="Seconds between two looks.")]
Attempts = Annotated[int | None, typer.Option(min=0)]


def stats(
    queue: QueueName,
    *,
    watch: Watch = False,
    interval: Interval = 1.0,
    stale_after: Annotated[float | None, typer.Option(min=0.0, help="Also report workers that were not seen for so many seconds.")] = None,
    **at: Unpack[StoreOptions],
) -> None:
    """Count messages, holders and workers."""
    with opened(queue, at) as jobs:

        def look() -> None:
            found = jobs.stats()
            told = found.as_dict()
            if stale_after is not None:
                told["worker_health"] = seen(found.last_seen_by_worker_id, stale_after)
            answer(told)

        again(look, interval if watch else None)


def health(
    queue: QueueName,
    *,
    stale_after: Annotated[float, typer.Option(min=0.0, help="A worker not seen for so many seconds is stale.")] = 120.0,
    **at: Unpack[StoreOptions],
) -> None:
    """Report sizes, workers, dead letters and retention in one answer."""
    with opened(queue, at) as jobs:
        found = jobs.stats()
        kept = configured()
        answer(
            {
                "queue": queue,
                "stats": found.as_dict(),
                "worker_health": seen(found.last_seen_by_worker_id, stale_after),
                "dead_letters": summed_up(jobs.dead_letters()),
                "retention": {name: kept.get(name) for name in ("dead_letter_ttl_seconds", "retry_record_ttl_seconds")},
            }
        )


def dead(
    queue: QueueName,
    *,
    limit: Annotated[int | None, typer.Option(min=0)] = None,
    summary: Annotated[bool, typer.Option("--summary", help="How many, by error, attempts and worker.")] = False,
    min_attempts: Attempts = None,
    max_attempts: Attempts = None,
    error_contains: Annotated[str | None, typer.Option(help="Only those whose error has this text.")] = None,
    failed_within: Annotated[float | None, typer.Option(min=0.0, help="Only those that failed in the last so many seconds.")] = None,
    prune_older_than: Annotated[float | None, typer.Option(min=0.0, help="Remove those that have been dead for so many seconds.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be removed.")] = False,
    watch: Watch = False,
    interval: Interval = 1.0,
    **at: Unpack[StoreOptions],
) -> None:
    """Show the dead letters, or remove old ones."""
    choosing: dict[str, Any] = {
        "min_attempts": min_attempts,
        "max_attempts": max_attempts,
        "error": error_contains,
        "within": failed_within,
    }
    with opened(queue, at) as jobs:
        if prune_older_than is not None or dry_run:
            if watch or summary or limit is not None or any(value is not None for value in choosing.values()):
                raise ValueError("--prune-older-than and --dry-run stand alone: they are for all dead letters of an age")
            older_than = age(prune_older_than, "dead_letter_ttl_seconds", "--prune-older-than")
            count = jobs.count_dead_letters_older_than if dry_run else jobs.prune_dead_letters
            answer({"dry_run": dry_run, "older_than": older_than, "would_delete" if dry_run else "deleted": count(older_than=older_than)})
            return

        def look() -> None:
            messages = [message for message in jobs.dead_letters(limit=limit) if is_meant(message, **choosing)]
            answer(summed_up(messages) if summary else messages)

        again(look, interval if watch else None)


def requeue_dead(
    queue: QueueName,
    message_id: Annotated[str | None, typer.Argument(metavar="ID", help="The dead letter; without it, --all.")] = None,
    *,
    all_: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    delay: Annotated[float, typer.Option(min=0.0, help="Seconds until it is due.")] = 0.0,
    **at: Unpack[LoggedOptions],
) -> None:
    """Give dead letters another chance."""
    from holdfast.surfaces.localqueue import QueueMessage

    if all_ == (message_id is not None):
        raise ended("localqueue", "pass either a message id or --all", REFUSED)
    with opened(queue, at) as jobs:
        if message_id is None:
            count = sum(jobs.requeue_dead(message, delay=delay) for message in jobs.dead_letters())
            tell("queue.requeue", when=at["log_events"], queue=queue, all=True, requeued=count, delay=delay)
            answer({"requeued": count})
            return
        if not jobs.requeue_dead(QueueMessage(id=message_id, value=None, queue=queue), delay=delay):
            raise ended("localqueue", f"dead letter not found, or newer work of its key waits: {message_id}", FAILED)
        tell("queue.requeue", when=at["log_events"], queue=queue, message_id=message_id, delay=delay)
        answer({"id": message_id, "state": "requeued"})


def again(look: Callable[[], None], interval: float | None) -> None:
    """Look once, or with an interval until it is stopped."""
    with stopping() as stop:
        look()
        while interval is not None and not stop.wait(interval):
            look()


def age(given: float | None, name: str, option: str) -> float:
    """How old something must be: as said, else as configured."""
    older_than = configured().get(name) if given is None else given
    if older_than is None:
        raise ValueError(f"give {option}, or `config set {name}`")
    return float(older_than)


def seen(last_seen: dict[str, float], stale_after: float) -> dict[str, Any]:
    """Which workers were seen lately, and which were not, with the seconds since."""
    ages = {worker: max(0.0, wall_s() - moment) for worker, moment in sorted(last_seen.items())}
    kinds = {
        "active": {worker: age_s for worker, age_s in ages.items() if age_s <= stale_after},
        "stale": {worker: age_s for worker, age_s in ages.items() if age_s > stale_after},
    }
    return {"stale_after_seconds": stale_after} | {kind: {"count": len(some), "by_worker_id": some} for kind, some in kinds.items()}


def summed_up(messages: "list[QueueMessage]") -> dict[str, Any]:
    """How many there are, by error, attempts and worker, and from when to when they failed."""
    workers = [next((e.get("leased_by") for e in reversed(one.attempt_history) if e["type"] == "leased"), None) for one in messages]
    failed = [one.failed_at for one in messages if one.failed_at is not None]
    told: dict[str, Any] = {
        "count": len(messages),
        "by_error_type": dict(sorted(Counter(str((one.last_error or {}).get("type")) for one in messages).items())),
        "by_attempts": {str(attempts): count for attempts, count in sorted(Counter(one.attempts for one in messages).items())},
        "by_worker_id": dict(sorted(Counter(worker for worker in workers if worker).items())),
    }
    return told | ({"failed_at": {"oldest": min(failed), "newest": max(failed)}} if failed else {})


def is_meant(
    message: "QueueMessage", *, min_attempts: int | None, max_attempts: int | None, error: str | None, within: float | None
) -> bool:
    """Whether a dead letter is one of those that were asked for."""
    if min_attempts is not None and message.attempts < min_attempts:
        return False
    if max_attempts is not None and message.attempts > max_attempts:
        return False
    if within is not None and (message.failed_at is None or message.failed_at < wall_s() - within):
        return False
    said = (str((message.last_error or {}).get(name, "")) for name in ("type", "message", "command", "stderr"))
    return error is None or error.lower() in " ".join(said).lower()
