"""The commands `process`, which calls a function, and `exec`, which runs a program."""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer
from msgspec import Struct

from holdfast.cli.commands import FAILED, REFUSED, ended
from holdfast.cli.localqueue.options import (
    LeaseTimeout,
    LoggedOptions,
    QueueName,
    WorkerId,
    answer,
    configured,
    opened,
    tell,
)
from holdfast.cli.localqueue.stop_signals import stopping
from holdfast.cli.owner import act_as_owner_of
from holdfast.cli.programs import run_program
from holdfast.cli.worker import found

if TYPE_CHECKING:
    from threading import Event

    from holdfast.surfaces.localqueue import PersistentQueue, PersistentWorkerConfig
    from holdfast.surfaces.localqueue.workers import WorkerCalls

What = Annotated[
    list[str],
    typer.Argument(metavar="HANDLER...", help="process: module:function, called with each value. exec: a program, behind --."),
]
MaxJobs = Annotated[int | None, typer.Option(min=1, help="End after so many messages; 1 unless --forever is given.")]
Forever = Annotated[bool, typer.Option("--forever", help="Continue until SIGTERM or Ctrl-C, whether there is work or not.")]
MaxTries = Annotated[int, typer.Option(min=1, help="How often a message is tried, at once.")]
Block = Annotated[bool, typer.Option("--block", help="Wait for a message.")]
Timeout = Annotated[float | None, typer.Option(min=0.0, help="How many seconds, with --block.")]
IdleSleep = Annotated[float, typer.Option(min=0.001, help="The longest that a signal to stop goes unnoticed while there is no work.")]
ReleaseDelay = Annotated[float, typer.Option(min=0.0, help="Seconds until a message that is released is due again.")]
MinInterval = Annotated[float, typer.Option(min=0.0, help="Seconds between the starts of two messages.")]
Failures = Annotated[int, typer.Option("--circuit-breaker-failures", min=0, help="Pause after so many failures in a row.")]
Cooldown = Annotated[float, typer.Option("--circuit-breaker-cooldown", min=0.0, help="For so many seconds.")]
Buries = Annotated[
    bool, typer.Option("--dead-letter-on-exhaustion/--release-on-exhaustion", help="What becomes of a message whose tries are used up.")
]
RetryStore = Annotated[str | None, typer.Option("--retry-store-path", help="A SQLite file for attempts; without it, beside the queue.")]


class Loop(Struct, frozen=True):
    """How messages are handled one after the other."""

    mode: str
    max_jobs: float
    patience_s: float
    """How long to wait for a message before the queue counts as empty."""
    idle_sleep: float
    worker_id: str | None
    log_events: bool


def work(
    ctx: typer.Context,
    queue: QueueName,
    what: What,
    *,
    max_jobs: MaxJobs = None,
    forever: Forever = False,
    max_tries: MaxTries = 3,
    lease_timeout: LeaseTimeout = 30.0,
    worker_id: WorkerId = None,
    block: Block = False,
    timeout: Timeout = None,
    idle_sleep: IdleSleep = 1.0,
    release_delay: ReleaseDelay = 0.0,
    min_interval: MinInterval = 0.0,
    failures: Failures = 0,
    cooldown: Cooldown = 0.0,
    buries: Buries = True,
    retry_store_path: RetryStore = None,
    **at: Unpack[LoggedOptions],
) -> None:
    """Handle messages: each is tried up to `--max-tries` times, kept meanwhile, and acknowledged, released or dead-lettered.

    Exits with 0 when all is done, with 1 when there was nothing to do or a message failed.
    """
    from holdfast.surfaces.localqueue import PersistentWorkerConfig

    most, patience_s = bounds(max_jobs, timeout, forever=forever, block=block)
    loop = Loop(str(ctx.info_name), most, patience_s, idle_sleep, worker_id, at["log_events"])
    handler = program(what) if loop.mode == "exec" else function(what)
    with opened(queue, at, lease_timeout=lease_timeout) as jobs, attempts_at(jobs, retry_store_path) as attempts:
        config = PersistentWorkerConfig(
            dead_letter_on_failure=buries,
            release_delay=release_delay,
            min_interval=min_interval,
            circuit_breaker_failures=failures,
            circuit_breaker_cooldown=cooldown,
            max_tries=max_tries,
            store=attempts,
            # Again at once.
            wait=no_pause,
        )
        code = run(jobs, handler, config, loop)
    raise typer.Exit(code)


def bounds(max_jobs: int | None, timeout: float | None, *, forever: bool, block: bool) -> tuple[float, float]:
    """How many messages to handle at most, and how long to wait for each."""
    if not forever:
        waits_s = math.inf if timeout is None else timeout
        return max_jobs or 1, waits_s if block else 0.0
    if max_jobs is not None:
        raise ended("localqueue", "pass either --forever or --max-jobs, not both", REFUSED)
    return math.inf, math.inf


@contextmanager
def attempts_at(jobs: "PersistentQueue[Any]", retry_store_path: str | None) -> Iterator[Any]:
    """Where attempts are counted: in the file that is given or configured, else beside the queue."""
    from holdfast.surfaces.localqueue.attempts.stores import SQLiteAttemptStore, URLAttemptStore

    path = retry_store_path or configured().get("retry_store_path")
    if path is None:
        yield URLAttemptStore(jobs.client)
        return
    act_as_owner_of(Path(path))
    with closing(SQLiteAttemptStore(path)) as attempts:
        yield attempts


def no_pause(state: object) -> float:
    """How long tenacity is to wait between two tries."""
    del state
    return 0.0


def run(jobs: "PersistentQueue[Any]", handler: Callable[[Any], Any], config: "PersistentWorkerConfig", loop: Loop) -> int:
    """Handle messages until there were enough, none came in time, one failed, or it is stopped; return the exit status."""
    from holdfast.surfaces.localqueue.workers import WorkerCalls

    calls = WorkerCalls(jobs, handler, config, loop.worker_id)
    done = 0
    with stopping() as stop:
        while done < loop.max_jobs and not stop.is_set():
            handled = next_message(jobs, calls, loop, stop)
            if handled is None and not stop.is_set():
                typer.echo("queue is empty", err=True)
                return 0 if done else FAILED
            if handled is False and loop.max_jobs < math.inf:
                return FAILED
            done += handled is True
    return 0


def next_message(jobs: "PersistentQueue[Any]", calls: "WorkerCalls", loop: Loop, stop: "Event") -> bool | None:
    """Handle a message, and return whether it succeeded; None if there was none."""
    deadline = monotonic() + loop.patience_s
    messages: list[Any] = []

    def leased(message: Any) -> None:
        messages.append(message)
        tell(f"{loop.mode}.lease", when=loop.log_events, queue=message.queue, message_id=message.id, leased_by=loop.worker_id)

    while not messages and not stop.is_set():
        left_s = deadline - monotonic()
        try:
            calls.handle_next(min(loop.idle_sleep, max(left_s, 0.0)), on_message=leased)
        except Exception as error:
            if not messages:
                raise
            report(jobs, messages[0].id, error, loop)
            return False
        if not messages and left_s <= 0:
            return None
    if not messages:
        return None
    report(jobs, messages[0].id, None, loop)
    return True


def report(jobs: "PersistentQueue[Any]", message_id: str, error: Exception | None, loop: Loop) -> None:
    """Return what became of a message."""
    kept = jobs.inspect(message_id)
    state = "acked" if error is None else "dead-letter" if kept is not None and kept.state == "dead" else "release"
    last_error = None if error is None else kept.last_error if kept is not None else {"message": str(error)}
    event = {"acked": "ack", "dead-letter": "dead_letter", "release": "release"}[state]
    tell(f"{loop.mode}.{event}", when=loop.log_events, queue=jobs.name, message_id=message_id, last_error=last_error)
    answer({"id": message_id, "state": state} | ({} if error is None else {"last_error": last_error}))


def function(what: list[str]) -> Callable[[Any], Any]:
    """The function that a name stands for."""
    # As `python -m` does: modules are looked for where the command is called.
    sys.path.insert(0, str(Path.cwd()))
    try:
        (name,) = what
        handler: Callable[[Any], Any] = found(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ended("localqueue queue process", f"no handler: {error}", FAILED) from None
    if not callable(handler):
        raise ended("localqueue queue process", f"no handler: {name} cannot be called", FAILED)
    return handler


def program(command: list[str]) -> Callable[[Any], None]:
    """A handler that runs a program, with the value on its stdin."""

    def handle(value: Any) -> None:
        run_program(command, value)

    return handle
