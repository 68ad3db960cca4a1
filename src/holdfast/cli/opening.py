"""Shared by commands on a store: opening it, naming the actor, and parsing a duration."""

import getpass
import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from msgspec import DecodeError, json

from holdfast.cli.owner import act_as_owner_of
from holdfast.connect import SERVERS, connect_shared, is_server
from holdfast.errors import StoreMissing
from holdfast.server.audit import Actor
from holdfast.stores import Store

if TYPE_CHECKING:
    from holdfast import ControlPlaneClient

StoreUrl = Annotated[str | None, typer.Option("--url", help="The store's URL; without it HOLDFAST_URL, else the file in your data folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
AlwaysJson = Annotated[bool, typer.Option("--json", help="Accepted: each line is JSON anyway.")]
CreateStore = Annotated[bool, typer.Option("--create-store", help="Create the store if there is none yet.")]

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_DURATION = re.compile(r"(\d{1,9})([smhdw])")


@contextmanager
def opened(url: str | None, *, create: bool = False) -> Iterator[Store]:
    """Open the store itself, which must exist unless `create`, while the block runs."""
    with reached(url, create=create) as store:
        if store.url.partition("://")[0] in SERVERS:
            raise ValueError("this is done on the store itself, by a user who may open it, not through a server: give its URL with --url")
        yield store


@contextmanager
def reached(url: str | None, *, create: bool = False) -> Iterator[Store]:
    """Open a store, or reach it through its server, while the block runs; it must exist unless `create`."""
    act_as_owner_of(url)
    try:
        store = connect_shared(url, create=create)
    except StoreMissing as missing:
        if url is not None or "HOLDFAST_URL" in os.environ:
            raise
        raise StoreMissing(f"{missing}; no URL was given, and this is the default: name the store with --url or HOLDFAST_URL") from None
    try:
        yield store
    finally:
        store.close()


@contextmanager
def connected(url: str | None, *, create: bool = False, by: Actor | None = None) -> "Iterator[ControlPlaneClient]":
    """A client of the store, for handles, while the block runs; the store must exist unless `create`.

    Acts of administrators are recorded in the audit: by the server, or here on the store itself.
    """
    from holdfast import ControlPlaneClient
    from holdfast.cli.audited_store import AuditedStore

    with reached(url, create=create) as store:
        yield ControlPlaneClient.on(store if is_server(store.url) else AuditedStore(store, by or this_user()))


def this_user() -> Actor:
    """Who is at the command line, for the audit."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # A container may run under a number that has no name.
        user = "somebody"
    return Actor(f"{user} at the command line", platform.node())


def seconds_of(duration: str) -> float:
    """Read a duration such as 90s, 15m, 12h, 30d or 2w."""
    found = _DURATION.fullmatch(duration)
    if found is None:
        raise ValueError(f"{duration!r} is not a duration: write a number with s, m, h, d or w, as in 30d")
    return int(found[1]) * _UNITS[found[2]]


def value_of(text: str, option: str) -> Any:
    """Read a value that was given as JSON."""
    try:
        return json.decode(readable(text, option))
    except DecodeError:
        raise ValueError(f"{option} is JSON, and {text!r} is not: a text needs quotes, as in '\"daily\"'") from None


def readable(text: str, what: str) -> str:
    """The text itself; ValueError if it came from bytes that are no text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} is not UTF-8: convert it first, as with iconv") from None
    return text
