"""A store between a worker and the real one."""

from typing import Any


class Detour:
    """A store whose commands go another way."""

    def __init__(self, store: Any, execute: Any) -> None:
        self._store = store
        self.execute = execute

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)
