"""Switching the fast paths of all stores off."""

from typing import Any

import pytest

from holdfast import commands
from holdfast.commands import Command

KINDS = [kind for kind in vars(commands).values() if isinstance(kind, type) and issubclass(kind, Command)]
PLAIN = {base for kind in KINDS for base in kind.mro() if "plain" in vars(base)}


def never_plain(_: Command[Any], *also: str) -> bool:
    del also
    return False


def switch_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no command be plain, so that every store but the one in memory executes it by its full rules."""
    for kind in PLAIN:
        monkeypatch.setattr(kind, "plain", never_plain)
