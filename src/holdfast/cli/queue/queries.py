"""The commands that look at queues and change nothing: ls, stats, rates, peek, browse, dead, explain, watch."""

from typing import Annotated, Any, Literal, Unpack

import typer

from holdfast.cli.commands import NOTHING
from holdfast.cli.known_names import known_queue
from holdfast.cli.opening import AlwaysJson, AsJson, StoreUrl, connected
from holdfast.cli.queue.messages import FoundBy, Label, Limit, QueueName, as_data, filter_options, line, table
from holdfast.cli.queue_counts import queue_counts
from holdfast.cli.showing import print_result, shown

COUNTS = ("ready", "delayed", "leased", "buffered", "dead")


def list_(
    prefix: Annotated[str, typer.Argument(help="Only queues whose name begins so.")] = "", *, url: StoreUrl = None, as_json: AsJson = False
) -> None:
    """List queues with the number of their messages in each state."""
    with connected(url) as client:
        found = {queue.name: queue.stats for queue in queue_counts(client.store, prefix)}
    rows = [(name, *(str(as_data(stats)[count]) for count in COUNTS), _age(stats.oldest_ready_s)) for name, stats in found.items()]
    text = shown(("queue", *COUNTS, "oldest ready"), rows) if rows else f"No queues in {client.url}."
    print_result([{"name": name, **as_data(stats)} for name, stats in found.items()], text, as_json=as_json)


def stats(queue: QueueName, *, label: Label = None, url: StoreUrl = None, as_json: AsJson = False) -> None:
    """Show sizes, ages and holders of one queue, or of its messages with a label."""
    with known_queue(queue, url) as handle:
        found: dict[str, Any] = as_data(handle.stats(label=label))
    holders = ", ".join(f"{holder} ({count})" for holder, count in found["holders"].items()) or "nobody"
    rows = [(name.replace("_", " "), _number(value)) for name, value in found.items() if name != "holders"]
    print_result(found, "\n".join(f"{name:<18}{value}" for name, value in (*rows, ("holders", holders))), as_json=as_json)


def rates(
    queue: QueueName,
    *,
    since: Annotated[float, typer.Option(help="So many seconds back.")] = 300.0,
    groups: Annotated[bool, typer.Option("--groups", help="Each group by itself.")] = False,
    tasks: Annotated[bool, typer.Option("--tasks", help="Each task by itself, as its workers say.")] = False,
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show throughput, waits, durations and failures of the last seconds, from the newest events of the log."""
    if groups and tasks:
        raise typer.BadParameter("give either --groups or --tasks")
    with known_queue(queue, url) as handle:
        found = handle.task_rates(since) if tasks else handle.group_rates(since) if groups else {"": handle.rates(since)}
    data: dict[str, Any] = {name: as_data(one) for name, one in found.items()}
    if not groups and not tasks:
        text = "\n".join(f"{name.replace('_', ' '):<18}{_number(value)}" for name, value in data[""].items())
        print_result(data[""], text, as_json=as_json)
        return
    fields = ("done", "done_per_s", "failed_share", "median_wait_s", "median_duration_s")
    rows = [(name or "-", *(_number(one[column]) for column in fields)) for name, one in data.items()]
    text = shown(("task" if tasks else "group", *(column.replace("_", " ") for column in fields)), rows) if rows else "Nothing happened."
    print_result(data, text, as_json=as_json)


def peek(queue: QueueName, *, url: StoreUrl = None, as_json: AsJson = False) -> None:
    """Show the message that would be claimed next. Exits with 3 if there is none."""
    with known_queue(queue, url) as handle:
        found = handle.peek()
    print_result(None if found is None else as_data(found), table([] if found is None else [found]), as_json=as_json)
    if found is None:
        raise typer.Exit(NOTHING)


def browse(
    queue: QueueName,
    *,
    state: Annotated[Literal["ready", "leased", "dead", "buffered"], typer.Option(help="The state of the messages.")] = "ready",
    limit: Limit = 100,
    url: StoreUrl = None,
    as_json: AsJson = False,
    **found_by: Unpack[FoundBy],
) -> None:
    """Show messages of one state: ready ones in line, leased ones by the end of their lease, dead ones by burial."""
    with known_queue(queue, url) as handle:
        found = handle.browse(state=state, limit=limit, **filter_options(found_by))
    print_result(as_data(found), table(found), as_json=as_json)


def dead(
    queue: QueueName,
    *,
    limit: Limit = 100,
    url: StoreUrl = None,
    as_json: AsJson = False,
    **found_by: Unpack[FoundBy],
) -> None:
    """Show dead letters, the longest dead first."""
    with known_queue(queue, url) as handle:
        found = handle.dead_letters(limit=limit, **filter_options(found_by))
    print_result(as_data(found), table(found), as_json=as_json)


def explain(
    queue: QueueName,
    message_id: Annotated[str, typer.Argument(metavar="ID", help="The id of the message.")],
    *,
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Say why a message is not running. Exits with 3 if there is no such message."""
    with known_queue(queue, url) as handle:
        said = handle.explain(message_id)
    print_result(as_data(said), str(said), as_json=as_json)
    if said.reason == "absent":
        raise typer.Exit(NOTHING)


def watch(
    queue: QueueName,
    *,
    last_index: Annotated[int, typer.Option(help="Go on behind this event; -1 is the oldest that is still there.")] = -1,
    timeout_s: Annotated[float | None, typer.Option(help="End when nothing came for so many seconds; by default never.")] = None,
    snapshot: Annotated[bool, typer.Option("--snapshot", help="Begin with an event for each message.")] = False,
    url: StoreUrl = None,
    as_json: AlwaysJson = True,
) -> None:
    """Follow what happens in a queue, one JSON object per line."""
    del as_json
    from holdfast import Queue

    with connected(url) as client:
        for event in Queue.from_name(queue, client=client).watch(last_index=last_index, timeout_s=timeout_s, snapshot=snapshot):
            typer.echo(line(event))


def _age(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.1f} s"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
