"""Shared by localqueue's commands: the store option and the output."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer
from msgspec import DecodeError, json
from platformdirs import user_config_path

from holdfast.cli.owner import act_as_owner_of
from holdfast.client import ControlPlaneClient
from holdfast.connect import connect_shared

if TYPE_CHECKING:
    from holdfast.surfaces.localqueue import PersistentQueue, URLQueueStore

QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="The queue's name.")]
MessageId = Annotated[str, typer.Argument(metavar="ID", help="The message's id.")]
StoreUrl = Annotated[str | None, typer.Option("--url", help="The store's URL; without it HOLDFAST_URL, else the file in your data folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Accepted: the output is always JSON.")]
LeaseTimeout = Annotated[float, typer.Option(min=0.001, help="Seconds for which no other worker gets the message.")]
WorkerId = Annotated[str | None, typer.Option(help="Who leases.")]


class StoreOptions(TypedDict):
    """Where the queue is; every command has these."""

    store_path: Annotated[str | None, typer.Option(help="A SQLite file; without it that of the configuration, else --url.")]
    store: StoreUrl
    as_json: AsJson


class LoggedOptions(StoreOptions):
    """The same of a command that may say what it does."""

    log_events: Annotated[bool, typer.Option("--log-events", help="Say on stderr what is done, one JSON object a line.")]


@contextmanager
def opened(name: str, at: StoreOptions, *, lease_timeout: float = 30.0) -> Iterator["PersistentQueue[Any]"]:
    """A queue while the block runs."""
    from holdfast.surfaces.localqueue import PersistentQueue

    with closing(store_at(at["store_path"], at["store"])) as location:
        yield PersistentQueue(name, store=location, lease_timeout=lease_timeout)


def store_at(store_path: str | None, store: str | None) -> "URLQueueStore":
    """The store: the file or the URL that was named, else the file of the configuration, else where every handle is."""
    from holdfast.surfaces.localqueue import SQLiteQueueStore, URLQueueStore

    if store_path is not None and store is not None:
        raise ValueError("pass either --store-path or --store, not both")
    if store is None:
        store_path = store_path or configured().get("store_path")
    act_as_owner_of(store if store_path is None else Path(store_path))
    # A client of its own, so that closing it closes the store.
    return URLQueueStore(ControlPlaneClient.on(connect_shared(store))) if store_path is None else SQLiteQueueStore(store_path)


def config_path() -> Path:
    """Where the configuration is."""
    return user_config_path("holdfast") / "localqueue.json"


def configured() -> dict[str, Any]:
    """What was configured; nothing where there is no file."""
    path = config_path()
    if not path.is_file():
        return {}
    try:
        return json.decode(path.read_bytes(), type=dict[str, Any])
    except DecodeError as error:
        raise ValueError(f"{path} does not hold a JSON object: correct or remove it ({error})") from error


def answer(value: object) -> None:
    """Print it as JSON."""
    typer.echo(told(value))


def tell(event: str, /, *, when: bool, **facts: Any) -> None:
    """Say on stderr what was done, if that was asked for."""
    if when:
        typer.echo(told({"event": event, **{name: fact for name, fact in facts.items() if fact is not None}}), err=True)


def told(value: object) -> str:
    """JSON, whatever a message holds."""
    return json.encode(value, enc_hook=str).decode()
