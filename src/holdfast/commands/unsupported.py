"""Refuses what a store cannot do yet: nothing that a command asks for is dropped in silence."""

from collections.abc import Iterator
from typing import Any, Final

from msgspec import UNSET

from holdfast.commands.command import Command
from holdfast.commands.configuring import POLICIES, Configure
from holdfast.commands.copying import Import
from holdfast.commands.groups import Groups
from holdfast.commands.moving import Browse, Count, Move
from holdfast.commands.objects import Clear
from holdfast.commands.putting import Put
from holdfast.commands.settling import Settle
from holdfast.commands.together import Together
from holdfast.errors import Refused

NEW: Final[dict[type[Command[Any]], tuple[str, ...]]] = {
    Settle: ("unstarted", "trace"),
    Configure: (*POLICIES, "throttle_s", "weight", "group"),
    Count: ("group",),
    Clear: ("prefix",),
    Import: ("lanes",),
}
"""The fields that came with groups and policies."""


def refuse_policies(command: Command[Any], store: str) -> None:
    """Refuse a command that uses groups or policies of queues."""
    asked = next(_uses(command), None)
    if asked is not None:
        raise Refused(f"{type(command).__name__}: {asked} is not supported by {store} yet; nothing was changed: use another store")


def _uses(command: Command[Any]) -> Iterator[str]:
    if isinstance(command, Together):
        for part in command.commands:
            yield from _uses(part)
    for name in NEW.get(type(command), ()):
        if getattr(command, name) not in (UNSET, None, False, ()):
            yield name
    if isinstance(command, Put) and any(item.group is not None for item in command.items):
        yield "group"
    if isinstance(command, Browse | Move) and (command.which.group is not None or command.state == "done"):
        yield "which.group or state='done'"
    if isinstance(command, Groups):
        yield "queue"
