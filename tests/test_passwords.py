"""No password of a URL is shown: not by a `repr`, not as a `url`, not in an error."""

import traceback

import pytest

from holdfast.client import ControlPlaneClient
from holdfast.connect import connect
from holdfast.passwords import without_password
from holdfast.stores.postgres.address import parse
from holdfast.stores.redis.address import read_url

PASSWORD = "hunter2"  # noqa: S105 - the very thing that must not be shown

GOOD = [
    f"postgresql://ann:{PASSWORD}@db.example:5432/app",
    f"postgresql://ann@db1,db2:5433/app?password={PASSWORD}&sslmode=require",
    f"postgresql://ann@db/app?sslmode=require&sslpassword={PASSWORD}",
    f"postgresql://ann@db/app?password=x@{PASSWORD}",
    f"postgresql://ann@db:5432/app?password={PASSWORD}@x:y/z",
    f"redis://:{PASSWORD}@cache:6379/0",
    f"redis://ann:x@{PASSWORD}@cache:6379/0",
    f"rediss://cache:6379/0?password={PASSWORD}&prefix=jobs",
    f"rediss://cache:6379/0?ssl_password={PASSWORD}",
]
MISTAKEN = [
    f"postgresql://ann:x@{PASSWORD}@db/app",
    f"postgresql://ann:x/{PASSWORD}@db/app",
    f"postgresql://ann:1/{PASSWORD}@db/app",
    f"postgresql://ann:1?{PASSWORD}@db/app",
    f"postgresql://ann:1#{PASSWORD}@db/app",
    f"postgresql://db:{PASSWORD}/app",
    f"postgresql://db1,db2:{PASSWORD}/app",
    f"redis://cache:{PASSWORD}/0",
    f"redis://:x/{PASSWORD}@cache/0",
    f"redis://:{PASSWORD}#x@cache/0",
]


@pytest.mark.parametrize("url", GOOD + MISTAKEN)
def test_a_client_never_shows_a_password(url: str) -> None:
    client = ControlPlaneClient(url)
    shown = f"{client!r} {client.url} {client.async_store.url}"
    assert PASSWORD not in shown
    assert url.partition("://")[0] in shown


@pytest.mark.parametrize("url", GOOD)
def test_an_address_never_shows_a_password(url: str) -> None:
    if url.startswith("postgresql"):
        database = parse(url)
        shown, seen = repr(database), database.url
    else:
        cache = read_url(url)
        shown, seen = repr(cache), cache.shown
    assert PASSWORD not in shown + seen
    assert seen in shown


@pytest.mark.parametrize("url", MISTAKEN)
def test_a_url_that_was_not_quoted_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ValueError, match=r"%40 for @") as caught:
        connect(url)
    assert PASSWORD not in "".join(traceback.format_exception(caught.value, chain=True)).partition("\nValueError: ")[2]
    assert PASSWORD not in f"{caught.value} {caught.value.__cause__} {caught.value.__context__}"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:s3cret@db.example:5432/app", "postgresql://ann@db.example:5432/app"),
        ("postgresql://ann:s3/cr@et?x@db1,db2/app?sslmode=require", "postgresql://ann@db1,db2/app?sslmode=require"),
        ("postgresql://db/app?password=s3cret&user=ann", "postgresql://db/app?user=ann"),
        ("postgresql://db/app?user=ann&password=s3cret", "postgresql://db/app?user=ann"),
        ("postgresql://db/app?password=s3cret", "postgresql://db/app"),
        ("redis://:s3cret@cache:6379/0", "redis://cache:6379/0"),
        ("redis://cache:s3cret/0", "redis://cache/0"),
        ("redis://[::1]:6379/0", "redis://[::1]:6379/0"),
        ("redis+unix:///run/redis.sock?db=1", "redis+unix:///run/redis.sock?db=1"),
        ("sqlite:////data/a@b:c.db?durability=power", "sqlite:////data/a@b:c.db?durability=power"),
        ("memory://name", "memory://name"),
        ("postgresql://db:5432?sslmode=require", "postgresql://db:5432?sslmode=require"),
        ("postgresql://db1:5432,db2:5433/app", "postgresql://db1:5432,db2:5433/app"),
        ("http://localhost:7077/ns/acme", "http://localhost:7077/ns/acme"),
    ],
)
def test_all_else_of_a_url_is_shown(url: str, shown: str) -> None:
    assert without_password(url) == shown
    assert without_password(shown) == shown
