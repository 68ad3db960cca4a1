"""The command `holdfast watch`: the events of many queues and dicts in one stream."""

import asyncio
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from msgspec import Struct

from holdfast.cli.opening import AsJson, StoreUrl, connected
from holdfast.cli.queue.messages import cut, line
from holdfast.commands import Changes
from holdfast.errors import Compacted
from holdfast.process.event_loops import run_coroutine
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast import ControlPlaneClient, WatchEvent

KINDS: Final = ("queue", "dict")
LOOK_S: Final = 2.0
"""How often it looks for new queues and dicts."""

Subject = tuple[str, str]
"""A kind and a name."""


class Happened(Struct, frozen=True):
    """An event, and of what."""

    kind: str
    name: str
    event: "WatchEvent"


def watch(
    patterns: Annotated[
        list[str] | None,
        typer.Argument(metavar="KIND:NAME", help="What to follow, as in queue:mail, dict:* or 'queue:orders-*'; without any, all."),
    ] = None,
    *,
    timeout_s: Annotated[float | None, typer.Option(help="End when nothing came for so many seconds; by default never.")] = None,
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Follow what happens in queues and dicts from now on, also in those that are made later, until Ctrl-C.

    With --json it prints one object per line. `queue watch` and `dict watch` follow one, from any event on.
    """
    if timeout_s is not None and not timeout_s >= 0:
        raise ValueError(f"--timeout-s must be at least 0, not {timeout_s}")
    wanted = [_parsed(pattern) for pattern in patterns or ("queue:*", "dict:*")]
    with connected(url) as client:
        run_coroutine(_print(client, wanted, timeout_s, as_json=as_json))


def _parsed(pattern: str) -> Subject:
    kind, mark, name = pattern.partition(":")
    if not mark or kind not in KINDS or not name:
        raise ValueError(f"{pattern!r} names nothing that can be watched: write queue:NAME or dict:NAME, with * for any text")
    return kind, name


async def _print(client: "ControlPlaneClient", wanted: list[Subject], timeout_s: float | None, *, as_json: bool) -> None:
    """Print everything that happens from now on, in the order in which it comes here."""
    start = (await client.async_store.execute(Changes("queue:default", limit=1))).latest
    events: asyncio.Queue[Happened] = asyncio.Queue(1_000)
    try:
        async with asyncio.TaskGroup() as tasks:
            finding = tasks.create_task(_find(client, wanted, start, events))
            while True:
                try:
                    one = await asyncio.wait_for(events.get(), timeout_s)
                except TimeoutError:
                    finding.cancel()
                    return
                typer.echo(line(_flat(one)) if as_json else _row(one))
    except BaseExceptionGroup as failed:
        raise _first(failed) from None  # One sentence says why it ended, as of every command.


def _first(failed: BaseException) -> BaseException:
    return _first(failed.exceptions[0]) if isinstance(failed, BaseExceptionGroup) else failed


async def _find(client: "ControlPlaneClient", wanted: list[Subject], start: int, events: "asyncio.Queue[Happened]") -> None:
    """Follow what is there, and what comes."""
    followed, has_told = set[Subject](), False
    async with asyncio.TaskGroup() as tasks:
        while True:
            for subject in await _present(client, wanted):
                if subject not in followed:
                    followed.add(subject)
                    tasks.create_task(_follow(client, subject, start, events))
            if not has_told:
                has_told = True
                typer.echo(f"Watching {counted(len(followed), 'queue or dict', 'queues and dicts')} from now on; Ctrl-C ends it.", err=True)
            await asyncio.sleep(LOOK_S)


async def _present(client: "ControlPlaneClient", wanted: list[Subject]) -> list[Subject]:
    """Those that are meant: all that there are, and those whose names are given in full, whether they are there yet or not."""
    from holdfast import aio

    found = [(kind, name) for kind, name in wanted if not any(sign in name for sign in "*?[")]
    if len(found) == len(wanted):
        return found
    handles: dict[str, Any] = {"queue": aio.Queue, "dict": aio.Dict}
    for kind in {kind for kind, _ in wanted}:
        names = [one.name for one in await handles[kind].list(client=client)]
        found += [(kind, name) for name in names if any(kind == each and fnmatchcase(name, pattern) for each, pattern in wanted)]
    return found


async def _follow(client: "ControlPlaneClient", subject: Subject, start: int, events: "asyncio.Queue[Happened]") -> None:
    from holdfast import aio

    kind, name = subject
    handle: Any = (aio.Queue if kind == "queue" else aio.Dict).from_name(name, client=client)
    while True:
        try:
            async for event in handle.watch(last_index=start):
                start = event.index
                await events.put(Happened(kind, name, event))
        except Compacted:
            # More happened than is kept: go on with what comes.
            start = (await client.async_store.execute(Changes(f"{kind}:{name}", limit=1))).latest


def _flat(one: Happened) -> dict[str, Any]:
    return {"kind": one.kind, "name": one.name, **{name: getattr(one.event, name) for name in one.event.__struct_fields__}}


def _row(one: Happened) -> str:
    at = one.event.at.astimezone().strftime("%H:%M:%S")
    return f"{at}  {one.kind} {one.name}  {one.event.event}  {cut(line(one.event.data))}"
