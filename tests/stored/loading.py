"""The stores that earlier releases wrote, put where the code of today can open them."""

import base64
import lzma
import re
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from msgspec import json
from psycopg import sql
from redis import Redis

from tests.postgres import shared_postgres
from tests.servers import own_redis_url, shared_redis

HERE = Path(__file__).parent
RELEASES = sorted(path.name for path in HERE.iterdir() if (path / "facts.json.xz").exists())
KINDS = ("sqlite", "lmdb", "postgres", "redis")


@cache
def facts_of(release: str) -> dict[str, Any]:
    """For each kind of store, what was written there, and what was read then."""
    found: dict[str, Any] = json.decode(content(release, "facts.json"))
    return found


def content(release: str, name: str) -> bytes:
    return lzma.decompress((HERE / release / f"{name}.xz").read_bytes())


NEWER = [release for release in RELEASES if "newer" in facts_of(release)["sqlite"]["snapshot"]]
"""Those that know more than 0.1.0 did."""


def load(release: str, kind: str, folder: Path) -> str:
    """The URL of a store as the release left it, of this test alone."""
    if kind == "sqlite":
        (folder / "jobs.db").write_bytes(content(release, "sqlite.db"))
        return f"sqlite:///{folder}/jobs.db"
    if kind == "lmdb":
        (folder / "data.mdb").write_bytes(content(release, "lmdb.mdb"))
        return f"lmdb:///{folder}"
    return load_postgres(release) if kind == "postgres" else load_redis(release)


def load_postgres(release: str) -> str:
    schema = "stored_" + re.sub(r"\W", "_", release)
    statements = re.sub(
        r"(?<!\")\bholdfast(?=\.)|(?<=SCHEMA )holdfast|(?<=TO ')holdfast(?=')", schema, content(release, "postgres.sql").decode()
    )
    with psycopg.connect(shared_postgres(), autocommit=True) as connection:
        connection.execute(sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(schema)))
        connection.execute("set check_function_bodies = off")
        connection.execute(statements.encode())
    return f"{shared_postgres()}?schema={schema}"


def load_redis(release: str) -> str:
    url = own_redis_url()
    prefix = url.partition("prefix=")[2].encode()
    with Redis.from_url(shared_redis()) as server, server.pipeline(transaction=False) as pipeline:
        for words in json.decode(content(release, "redis.json"), type=list[list[str]]):
            name, key, *rest = map(base64.b64decode, words)
            pipeline.execute_command(name, key.replace(b"holdfast:", prefix + b":", 1), *rest)
        pipeline.execute()
    return url
