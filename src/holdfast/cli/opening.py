"""What the nouns that work on a store share: opening it, naming who does, reading a duration, and ending with a reason."""

import getpass
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer

from holdfast.connect import SERVERS, connect_shared
from holdfast.errors import HoldfastError
from holdfast.server.audit import Actor
from holdfast.stores import Store

FAILED: Final = 1
REFUSED: Final = 2

StoreUrl = Annotated[
    str | None, typer.Option("--store", help="The store's URL; without it HOLDFAST_URL, else the file in your data folder.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_DURATION = re.compile(r"(\d{1,9})([smhdw])")


@contextmanager
def opened(url: str | None, command: str) -> Iterator[Store]:
    """Open the store itself while the block runs; what fails is said in one line, and exits with 1, or with 2 for what was asked wrong."""
    try:
        store = connect_shared(url)
        try:
            if store.url.partition("://")[0] in SERVERS:
                raise ValueError(
                    "this is done on the store itself, by whoever may open it, not through a server: give its URL with --store"
                )
            yield store
        finally:
            store.close()
    except ValueError as error:
        raise ended(command, error, REFUSED) from None
    except HoldfastError as error:
        raise ended(command, error, FAILED) from None


def ended(command: str, reason: object, code: int) -> typer.Exit:
    """Say why, and end with the code."""
    typer.echo(f"holdfast {command}: {reason}", err=True)
    return typer.Exit(code)


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
        raise ValueError(f"{duration!r} is no duration: write a number with s, m, h, d or w, as in 30d")
    return int(found[1]) * _UNITS[found[2]]
