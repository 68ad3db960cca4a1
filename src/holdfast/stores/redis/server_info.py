"""Checks a Redis server: its version, settings and data format, and its guarantees."""

from typing import Any, Literal

from msgspec import Struct

from holdfast.errors import SchemaTooNew, StoreError, StoreMissing
from holdfast.stores import Guarantees

OLDEST = (6, 2)
FORMAT = 2
"""The form in which the scripts keep things. Of the first, only versions before 0.1.0 knew; its counter lay under another key."""
CLOCK = "the Redis server's wall clock"


class Server(Struct, frozen=True):
    """The settings that decide what it promises."""

    engine: str
    version: tuple[int, ...]
    role: str
    is_cluster: bool
    policy: str
    has_log: bool
    fsync: str
    """`always`, `everysec` or `no`; empty where we may not ask."""

    def guarantees(self) -> Guarantees:
        survives: Literal["power", "nothing"] = "power" if self.has_log and self.fsync == "always" else "nothing"
        settings = {
            "appendonly": "yes" if self.has_log else "no",
            "appendfsync": self.fsync or "unknown",
            "maxmemory-policy": self.policy,
            "cluster": "yes" if self.is_cluster else "no",
        }
        return Guarantees(survives, "hosts", CLOCK, f"{self.engine} {'.'.join(map(str, self.version))}", settings)


def read_server(info: bytes, config: list[bytes]) -> Server:
    """Read the answers to INFO and to CONFIG GET, which may be empty."""
    facts = dict(line.split(":", 1) for line in info.decode().splitlines() if ":" in line)
    settings = dict(zip(map(bytes.decode, config[::2]), map(bytes.decode, config[1::2]), strict=True))
    is_valkey = facts.get("server_name") == "valkey" or "valkey_version" in facts
    version = facts.get("valkey_version") if is_valkey else facts.get("redis_version")
    return Server(
        engine="Valkey" if is_valkey else "Redis",
        version=tuple(int(part) for part in (version or "0").split(".") if part.isdecimal()),
        role=facts.get("role", "master"),
        is_cluster=facts.get("cluster_enabled") == "1" or facts.get("redis_mode") == "cluster",
        policy=settings.get("maxmemory-policy") or facts.get("maxmemory_policy") or "unknown",
        has_log=facts.get("aof_enabled") == "1",
        fsync=settings.get("appendfsync", ""),
    )


def check(server: Server, where: str, *, allows_eviction: bool) -> None:
    """Refuse a server that would lose data or cannot run the scripts."""
    if server.version < OLDEST and server.engine == "Redis":
        raise StoreError(f"{where} is Redis {'.'.join(map(str, server.version))}: Holdfast needs 6.2 or newer, or Valkey")
    if server.is_cluster:
        raise StoreError(f"{where} is part of a Redis Cluster, which this version does not support: use a single Redis")
    if server.role != "master":
        raise StoreError(f"{where} is a read-only replica: give the address of the primary")
    if server.policy not in ("noeviction", "unknown") and not allows_eviction:
        raise StoreError(
            f"{where} may evict data when its memory is full (maxmemory-policy is {server.policy}): "
            "set it to noeviction, or accept the loss with ?eviction=allow"
        )


def check_format(found: bytes | None, first: bytes | None, where: str) -> None:
    """Refuse data of another form: `found` is the number it bears, `first` what only the first form has."""
    number = int(found) if found is not None else FORMAT if first is None else 1
    if number > FORMAT:
        raise SchemaTooNew(f"the data in {where} has format {number}, but this version supports {FORMAT}: upgrade Holdfast")
    if number < FORMAT:
        raise StoreError(
            f"the data in {where} has format {number}, which only versions before 0.1.0 wrote: copy it to another kind of store with "
            "the version that wrote it, or use another prefix"
        )


def refuse_if_missing(found: bytes | None, where: str) -> None:
    """Refuse a prefix under which there is no data of ours, without beginning any."""
    if found is None:
        raise StoreMissing(f"there is no store at {where}: check the URL, its database and its prefix")


def reply_or(reply: Any, otherwise: Any) -> Any:
    """A reply, or something else where the server refused to answer."""
    return otherwise if isinstance(reply, Exception) else reply
