"""What tells threads apart; unlike `threading.get_ident()` it is never that of a thread that ended."""

import threading


class _Thread(threading.local):
    def __init__(self) -> None:
        self.key = object()


_thread = _Thread()


def this_thread() -> object:
    """The running thread's own key."""
    return _thread.key
