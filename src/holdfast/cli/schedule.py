"""The commands `holdfast schedule …`: list, show, add, delete, pause, resume, run-now, next, run, sync."""

from datetime import datetime
from typing import Annotated, Any, Unpack

import typer
from msgspec import to_builtins

from holdfast.cli.logs import LogJson, log_to_stderr
from holdfast.cli.opening import AsJson, CreateStore, StoreUrl, connected, reached, value_of
from holdfast.cli.queue.messages import PutBy, age_s, put_options
from holdfast.cli.showing import moment, print_result, shown
from holdfast.errors import ScheduleMissing

schedule: typer.Typer = typer.Typer(no_args_is_help=True, help="Messages that are put by a rule, again and again.")

Name = Annotated[str, typer.Argument(help="The name of the schedule.")]


@schedule.command("list")
def list_(
    prefix: Annotated[str, typer.Argument(help="Only those whose name begins so.")] = "", *, url: StoreUrl = None, as_json: AsJson = False
) -> None:
    """List the schedules, with their last and next runs."""
    from holdfast import Schedule

    with connected(url) as client:
        found = Schedule.list(prefix, client=client)
    rows = [(each.name, each.rule, each.tz, each.queue, _state(each), _shown(each.last_run), _shown(each.next_run)) for each in found]
    heads = ("name", "rule", "time zone", "queue", "state", "last run", "next run")
    print_result(found, shown(heads, rows) if rows else f"No schedules in {client.url}.", as_json=as_json)


@schedule.command()
def show(name: Name, *, url: StoreUrl = None, as_json: AsJson = False) -> None:
    """Show one schedule: its rule, its counts, and who serves its queue."""
    from holdfast import Schedule

    with connected(url) as client:
        found = Schedule.from_name(name, client=client).status()
    lines = [
        f"{field.replace('_', ' '):<14}{', '.join(value) or 'nobody' if isinstance(value, list | tuple) else value}"
        for field, value in to_builtins(found).items()
    ]
    print_result(found, "\n".join(lines), as_json=as_json)


@schedule.command()
def add(
    name: Name,
    rule: Annotated[str, typer.Argument(help="A cron expression, as in '0 3 * * *', or 'every 300 s'.")],
    *,
    queue: Annotated[str, typer.Option(help="The queue of the runs.")],
    value: Annotated[str, typer.Option(help="The value of each run, as JSON.")] = "null",
    tz: Annotated[str, typer.Option(help="The time zone of the rule.")] = "UTC",
    overlap: Annotated[str, typer.Option(help="If the run before is not over: skip, queue, replace or allow.")] = "skip",
    catch_up: Annotated[str, typer.Option(help="Of missed runs put the last, all, or none.")] = "last",
    catch_up_within: Annotated[str, typer.Option(help="How old a missed run may be that --catch-up all puts, as in 12h.")] = "1d",
    jitter_s: Annotated[float, typer.Option(help="Put each run up to so many seconds later.")] = 0.0,
    starts_at: Annotated[str | None, typer.Option(help="Not before this moment, as in 2026-03-01T08:00+01:00.")] = None,
    ends_at: Annotated[str | None, typer.Option(help="Not after this moment.")] = None,
    key: Annotated[str | None, typer.Option(help="The key of its runs, by which --overlap finds them; by default one of its own.")] = None,
    start_within: Annotated[str | None, typer.Option(help="Drop a run that was not started so long after it was due, as in 10m.")] = None,
    metadata: Annotated[str | None, typer.Option(help="A JSON object that travels beside the value.")] = None,
    url: StoreUrl = None,
    create_store: CreateStore = False,
    as_json: AsJson = False,
    **put_by: Unpack[PutBy],
) -> None:
    """Save a schedule, or change the one of this name."""
    from holdfast import Schedule

    options: Any = {"tz": tz, "overlap": overlap, "catch_up": catch_up, "jitter_s": jitter_s, "key": key}
    options |= {"starts_at": _moment(starts_at), "ends_at": _moment(ends_at), "catch_up_within_s": age_s(catch_up_within)}
    options |= {"start_within_s": age_s(start_within), **put_options(put_by)}
    options["metadata"] = None if metadata is None else value_of(metadata, "--metadata")
    decoded = value_of(value, "--value")
    with connected(url, create=create_store) as client:
        made = Schedule(name, rule, (queue, decoded), client=client, **options)
        made.save()
        found = made.status()
    print_result(found, f"Schedule {name} is saved; it runs next at {_shown(found.next_run)}.", as_json=as_json)


@schedule.command()
def delete(name: Name, *, url: StoreUrl = None, as_json: AsJson = False) -> None:
    """Remove a schedule; a run that was put already is not touched."""
    from holdfast import Schedule

    with connected(url) as client:
        if not Schedule.from_name(name, client=client).delete():
            raise ScheduleMissing(f"there is no schedule {name!r}: `holdfast schedule list` shows those there are")
    print_result({"deleted": name}, f"Schedule {name} is removed.", as_json=as_json)


@schedule.command()
def pause(
    name: Name,
    *,
    reason: Annotated[str, typer.Option(help="Why; `list` and `show` tell it.")] = "",
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Put no runs until it is resumed."""
    from holdfast import Schedule

    with connected(url) as client:
        Schedule.from_name(name, client=client).pause(reason)
    print_result({"paused": name, "reason": reason}, f"Schedule {name} is paused.", as_json=as_json)


@schedule.command()
def resume(name: Name, *, url: StoreUrl = None, as_json: AsJson = False) -> None:
    """Go on with the next run after now."""
    from holdfast import Schedule

    with connected(url) as client:
        handle = Schedule.from_name(name, client=client)
        handle.resume()
        found = handle.status()
    print_result(found, f"Schedule {name} runs next at {_shown(found.next_run)}.", as_json=as_json)


@schedule.command("run-now")
def run_now(name: Name, *, url: StoreUrl = None, as_json: AsJson = False) -> None:
    """Put a run now, besides those of the rule."""
    from holdfast import Schedule

    with connected(url) as client:
        job = Schedule.from_name(name, client=client).run_now()
    print_result({"queue": job.queue, "id": job.id}, f"Put job {job.id} to queue {job.queue}.", as_json=as_json)


@schedule.command("next")
def next_(
    rule: Annotated[str, typer.Argument(help="A cron expression, or 'every 300 s'; no store is needed.")],
    *,
    tz: Annotated[str, typer.Option(help="The time zone of the rule.")] = "UTC",
    count: Annotated[int, typer.Option("-n", "--count", min=1, max=1_000, help="How many runs.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Show when a rule runs next, to try one before it is saved."""
    import time

    from holdfast.schedules.definition import entry_for, runs_from

    runs = runs_from(entry_for(rule, "none", None, {"tz": tz}), time.time_ns() // 1_000, count)
    print_result(runs, "\n".join(map(_shown, runs)), as_json=as_json)


@schedule.command()
def run(*, url: StoreUrl = None, as_json: LogJson = False) -> None:
    """Put the runs that are due, and log each, until SIGTERM or Ctrl-C. Workers do this too: this is for a store whose workers do not."""
    from holdfast._sync.flows.ticking import Ticker
    from holdfast.ids import new_id
    from holdfast.workers.signals import stop_signals

    log_to_stderr(as_json=as_json)
    with reached(url, create=True) as store:
        ticker = Ticker(store, new_id())
        with stop_signals(ticker.stop):
            ticker.run()


@schedule.command()
def sync(
    name: Annotated[str, typer.Argument(metavar="MODULE:NAME", help="The Tasks whose schedules are saved.")],
    *,
    prune: Annotated[bool, typer.Option("--prune", help="Remove those that the code does not declare any more.")] = False,
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Save the schedules that code declares, in a deploy; workers do it at their start, too."""
    import sys
    from pathlib import Path

    from holdfast import ControlPlaneClient, Tasks, aio
    from holdfast._sync.flows.ticking import sync as sync_schedules
    from holdfast.cli.worker import found
    from holdfast.schedules.declared import declared_entries

    sys.path.insert(0, str(Path.cwd()))
    app = found(name)
    if not isinstance(app, Tasks | aio.Tasks):
        raise ValueError(f"{name} is no Tasks: name the collection whose schedules are to be saved, as in module:app")  # noqa: TRY004 - the user wrote another name
    with app.client if url is None else ControlPlaneClient(url) as client:
        done = sync_schedules(client.store, app.name, declared_entries(app.declared), prune=prune)
    removed = f", {len(done.removed)} removed" if done.removed else ""
    left = f"; not declared any more: {', '.join(done.left)} (--prune removes them)" if done.left else ""
    print_result(done, f"{len(done.saved)} saved{removed}{left}.", as_json=as_json)


def _state(each: Any) -> str:
    if each.paused is not None:
        return f"paused: {each.paused}" if each.paused else "paused"
    if each.is_orphan:
        return "orphaned"
    return "active" if each.next_run is not None else "over"


def _shown(when: datetime | None) -> str:
    return moment(None if when is None else when.timestamp())


def _moment(text: str | None) -> datetime | None:
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a moment: write one with its time zone, as in 2026-03-01T08:00+01:00") from None
