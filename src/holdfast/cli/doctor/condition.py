"""What `holdfast doctor` says about the engine: the form of the data, a pooler, space that holds nothing, and its limit."""

from collections.abc import Iterator
from typing import Final

from holdfast.cli.doctor.finding import Finding
from holdfast.stores.condition import Condition
from holdfast.wording import seconds

MIB: Final = 2**20
BLOAT_BYTES: Final = 64 * MIB
BLOAT_SHARE: Final = 0.5
"""Unused space is worth a word if there is that much of it, and it is so large a part."""
LOW_BYTES: Final = 512 * MIB
"""With less free space on the disk there is a warning."""
EMPTY_BYTES: Final = 64 * MIB
"""With less it is a problem: a checkpoint, or a backup, may need as much at once."""
FULL_SHARE: Final = 0.8
"""From here on a limit is said to be near."""
OPEN_S: Final = 600.0
"""A transaction that is open for longer is worth a look."""

POOLER: Final = (
    "the server is reached through a pooler: the process that answers is not the one that the connection was told of. "
    "Nothing is prepared, and waits poll"
)
ELSEWHERE: Final = (
    "Run `holdfast doctor --url` where the store can be opened: a server does not tell of its schema, its pooler and its space."
)


def condition_findings(condition: Condition | None, *, is_server: bool) -> Iterator[Finding]:
    """What is known of the engine, or of the server before it; of a store in memory nothing."""
    if condition is None:
        return
    about = "server" if is_server else "schema"
    yield Finding("notice" if condition.form_remedy else "ok", about, condition.form, condition.form_remedy)
    if is_server:
        yield Finding("notice", "schema", "the store is behind a server, and only its queues and workers were examined", ELSEWHERE)
    if condition.is_pooled:
        yield Finding("notice", "pooler", POOLER, "For waits that end at once, give the programs a URL of the server itself.")
    if condition.size_bytes:
        yield space(condition)
    if condition.free_bytes is not None:
        yield disk(condition.free_bytes)
    used = condition.size_bytes - condition.unused_bytes
    if condition.limit_bytes is not None and used > FULL_SHARE * condition.limit_bytes:
        found = f"{_mib(used)} of the {_mib(condition.limit_bytes)} that the server may take are used"
        yield Finding("warning", "space", found, "Raise maxmemory before it is reached: then nothing is lost, but puts are refused.")
    if condition.oldest is not None and condition.oldest.open_s > OPEN_S:
        found = f"{condition.oldest.whose} has a transaction open for {seconds(condition.oldest.open_s)}: no space is freed meanwhile"
        yield Finding("warning", "space", found, condition.oldest.remedy)


def space(condition: Condition) -> Finding:
    """How much of the space holds nothing."""
    found = f"{_mib(condition.size_bytes)}, of which {_mib(condition.unused_bytes)} hold nothing"
    if condition.unused_bytes < BLOAT_BYTES or condition.unused_bytes < BLOAT_SHARE * condition.size_bytes:
        return Finding("ok", "space", found)
    return Finding("warning", "space", found, condition.compact)


def disk(free_bytes: int) -> Finding:
    """How much room the disk of a file has left."""
    found = f"{_mib(free_bytes)} are free on the disk of the store"
    if free_bytes >= LOW_BYTES:
        return Finding("ok", "disk", found)
    remedy = "Free some, or move the store to a larger one with `holdfast copy`. On a full disk puts are refused, and nothing is lost."
    return Finding("warning" if free_bytes >= EMPTY_BYTES else "problem", "disk", found, remedy)


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / MIB:,.1f} MiB"
