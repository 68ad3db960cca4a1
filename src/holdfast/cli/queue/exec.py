"""The command `holdfast queue exec`: a program is run for each message."""

from shutil import which
from typing import Annotated, Any

import typer

from holdfast.cli.commands import ended
from holdfast.cli.logs import LogJson, log_to_stderr
from holdfast.cli.opening import StoreUrl
from holdfast.cli.queue.messages import QueueName


def exec_(
    queue: QueueName,
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="The program and its arguments, behind --.")],
    *,
    concurrency: Annotated[int, typer.Option(min=1, help="How many run at once.")] = 1,
    max_attempts: Annotated[int, typer.Option(min=1, help="After how many failures a message is dead, unless it says so itself.")] = 3,
    lease_s: Annotated[float, typer.Option(help="How long a claim lasts; it is renewed while the program runs.")] = 60.0,
    until_empty: Annotated[bool, typer.Option("--until-empty", help="End when nothing is due and nothing runs.")] = False,
    results: Annotated[bool, typer.Option("--results", help="Keep what the program prints as the result of the job.")] = False,
    url: StoreUrl = None,
    as_json: LogJson = False,
) -> None:
    """Run a program for each message, until SIGTERM or Ctrl-C: the value is on its standard input, as one line of JSON.

    If it ends with 0 the message is acknowledged, else it failed and is tried again later. The program finds the id of the message in
    HOLDFAST_MESSAGE_ID, its queue in HOLDFAST_QUEUE, and the fencing token in HOLDFAST_FENCE.
    """
    from holdfast import JobContext, Worker
    from holdfast.cli.opening import reached
    from holdfast.cli.programs import NOT_FOUND, run_program
    from holdfast.cli.run_workers import run_workers
    from holdfast.client import ControlPlaneClient

    if which(command[0]) is None:
        raise ended("queue exec", f"there is no program {command[0]!r} that can be executed; nothing was claimed", NOT_FOUND)
    log_to_stderr(as_json=as_json)

    def run(value: Any, job: JobContext) -> str:
        about = {"HOLDFAST_MESSAGE_ID": job.id, "HOLDFAST_QUEUE": job.queue, "HOLDFAST_FENCE": str(job.token)}
        return run_program(command, value, about)

    with reached(url, create=True) as store:
        options: Any = {"concurrency": concurrency, "max_attempts": max_attempts, "lease_s": lease_s, "results": results}
        run_workers([Worker(run, queue, client=ControlPlaneClient.on(store), **options)], until_empty=until_empty)
