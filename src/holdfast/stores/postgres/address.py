"""The URL of a PostgreSQL store: its parts for libpq, our options, and how it is shown."""

from collections.abc import Iterable
from difflib import get_close_matches
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from msgspec import Struct
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from holdfast.passwords import without_password

SCHEMA = "holdfast"
SCHEMA_BYTES = 63
POOL = 10

NO_URL = (
    "invalid PostgreSQL URL: write postgresql://user:password@host:5432/database, with %40 for @, %2F for /, %3F for ? and %23 for # "
    "in a password"
)

CUTS = {"tcp_user_timeout": "10000", "keepalives_idle": "10", "keepalives_interval": "3", "keepalives_count": "3"}
"""How the kernel notices that the other end is gone, or that what is between has forgotten the connection."""


class Address(Struct, frozen=True):
    """A database, and the schema in it that is the store."""

    conninfo: str
    """For libpq, with the password: never to be shown."""
    url: str
    """The same without the password."""
    where: str
    """The same for an error message."""
    schema: str = SCHEMA
    pool: int = POOL

    def __repr__(self) -> str:
        return f"Address({self.url!r})"


def parse(url: str) -> Address:
    """Read `postgresql://user:password@host:5432/database?schema=holdfast&pool=10`; several hosts are separated by commas.

    Whatever else stands behind the question mark is for libpq (`sslmode`, `connect_timeout`, `target_session_attrs` …).
    """
    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    if _is_misread(parts, given):
        raise ValueError(NO_URL)
    schema, pool = given.pop("schema", SCHEMA), given.pop("pool", str(POOL))
    if not schema or len(schema.encode()) > SCHEMA_BYTES or "\0" in schema:
        raise ValueError(f"schema must be a name of 1 to {SCHEMA_BYTES} bytes, not {schema!r}")
    if not pool.isdecimal() or int(pool) < 1:
        raise ValueError(f"pool must be the maximum number of connections of a process, 1 or more, not {pool!r}")
    refuse_unknown(given)
    # Everything is asked of the primary: of several hosts the one that takes writes.
    options = {"target_session_attrs": "read-write", "connect_timeout": "10", "application_name": "holdfast", **CUTS, **given}
    conninfo = urlunsplit(parts._replace(scheme="postgresql", query=urlencode(options, quote_via=quote)))
    try:
        known = conninfo_to_dict(conninfo)
    except psycopg.Error:
        # What libpq says about it may show the password.
        raise ValueError(NO_URL) from None
    hosts = str(known.get("host") or "the local server")
    database = str(known.get("dbname") or known.get("user") or "")
    return Address(conninfo, without_password(url), f"PostgreSQL database {database!r} at {hosts}", schema, int(pool))


def _is_misread(parts: SplitResult, options: Iterable[str]) -> bool:
    """Whether a password that was not quoted would be taken for something else, and shown as such."""
    hosts = parts.netloc.rpartition("@")[2].split(",")
    ports = [host.rpartition("]")[2].partition(":")[2] for host in hosts]
    elsewhere = parts.netloc.partition("@")[2] + parts.path + parts.fragment + "".join(options)
    return "@" in elsewhere or any(port and not port.isdecimal() for port in ports)


def refuse_unknown(options: Iterable[str]) -> None:
    """Refuse an option that neither Holdfast nor libpq has, by its name."""
    known = ["schema", "pool", *(option.keyword.decode() for option in Conninfo.get_defaults())]
    for name in options:
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise ValueError(
                f"unknown option {name!r} in a PostgreSQL URL; {hint}"
                "supported: schema, pool, and those of libpq (sslmode, connect_timeout, application_name, …)"
            )
