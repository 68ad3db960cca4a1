"""The settings of a retryer: the attempt store, the key, and the strategy."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, Self

from tenacity import stop_after_attempt, stop_never, wait_exponential

from holdfast.errors import Picklable
from holdfast.surfaces.localqueue.attempts.default_store import default_store
from holdfast.surfaces.localqueue.attempts.keys import KeyFn
from holdfast.surfaces.localqueue.attempts.stores import AttemptStore, RetryRecord, URLAttemptStore
from holdfast.surfaces.localqueue.store_location import sqlite_url

DEFAULTS: dict[str, Any] = {"wait": wait_exponential(multiplier=1, min=2, max=10), "stop": stop_never, "reraise": True}


class PersistentRetryExhausted(Picklable, RuntimeError):  # noqa: N818 - the name is the document's
    """The attempts kept under the key were used up before the call."""

    def __init__(self, key: str, attempts: int) -> None:
        super().__init__(f"retry budget already exhausted for key={key!r} after {attempts} attempts: reset({key!r}) to try again")
        self.key = key
        self.attempts = attempts


class PersistentSettings:
    """The part of a retryer that threads and tasks share."""

    def __init__(
        self,
        *,
        store: AttemptStore | None = None,
        store_path: str | PathLike[str] | None = None,
        key: str | None = None,
        key_fn: KeyFn | None = None,
        clear_on_success: bool = True,
        max_tries: int | None = None,
        **tenacity_kwargs: Any,
    ) -> None:
        if store is not None and store_path is not None:
            raise ValueError("pass either store= or store_path=, not both")
        self.key = key
        self.key_fn = key_fn
        self.clear_on_success = clear_on_success
        self.statistics: dict[str, Any] = {}
        self._given = {"max_tries": max_tries, **tenacity_kwargs} if max_tries is not None else tenacity_kwargs
        # Not a SQLiteAttemptStore: nothing is done about a path before the first call.
        self._store = store if store_path is None else URLAttemptStore(sqlite_url(store_path), path=Path(store_path).absolute())
        self._strategies = DEFAULTS | strategies_of(self._given)

    def get_record(self, key: str) -> RetryRecord | None:
        """What is kept of the attempts under a key."""
        return self.attempts.load(key)

    def reset(self, key: str) -> None:
        """Forget the attempts under a key."""
        self.attempts.delete(key)

    def copy(self, **changes: Any) -> Self:
        """The same with changes; a new `stop` takes the place of `max_tries`, and the other way round."""
        given = {
            name: value for name, value in self._given.items() if not (name in ("max_tries", "stop") and {"max_tries", "stop"} & {*changes})
        }
        kept = {"key": self.key, "key_fn": self.key_fn, "clear_on_success": self.clear_on_success}
        where = {} if {"store", "store_path"} & {*changes} else {"store": self._store}
        return type(self)(**{**where, **kept, **given, **changes})

    @property
    def attempts(self) -> AttemptStore:
        """Where attempts are kept."""
        return default_store() if self._store is None else self._store

    def _key_of(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        if self.key is not None:
            return self.key
        if self.key_fn is None:
            raise ValueError("persistent retries require an explicit key= or key_fn=")
        return self.key_fn(fn, args, kwargs)


def strategies_of(given: dict[str, Any]) -> dict[str, Any]:
    """The options of tenacity, `max_tries` as its `stop`."""
    strategies = dict(given)
    max_tries = strategies.pop("max_tries", None)
    if max_tries is None:
        return strategies
    if "stop" in strategies:
        raise ValueError("pass either max_tries= or stop=, not both")
    if isinstance(max_tries, bool) or not isinstance(max_tries, int) or max_tries < 1:
        raise ValueError(f"max_tries must be a positive integer, and is {max_tries!r}")
    return strategies | {"stop": stop_after_attempt(max_tries)}
