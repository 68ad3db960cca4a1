"""Who is at work in an environment, for those who need it empty."""

import threading


class Gate:
    """Lets any number in, or shuts and waits until all have left: to grow the map, to close, to fork."""

    def __init__(self) -> None:
        # Guards the two below.
        self._changed = threading.Condition(threading.Lock())
        self._inside = 0
        self._is_shut = False

    def enter(self) -> None:
        with self._changed:
            while self._is_shut:
                self._changed.wait()
            self._inside += 1

    def leave(self) -> None:
        with self._changed:
            self._inside -= 1
            if self._is_shut:
                self._changed.notify_all()

    def shut(self, timeout_s: float | None = None) -> bool:
        """Let nobody in until `open`; answer whether all have left in time."""
        with self._changed:
            is_ours = self._changed.wait_for(lambda: not self._is_shut, timeout_s)
            self._is_shut = True
            return is_ours and self._changed.wait_for(lambda: not self._inside, timeout_s)

    def open(self) -> None:
        with self._changed:
            self._is_shut = False
            self._changed.notify_all()
