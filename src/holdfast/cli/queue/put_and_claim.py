"""The commands by which scripts work with a queue: put, claim, ack, release."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Unpack

import typer
from msgspec import DecodeError, json

from holdfast.arguments.named_claims import raise_lost
from holdfast.cli.commands import NOTHING
from holdfast.cli.known_names import refuse_unknown
from holdfast.cli.opening import AlwaysJson, AsJson, CreateStore, StoreUrl, connected, readable, value_of
from holdfast.cli.progress import Lines, Show, progress_bar
from holdfast.cli.queue.messages import PutBy, QueueName, cut, line, put_options
from holdfast.cli.showing import print_result
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast import Queue

BATCH: Final = 1_000
"""So many lines are put in one step."""

ClaimIds = Annotated[list[str], typer.Argument(metavar="CLAIM", help="The `claim_id` that `claim` printed; several are allowed.")]


def put(
    queue: QueueName,
    value: Annotated[
        str | None, typer.Argument(help="The value as JSON; a text needs quotes. Left out or -: one value per line of the standard input.")
    ] = None,
    *,
    text: Annotated[bool, typer.Option("--text", help="The value, or each line, is text and not JSON.")] = False,
    key: Annotated[str | None, typer.Option(help="The key: at most one living message of the queue has it.")] = None,
    message_id: Annotated[str | None, typer.Option("--id", help="The id; a put under an id that exists changes nothing.")] = None,
    delay_s: Annotated[float, typer.Option(help="Hold it back for so many seconds.")] = 0.0,
    url: StoreUrl = None,
    create_store: CreateStore = False,
    progress: Lines = False,
    as_json: AsJson = False,
    **put_by: Unpack[PutBy],
) -> None:
    """Put a message, or one for each line of the standard input, in steps of 1,000 lines."""
    from holdfast import Queue

    shared: Any = {"delay_s": delay_s, **put_options(put_by)}
    with connected(url, create=create_store) as client:
        handle: Queue[Any] = Queue.from_name(queue, client=client)
        if value is not None and value != "-":
            made = handle.put(readable(value, "the value") if text else value_of(value, "the value"), key=key, id=message_id, **shared)
            verb = "Put" if made.created else "There was already"
            print_result({"queue": queue, "id": str(made), "created": made.created}, f"{verb} message {made}.", as_json=as_json)
            return
        if key is not None or message_id is not None:
            raise ValueError("--key and --id name one message: give its value as an argument")
        with progress_bar("messages put", lines=progress, quiet=as_json) as show:
            count = _put_lines(handle, _values(sys.stdin, text=text), shared, show)
    print_result({"queue": queue, "count": count}, f"Put {counted(count, 'message')}.", as_json=as_json)


def _put_lines(queue: "Queue[Any]", values: Iterator[Any], shared: dict[str, Any], show: Show) -> int:
    """Put what was read, and show how far that is; return how many."""
    count = 0
    try:
        while batch := list(islice(values, BATCH)):
            queue.put_many(batch, **shared)
            count += len(batch)
            show(count)
    except BaseException:
        typer.echo(f"holdfast queue put: {counted(count, 'message')} put before the error, nothing after it", err=True)
        raise
    return count


def _values(lines: Iterable[str], *, text: bool) -> Iterator[Any]:
    """The value of each line that is not empty; ValueError with the number of the line that is not JSON."""
    for number, row in enumerate(lines, 1):
        if not row.strip():
            continue
        try:
            given = readable(row, f"line {number}")
            yield given.rstrip("\r\n") if text else json.decode(given)
        except DecodeError as error:
            raise ValueError(f"line {number} is not JSON ({error}): {cut(row.strip())!r}; for lines of text give --text") from None


def claim(
    queue: QueueName,
    *,
    lease_s: Annotated[float, typer.Option(help="How long the claim lasts.")] = 60.0,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=1_000, help="How many messages at most.")] = 1,
    timeout_s: Annotated[float | None, typer.Option(help="Wait so long for a message; by default it asks once.")] = None,
    claimer: Annotated[str | None, typer.Option(help="Who claims it; by default this machine and process.")] = None,
    url: StoreUrl = None,
    as_json: AlwaysJson = True,
) -> None:
    """Claim messages and print each as one line of JSON. Exits with 3 if there is none.

    No other worker gets them until the lease ends: acknowledge them with `ack`, or give them back with `release`, by their `claim_id`.
    """
    from holdfast import Queue

    del as_json
    with connected(url) as client:
        handle = Queue[Any].from_name(queue, client=client)
        claims: Sequence[Any] = ()
        told = 0
        try:
            claims = handle.claim_many(limit, lease_s=lease_s, timeout_s=timeout_s, claimer=claimer)
            for one in claims:
                facts = {"claim_id": one.claim_id, "id": one.id, "token": one.token, "key": one.key, "attempts": one.attempts}
                typer.echo(line(facts | {"expires_at": one.expires_at, "metadata": one.metadata, "value": one.value}))
                told += 1
        finally:
            # Interrupted, or nobody reads: what was not printed cannot be settled.
            if told < len(claims):
                handle.release(claims[told:], return_to="place")
        if not claims:
            refuse_unknown(client.store, "queue", queue)
            raise typer.Exit(NOTHING)


def ack(claims: ClaimIds, *, url: StoreUrl = None, as_json: AsJson = False) -> None:
    """Acknowledge claims: their messages are done. Exits with 4 if one of them was lost; the others are done all the same."""
    counts = 0
    with connected(url) as client:
        for queue, ids in _by_queue(claims, client):
            counts += queue.ack(ids).count
    print_result({"acknowledged": counts}, f"{counted(counts, 'claim')} acknowledged.", as_json=as_json)


def release(
    claims: ClaimIds,
    *,
    error: Annotated[str | None, typer.Option(help="It failed, with this error: that counts against its attempts.")] = None,
    to: Annotated[Literal["back", "place", "front"], typer.Option("--return-to", help="Where in the line it goes.")] = "back",
    delay_s: Annotated[float, typer.Option(help="Hold it back for so many seconds.")] = 0.0,
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Give claims back, for another worker. Exits with 4 if one of them was lost."""
    counts = 0
    with connected(url) as client:
        for queue, ids in _by_queue(claims, client):
            given_back = (
                queue.release(ids, return_to=to, delay_s=delay_s) if error is None else queue.fail(ids, error=error, delay_s=delay_s)
            )
            counts += raise_lost(given_back).count
    print_result({"released": counts}, f"{counted(counts, 'claim')} given back.", as_json=as_json)


def _by_queue(claims: list[str], client: Any) -> "Iterator[tuple[Queue[Any], list[str]]]":
    """The claims of each queue; a claim id names its queue."""
    from holdfast import Queue
    from holdfast.records import Receipt

    queues: dict[str, list[str]] = {}
    for claim_id in claims:
        queues.setdefault(Receipt.parse(claim_id).queue, []).append(claim_id)
    for name, ids in queues.items():
        yield Queue.from_name(name, client=client), ids
