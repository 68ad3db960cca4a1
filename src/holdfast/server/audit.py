"""The record of administrative acts: each is written in the very step that carries it out, and kept for a year."""

import logging
from collections.abc import Callable
from typing import Any, Final

from msgspec import Raw, Struct, json
from msgspec.structs import replace

from holdfast.commands import Change, Clear, Command, Configure, Move, Prune, Together, Write
from holdfast.ids import new_id
from holdfast.server.needs import VERBS
from holdfast.server.reserved import AUDIT

KEPT_S: Final = 365 * 86_400.0
ADMINISTRATIVE: Final = frozenset({Move, Configure, Clear, Prune})
"""What is written down. Copying is not: what it writes beside what it copies would not be a copy."""

_log = logging.getLogger("holdfast.audit")
_encode: Callable[[object], bytes] = json.Encoder(order="deterministic").encode


class Act(Struct, frozen=True):
    """Who did what; when is the event's, and the key's, which sorts by time."""

    who: str
    what: str
    to: str


def record(act: Act) -> Write:
    """What writes the act down."""
    return Write(AUDIT, [Change(new_id(), value=Raw(_encode(act)), expect="absent", ttl_s=KEPT_S)])


def acts_of(command: Command[Any], who: str) -> list[Write]:
    """What writes down the administrative acts among what the command does; nothing for everyday work."""
    steps = command.commands if isinstance(command, Together) else (command,)
    acts = [step for step in steps if type(step) in ADMINISTRATIVE]
    return [record(Act(who, type(step).__name__.lower(), _named(step))) for step in acts]


def tell(command: Command[Any], who: str) -> None:
    """Log what only administrators may do and is not written down."""
    if VERBS[type(command)] == "admin":
        _log.info("%s: %s", who, type(command).__name__.lower())


def audited(command: Command[Any], acts: list[Write]) -> Together:
    """The command and what writes it down, as one step under the command's id."""
    if isinstance(command, Together):
        return replace(command, commands=[*command.commands, *acts])
    return Together([command, *acts], id=command.id)  # type: ignore[list-item]  # every command but Together is a step


def _named(step: Any) -> str:
    kind = getattr(step, "kind", "queue")
    name = getattr(step, "name", None) or getattr(step, "queue", None)
    return "server" if name is None else f"{kind} {name}"
