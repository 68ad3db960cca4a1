"""The commands `config path`, `show`, `init`, `set`, and `retry prune`."""

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import json

from holdfast.cli.commands import FAILED, REFUSED, ended
from holdfast.cli.localqueue.inspection import age
from holdfast.cli.localqueue.options import AsJson, answer, config_path, configured, store_at
from holdfast.cli.owner import act_as_owner_of
from holdfast.clock import wall_s
from holdfast.codec import check_duration

config: typer.Typer = typer.Typer(name="config", no_args_is_help=True, help="Defaults for these commands.")
retry: typer.Typer = typer.Typer(name="retry", no_args_is_help=True, help="Records of retries.")

KEYS = ("store_path", "retry_store_path", "dead_letter_ttl_seconds", "retry_record_ttl_seconds")

Seconds = Annotated[float | None, typer.Option(min=0.0)]


@config.command()
def path(*, as_json: AsJson = False) -> None:
    """Say where the configuration is."""
    typer.echo(json.encode(str(config_path())).decode() if as_json else config_path())


@config.command()
def show(*, as_json: AsJson = False) -> None:
    """Show what is configured."""
    del as_json
    answer(configured())


@config.command()
def init(
    *,
    store_path: Annotated[str | None, typer.Option(help="The SQLite file of the queues.")] = None,
    retry_store_path: Annotated[str | None, typer.Option(help="The SQLite file of the attempts; without it, beside the queue.")] = None,
    dead_letter_ttl_seconds: Seconds = None,
    retry_record_ttl_seconds: Seconds = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a configuration."""
    del as_json
    if config_path().exists() and not force:
        raise ended("localqueue config", f"{config_path()} is there already: give --force to overwrite it", FAILED)
    given = (store_path, retry_store_path, dead_letter_ttl_seconds, retry_record_ttl_seconds)
    _write({key: value for key, value in zip(KEYS, given, strict=True) if value is not None})


@config.command("set")
def set_(key: Annotated[str, typer.Argument(help=", ".join(KEYS))], value: str, *, as_json: AsJson = False) -> None:
    """Change one setting."""
    del as_json
    if key not in KEYS:
        raise ended("localqueue config", f"unknown setting {key!r}; supported: {', '.join(KEYS)}", REFUSED)
    _write(configured() | {key: check_duration(float(value), key) if key.endswith("_seconds") else value})


@retry.command()
def prune(
    *,
    older_than: Annotated[float | None, typer.Option(min=0.0, help="Seconds since the first attempt.")] = None,
    retry_store_path: Annotated[str | None, typer.Option(help="The SQLite file of the attempts.")] = None,
    store: Annotated[str | None, typer.Option("--url", help="The store's URL, where attempts are beside the queue.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be removed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove old records of attempts that were used up."""
    del as_json
    from holdfast.surfaces.localqueue.attempts.stores import SQLiteAttemptStore, URLAttemptStore

    seconds = age(older_than, "retry_record_ttl_seconds", "--older-than")
    file = None if store is not None else retry_store_path or configured().get("retry_store_path")
    if file is not None:
        act_as_owner_of(Path(file))
    with closing(URLAttemptStore(store_at(None, store).client) if file is None else SQLiteAttemptStore(file)) as attempts:
        count = attempts.count_exhausted_older_than if dry_run else attempts.prune_exhausted
        found = count(older_than=seconds, now=wall_s())
    answer({"dry_run": dry_run, "older_than": seconds, "would_delete" if dry_run else "deleted": found})


def _write(settings: dict[str, Any]) -> None:
    act_as_owner_of(config_path())
    config_path().parent.mkdir(parents=True, exist_ok=True)
    config_path().write_bytes(json.encode(settings))
    answer(settings)
