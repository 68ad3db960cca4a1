"""Logs when the process runs out of file descriptors."""

import asyncio
import errno
import logging
import os
from typing import Final

TICK_S: Final = 1.0
OUT: Final = frozenset({errno.EMFILE, errno.ENFILE})

_log = logging.getLogger("holdfast.server")


class Descriptors:
    """Tries every second whether there is one, on the running event loop."""

    def __init__(self) -> None:
        self._is_out = False
        self._timer: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        """Look now and every second from now on."""
        is_out = _are_out()
        if is_out and not self._is_out:
            _log.error("no file descriptor is left, so new connections wait: allow more (ulimit -n, LimitNOFILE), or close some")
        elif self._is_out and not is_out:
            _log.warning("there are file descriptors again")
        self._is_out = is_out
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self.watch)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _are_out() -> bool:
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in OUT
    return False
