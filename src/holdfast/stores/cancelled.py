"""What a cancelled task was granted, across a wire: nobody heard of it, so it is given back."""

import threading
from typing import Any, Final

from holdfast.commands import Acquire, Claim, Command, Together
from holdfast.errors import HoldfastError
from holdfast.stores import Executor

HOLDING: Final = (Claim, Acquire, Together)
"""What a cancelled caller may have got hold of."""


def take_back(store: Executor, command: Command[Any]) -> None:
    """Give back in a thread of its own what a cancelled caller got, or will get; the command has the id it was sent under."""
    if isinstance(command, HOLDING):
        threading.Thread(target=_take_back, args=(store, command), name="holdfast-take-back", daemon=True).start()


def _take_back(store: Executor, command: Command[Any]) -> None:
    """Asked again under its id, the command tells what it was granted."""
    try:
        undo = command.undo(store.execute(command))
        if undo is not None:
            store.execute(undo)
    except HoldfastError:
        return  # Its lease ends by itself.
