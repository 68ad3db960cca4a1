"""The URL of a Redis, and how it is shown without its password."""

from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from msgspec import Struct
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.retry import Retry

from holdfast.passwords import without_password

SCHEMES = {"redis": "redis", "rediss": "rediss", "redis+unix": "unix", "valkey": "redis", "valkeys": "rediss", "valkey+unix": "unix"}
"""Ours, and what the library calls the same."""

EVICTIONS = {"refuse": False, "allow": True}

DEFAULTS = {
    # What does not answer in so long is asked again on another connection, under the same id.
    "socket_timeout": 10.0,
    "socket_connect_timeout": 5.0,
    "protocol": 2,
}


class Address(Struct, frozen=True):
    """One store in one Redis."""

    shown: str
    """The URL without its password."""
    prefix: str
    """What the names of all our keys begin with."""
    allows_eviction: bool
    options: dict[str, Any]
    """What the library's connections are made with."""

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"


def read_url(text: str) -> Address:
    """Read a URL such as `redis://user:password@host:6379/0?prefix=jobs`; ValueError for one that cannot be meant."""
    url = urlsplit(text)
    if url.scheme not in SCHEMES:
        raise ValueError(f"unknown Redis URL scheme '{url.scheme}://'; supported: {', '.join(f'{scheme}://' for scheme in SCHEMES)}")
    options = dict(parse_qsl(url.query, keep_blank_values=True))
    prefix, eviction = options.pop("prefix", "holdfast"), options.pop("eviction", "refuse")
    if not prefix or any(mark in prefix for mark in "{}"):
        raise ValueError(f"prefix must be a key prefix without braces, not {prefix!r}")
    if eviction not in EVICTIONS:
        raise ValueError(f"eviction must be one of {', '.join(EVICTIONS)}, not {eviction!r}")
    _check_place(url)
    theirs = _joined(SCHEMES[url.scheme], url.netloc, url.path, urlencode(options))
    return Address(without_password(text), prefix, EVICTIONS[eviction], _connection_options(theirs))


def _check_place(url: SplitResult) -> None:
    """Refuse what stands for a port or a database and is none, without showing it: it may be a part of a password."""
    if SCHEMES[url.scheme] == "unix":
        return
    port, database = url.netloc.rpartition("@")[2].rpartition("]")[2].partition(":")[2], url.path.strip("/")
    if (port and not port.isdecimal()) or (database and not database.isdecimal()):
        raise ValueError(
            f"this {url.scheme}:// URL has no database: write {url.scheme}://user:password@host:6379/0, with %40 for @ and %2F for / "
            "in a password"
        )


def _connection_options(url: str) -> dict[str, Any]:
    try:
        options: dict[str, Any] = {**DEFAULTS, **parse_url(url)}  # type: ignore[no-untyped-call]
    except ValueError as error:
        # The library's own words name the option, never the password.
        raise ValueError(f"this is not a valid Redis URL: {error}") from None
    if "path" not in options:
        options.setdefault("socket_keepalive", True)
    options["retry"] = Retry(NoBackoff(), 0)  # We try again ourselves.
    return options


def _joined(scheme: str, netloc: str, path: str, query: str) -> str:
    # With both slashes, also where a file follows.
    return f"{scheme}://{netloc}{path}" + (f"?{query}" if query else "")
