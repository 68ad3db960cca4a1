"""The command `holdfast worker ls`."""

from typing import Annotated

import typer

from holdfast.cli.opening import AsJson, StoreUrl, connected
from holdfast.cli.showing import moment, print_result, shown

HEADS = ("worker", "host", "pid", "state", "running", "done", "failed", "since", "queues", "tasks")


def ls(
    prefix: Annotated[str, typer.Argument(help="Only workers whose name begins so.")] = "",
    *,
    queue: Annotated[str | None, typer.Option(help="Only those that serve this queue.")] = None,
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """List the workers that live: where they run, how they are, and which queues and tasks they serve."""
    from holdfast import Worker, WorkerInfo

    with connected(url) as client:
        living = [one for one in Worker.list(client=client) if one.name.startswith(prefix) and (queue is None or one.serves(queue))]

    def row(one: WorkerInfo) -> tuple[str, ...]:
        health, queues = one.health, ", ".join(one.queues or (one.queue,))
        numbers = (f"{health.running}/{one.concurrency}", f"{health.done:,}", f"{health.failed:,}")
        return (one.name, one.host, str(one.pid), health.state, *numbers, moment(one.started_at.timestamp()), queues, ", ".join(one.tasks))

    print_result(living, shown(HEADS, [*map(row, living)]) if living else f"No living workers in {client.url}.", as_json=as_json)
