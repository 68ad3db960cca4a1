"""A release that knows no policies of queues finds those paused that have some, on every store: tests/verify starts such a process."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import lmdb
import psycopg
import pytest
from msgspec import json, msgpack
from redis import Redis

from holdfast.commands import Claim, Configure, Names
from holdfast.connect import connect
from holdfast.rates import Rate
from holdfast.testing.conformance.asking import put
from tests.postgres import shared_postgres
from tests.servers import shared_redis
from tests.stored.loading import KINDS, load

POLICIES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"groups": "fair", "group_limit": 2}, {"groups": None, "group_limit": None}),
    ({"limit": 5}, {"limit": None}),
    ({"rate": Rate(5, per_s=1.0, burst=5)}, {"rate": None}),
    ({"order": "lifo"}, {"order": "fifo"}),
    ({"keep_done_s": 60.0}, {"keep_done_s": None}),
]
"""Settings that a claim goes by, and none of them."""


def looks_paused(url: str) -> bool:
    """What 0.1.0 reads of the queue before it claims; where it left functions, what they answer."""
    kind, _, path = url.partition(":///")
    if kind == "sqlite":
        with closing(sqlite3.connect(path)) as connection:
            return bool(connection.execute("select paused from holdfast_names where kind = 'queue' and name = 'ruled'").fetchone()[0])
    if kind == "lmdb":
        with closing(lmdb.open(path, max_dbs=64, lock=False)) as environment, environment.begin() as txn:
            settings = txn.get(b"qruled", b"", db=environment.open_db(b"names", txn=txn, create=False))
            return bool(msgpack.decode(settings).get("paused"))
    if url.startswith("redis:"):
        with Redis.from_url(shared_redis()) as server:
            return bool(server.hget(f"{url.partition('prefix=')[2]}:{{queue:ruled}}", "paused") == b"1")
    with psycopg.connect(shared_postgres()) as connection:
        told = connection.execute("select stored_0_1_0.claim('', false, 'ruled', 'old', 30, 1, false, 'place', null, null)").fetchone()
        connection.rollback()
        return told is not None and json.decode(told[0])["messages"] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_queue_with_policies_looks_paused_to_a_release_that_knows_none(kind: str, tmp_path: Path) -> None:
    url = load("0.1.0", kind, tmp_path)
    for policy, none in POLICIES:
        with closing(connect(url)) as store:
            put(store, *"abcdefgh", queue="ruled")
            for paused in (True, False):
                assert store.execute(Configure("queue", "ruled", paused=paused, **policy)).paused == paused
                assert [one.paused for one in store.execute(Names("queue", "ruled", exact=True)).settings] == [paused]
                # Under a limit or a rate it writes the settings again.
                assert len(store.execute(Claim("ruled", "us", 30.0)).messages) == (not paused)
        assert looks_paused(url), policy
        with closing(connect(url)) as store:
            store.execute(Configure("queue", "ruled", **none))
        assert not looks_paused(url), policy
