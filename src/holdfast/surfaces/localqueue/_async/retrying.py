"""Retrying with tenacity, where the number of attempts outlives the process."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from tenacity import AsyncRetrying, RetryCallState

from holdfast.surfaces.localqueue._async.records import delete, load, save
from holdfast.surfaces.localqueue.attempts.awaiting import async_answer
from holdfast.surfaces.localqueue.attempts.settings import PersistentRetryExhausted, PersistentSettings
from holdfast.surfaces.localqueue.attempts.stores import AttemptStore, RetryRecord

F = TypeVar("F", bound=Callable[..., Any])


class PersistentAsyncRetrying(PersistentSettings):
    """Calls a function until it succeeds or its attempts, those of earlier processes included, are used up.

    After each failure that is to be retried the attempt is kept under the key. Strategies and callbacks see the number of all attempts. A
    key that is exhausted raises `PersistentRetryExhausted` without calling the function; a success forgets the key.
    """

    async def __call__(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call the function, and return what it returns."""
        key, store = self._key_of(fn, args, kwargs), self.attempts
        record = await load(store, key)
        if record is not None and record.exhausted:
            raise PersistentRetryExhausted(key, record.attempts)
        counting = AsyncCounting(store, key, record, self._strategies)
        retrying = AsyncRetrying(**{**self._strategies, "before": counting.before, "stop": counting.stop})
        try:
            answer: Any = await retrying(fn, *args, **kwargs)
        finally:
            self.statistics.clear()
            self.statistics.update(retrying.statistics)
        if counting.record is not None and not counting.record.exhausted and self.clear_on_success:
            await delete(store, key)
        return answer

    def wraps(self, f: F) -> F:
        """Make a function that is called this way; its `retry` is this object, and `retry_with(…)` wraps it with changes."""

        @wraps(f)
        async def wrapped(*args: Any, **kwargs: Any) -> Any:
            return await self(f, *args, **kwargs)

        def retry_with(**changes: Any) -> F:
            return self.copy(**changes).wraps(f)

        vars(wrapped).update(retry=self, retry_with=retry_with, statistics=self.statistics)
        return wrapped  # type: ignore[return-value] # the same call


class AsyncCounting:
    """Counts the attempts of one call on top of those that are kept."""

    def __init__(self, store: AttemptStore, key: str, record: RetryRecord | None, strategies: dict[str, Any]) -> None:
        self.record = record
        self._store = store
        self._key = key
        self._strategies = strategies
        self._has_begun = False

    async def before(self, state: RetryCallState) -> None:
        """Go on counting where the last process stopped."""
        if not self._has_begun and self.record is not None:
            state.attempt_number += self.record.attempts
        self._has_begun = True
        if "before" in self._strategies:
            await async_answer(self._strategies["before"](state))

    async def stop(self, state: RetryCallState) -> bool:
        """Keep the attempt that failed, and say whether it was the last."""
        is_last = bool(await async_answer(self._strategies["stop"](state)))
        first_attempt_at = (self.record or RetryRecord.new()).first_attempt_at
        self.record = RetryRecord(state.attempt_number, first_attempt_at, is_last)
        await save(self._store, self._key, self.record)
        return is_last


def persistent_async_retry(**kwargs: Any) -> Callable[[F], F]:
    """Make a decorator: `PersistentAsyncRetrying(…).wraps`. Without a key the call raises, unless `retry_with` gives one."""
    return PersistentAsyncRetrying(**kwargs).wraps
