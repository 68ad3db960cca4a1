"""The audit log of administrative acts on queues, dicts, tokens and the log.

A record is written in the same step as the act, so there is neither without the other, under a key that no other has, so it is never
written again; no caller can name the dict it is in. After `KEPT_S` the store lets it go.
"""

import logging
import time
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Raw, Struct, json, structs

from holdfast.commands import Break, Change, Clear, Command, Configure, Entries, LowerFences, Move, Prune, Read, Resize, Together, Write
from holdfast.ids import new_id
from holdfast.server.namespaces.names import AUDIT

KEPT_S: Final = 90 * 86_400.0
AUDIT_PAGE: Final = 1_000

_log = logging.getLogger("holdfast.audit")

ADMINISTRATIVE: Final = (Break, Configure, Clear, LowerFences, Move, Prune, Resize, Together)
MOVES: Final = {"ready": "redrive", "dead": "bury", "gone": "purge", "due": "signal"}
NAMING: Final = {*Command.__struct_fields__, "kind", "name"}
DEFAULTS: Final = {field.name: field.default for field in structs.fields(Configure)}


class Actor(Struct, frozen=True):
    """Who acts, and from where; never a secret."""

    who: str
    where: str
    namespace: str = ""


class Act(Struct, frozen=True):
    """What was done, and to what."""

    act: str
    what: str
    facts: dict[str, Any] = {}


class Audited(Struct, frozen=True, omit_defaults=True):
    """One record; `id` orders them by time."""

    id: str
    at: float
    """Seconds of the wall clock, since 1970."""
    who: str
    where: str
    namespace: str
    act: str
    what: str
    facts: dict[str, Any] = {}


class AuditPage(Struct, frozen=True):
    """Records in the order asked for; with `more`, read on `after` that id. A page may have none, and the next some."""

    records: list[Audited]
    more: bool = False
    after: str | None = None


def acts_of(command: Command[Any]) -> list[Act]:
    """What of the command belongs into the audit; asked of every command, and nearly always nothing."""
    return list(_acts_of(command)) if isinstance(command, ADMINISTRATIVE) else []


def recorded(by: Actor, *acts: Act) -> Write:
    """What writes the acts into the audit; goes into one step with them."""
    return Write(AUDIT, [_change(by, act) for act in acts])


def is_told(command: Command[Any]) -> bool:
    """Whether only administrators may do it and it is not written down.

    That is copying: what it wrote beside what it copies would make it no copy.
    """
    return command.verb == "admin"


def tell(by: Actor, command: Command[Any]) -> None:
    """Log what is not written down."""
    _log.info("%s, from %s: %s", by.who, by.where, type(command).__name__.lower())


def read_audit(after: str | None = None, limit: int = AUDIT_PAGE) -> Read:
    """What reads the audit after the id of a record, or the beginning of one."""
    if not 1 <= limit <= AUDIT_PAGE:
        raise ValueError(f"limit must be from 1 to {AUDIT_PAGE:,}, not {limit}")
    return Read(AUDIT, after=after, limit=limit)


def audit_page(found: Entries) -> AuditPage:
    """The records in what was read."""
    records = [json.decode(entry.value, type=Audited) for entry in found.entries]
    return AuditPage(records, found.more, records[-1].id if found.more else None)


def id_at(seconds: float) -> str:
    """What the ids of records from that moment on sort behind."""
    text = f"{max(0, int(seconds * 1_000)):012x}"
    return f"{text[:8]}-{text[8:]}"


def _acts_of(command: Command[Any]) -> Iterator[Act]:
    if isinstance(command, Together):
        for step in command.commands:
            yield from _acts_of(step)
    elif isinstance(command, Configure):
        yield Act("configure", f"{command.kind}:{command.name}", _given(command))
    elif isinstance(command, Clear):
        which = {} if command.prefix is None else {"prefix": command.prefix}
        yield Act("drop" if command.drop else "clear", f"{command.kind}:{command.name}", which)
    elif isinstance(command, LowerFences):
        yield Act("lower fences", f"dict:{command.dict}")
    elif isinstance(command, Move):
        facts: dict[str, Any] = {"state": command.state} if command.ids is None else {"ids": len(command.ids)}
        yield Act(MOVES[command.to], f"queue:{command.queue}", facts | ({"to_queue": command.to_queue} if command.to_queue else {}))
    elif isinstance(command, Resize):
        yield Act("resize", f"lease:{command.key}", {"capacity": command.capacity})
    elif isinstance(command, Break):
        what = f"lease:{command.key}" if command.dict is None else f"dict:{command.dict}"
        of_key = {} if command.dict is None else {"key": command.key}
        yield Act("break", what, {**of_key, "reason": command.reason, "token": command.token})
    elif isinstance(command, Prune):
        yield Act("prune", "log", {"keep": command.keep, "keep_s": command.keep_s})


def _given(command: Configure) -> dict[str, Any]:
    """What was asked for: every field of the command that was given, so that one that is added later is written down, too."""
    return {name: value for name, value in structs.asdict(command).items() if name not in NAMING and value != DEFAULTS[name]}


def _change(by: Actor, act: Act) -> Change:
    record = Audited(new_id(), time.time(), by.who, by.where, by.namespace, act.act, act.what, act.facts)
    return Change(record.id, value=Raw(json.encode(record)), expect="absent", ttl_s=KEPT_S)
