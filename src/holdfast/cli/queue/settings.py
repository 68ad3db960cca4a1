"""The commands that set what holds for a queue and for its groups: configure, groups, group, throttle."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypedDict, Unpack

import typer

from holdfast.backoff import Backoff
from holdfast.cli.commands import NOTHING
from holdfast.cli.known_names import known_queue, refuse_unknown
from holdfast.cli.opening import AsJson, StoreUrl, connected, seconds_of
from holdfast.cli.queue.messages import Limit, QueueName, as_data
from holdfast.cli.showing import print_result, shown
from holdfast.commands import Names
from holdfast.rates import Rate
from holdfast.records.policies import GroupDead, GroupMode, LateTo, Order, Policy
from holdfast.results import GroupInfo, wall_time
from holdfast.stores import Store

RATE_HELP = "How many may be handed out in a time, as in 600/1m; with :5 behind it, so many at once."
KEPT: dict[str, Any] = {"order": "fifo", "group_dead": "pass", "late_to": "drop"}
"""Settings that cannot be taken away, and what they are at first."""

GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="The name of the group; '' is the messages without one.")]
Unset = Annotated[
    list[str] | None, typer.Option("--unset", metavar="SETTING", help="Take a setting away, as in --unset group-limit; may be repeated.")
]


class ConfigureOptions(TypedDict):
    """The settings of a queue, by the names that `Queue.configure` has for them."""

    groups: Annotated[GroupMode | None, typer.Option(help="fair: groups take turns; strict: each group one at a time, in order.")]
    group_limit: Annotated[int | None, typer.Option(help="How many messages of one group may be claimed at once.")]
    group_rate: Annotated[str | None, typer.Option(help=f"Of one group: {RATE_HELP}")]
    group_dead: Annotated[GroupDead | None, typer.Option(help="Whether a strict group goes on when a message of it died.")]
    limit: Annotated[int | None, typer.Option(help="How many messages of the queue may be claimed at once.")]
    rate: Annotated[str | None, typer.Option(help=RATE_HELP)]
    order: Annotated[Order | None, typer.Option(help="Whether the first or the last that was put comes first.")]
    aging_s: Annotated[str | None, typer.Option("--aging", help="So much waiting counts as one step of priority, as in 10m.")]
    maxsize: Annotated[int | None, typer.Option(help="How many messages may be ready.")]
    max_attempts: Annotated[int | None, typer.Option(help="After how many failures a message is dead.")]
    dead_letter_queue: Annotated[str | None, typer.Option(help="The queue that dead messages are put into.")]
    lease_s: Annotated[str | None, typer.Option("--lease", help="How long a claim lasts, as in 60s.")]
    backoff: Annotated[str | None, typer.Option(help="How long a failed message waits, and at most, as in 1s:1h; it doubles.")]
    late_to: Annotated[LateTo | None, typer.Option(help="What becomes of a message that was not started in time.")]
    keep_done_s: Annotated[str | None, typer.Option("--keep-done", help="How long messages that are done can be looked at, as in 7d.")]


class GroupOptions(TypedDict):
    """The settings of one group, by the names that `QueueGroup.configure` has for them."""

    limit: Annotated[int | None, typer.Option(help="How many of its messages may be claimed at once.")]
    rate: Annotated[str | None, typer.Option(help=RATE_HELP)]
    weight: Annotated[int | None, typer.Option(help="How many messages it gives when its turn comes.")]
    paused: Annotated[bool | None, typer.Option("--pause/--resume", help="Hand nothing of it out, or go on.", show_default=False)]


def configure(
    queue: QueueName,
    *,
    unset: Unset = None,
    create: Annotated[bool, typer.Option("--create", help="Create the queue if there is none of this name.")] = False,
    url: StoreUrl = None,
    as_json: AsJson = False,
    **settings: Unpack[ConfigureOptions],
) -> None:
    """Show the settings of a queue, after changing those that are given. They hold for every producer and worker."""
    from holdfast import Queue

    changes = _changes(settings, unset or ())
    with connected(url) as client:
        if not create:
            refuse_unknown(client.store, "queue", queue)
        if changes or create:
            Queue.from_name(queue, client=client).configure(**changes)
        found = _settings(client.store, queue)
    print_result(found, _lines(found), as_json=as_json)


def groups(
    queue: QueueName,
    prefix: Annotated[str, typer.Argument(help="Only groups whose name begins so.")] = "",
    *,
    limit: Limit = 100,
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """List the groups of a queue that have something in line or claimed, or settings of their own."""
    with known_queue(queue, url) as handle:
        found = handle.groups(prefix=prefix, limit=limit)
    rows = [(one.name or "-", _state(one), str(one.live), _shown(one.limit), _shown(one.rate), str(one.weight)) for one in found]
    text = shown(("group", "state", "claimed", "limit", "rate", "weight"), rows) if rows else "No groups."
    print_result(as_data(found), text, as_json=as_json)


def group(
    queue: QueueName,
    name: GroupName,
    *,
    unset: Unset = None,
    forget: Annotated[bool, typer.Option("--forget", help="Take away all settings of its own first; its messages stay.")] = False,
    url: StoreUrl = None,
    as_json: AsJson = False,
    **settings: Unpack[GroupOptions],
) -> None:
    """Show one group of a queue, after changing what is given. Exits with 3 if nothing is known of it."""
    changes = _changes(settings, unset or ())
    with known_queue(queue, url) as handle:
        one = handle.group(name)
        if forget:
            one.forget()
        if changes:
            one.configure(**changes)
        found = one.info()
    if found is None:
        print_result(None, f"Nothing is known of group {name!r} of queue {queue}.", as_json=as_json)
        raise typer.Exit(NOTHING)
    data = as_data(found)
    print_result(data, _lines({**data, "state": _state(found)}), as_json=as_json)


def throttle(
    queue: QueueName,
    duration: Annotated[str, typer.Argument(help="For how long from now on, as in 30s or 5m; 0s ends it.")],
    *,
    group: Annotated[str | None, typer.Option(help="Only this group.")] = None,
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Hand nothing out for a time, to no worker. Puts, and work that has begun, go on."""
    delay_s = seconds_of(duration)
    with known_queue(queue, url) as handle:
        if group is None:
            handle.throttle(delay_s)
        else:
            handle.group(group).throttle(delay_s)
    what = f"Queue {queue}" if group is None else f"Group {group!r} of queue {queue}"
    text = f"{what} hands nothing out for {duration}." if delay_s else f"{what} is not throttled."
    print_result({"queue": queue, "group": group, "throttle_s": delay_s}, text, as_json=as_json)


def _changes(given: Mapping[str, Any], unset: Sequence[str]) -> Any:
    """What is given, and what is taken away."""
    changes = {name: READ[name](value) if name in READ else value for name, value in given.items() if value is not None}
    for text in unset:
        name = next((one for one in given if text.replace("-", "_") in (one, one.removesuffix("_s"))), None)
        if name is None or name == "paused":
            raise ValueError(f"unknown setting {text!r}; known are {', '.join(one.removesuffix('_s').replace('_', '-') for one in given)}")
        changes[name] = KEPT.get(name, 1 if name == "weight" else None)
    return changes


def _rate(text: str) -> Rate:
    found = re.fullmatch(r"(\d{1,9})/([^:]+)(?::(\d{1,9}))?", text)
    if found is None:
        raise ValueError(f"{text!r} is not a rate: write a number and a time, as in 600/1m, and with :5 how many may come at once")
    return Rate(int(found[1]), seconds_of(found[2]), int(found[3] or 1))


def _backoff(text: str) -> Backoff:
    first, _, most = text.partition(":")
    first_s = seconds_of(first)
    most_s = seconds_of(most) if most else max(first_s, Backoff().most_s)
    if most_s < first_s:
        raise ValueError(f"--backoff {text} would wait at most for less than the first time: write the shorter time first, as in 1s:1h")
    return Backoff(first_s, most_s=most_s)


READ: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("rate", "group_rate"), _rate),
    **dict.fromkeys(("aging_s", "lease_s", "keep_done_s"), seconds_of),
    "backoff": _backoff,
}
"""Settings that are given as texts, and how they are read."""


def _settings(store: Store, queue: str) -> dict[str, Any]:
    """The settings of a queue by the names that `Queue.configure` has for them; None where nothing is set."""
    (found,) = store.execute(Names("queue", queue, limit=1, exact=True)).settings
    policy = found.policy or Policy()
    named: dict[str, Any] = {name: as_data(getattr(policy, name)) for name in Policy.__struct_fields__}
    named["dead_letter_queue"] = named.pop("dead_letter")
    until = wall_time(found.throttled_until, store.wall_offset_us()) if found.throttled_until else None
    return {"queue": queue, "paused": found.paused, "throttled_until": as_data(until), "maxsize": found.maxsize, **named}


def _lines(data: dict[str, Any]) -> str:
    return "\n".join(f"{name.replace('_', ' '):<18}{_shown(value)}" for name, value in data.items())


def _state(one: GroupInfo) -> str:
    held = f" for {one.held_by}" if one.held_by else ""
    if one.paused:
        return f"paused{held}"
    return "open" if one.ready else "throttled" if one.throttled_until else "waits" if one.wakes_at else "full or empty"


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, Rate):
        return f"{value.count:,}/{value.per_s:g}s:{value.burst}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {part:g}" for name, part in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)
