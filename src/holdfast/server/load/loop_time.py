"""Measures how long a request keeps the event loop busy in one go; its caller rests for it.

While the loop runs one request, all others wait: decoding a step of a thousand commands, or encoding an answer of 16 MiB, takes
milliseconds. Processor time is measured, so that no caller is charged for other work on the machine.
"""

import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from holdfast.server.load.body_budget import Budget

R = TypeVar("R")

FREE_S: Final = 0.001
"""What a request may do in one go; for what goes beyond, its caller rests."""

REST_OF_LOOP: Final = 50
"""So many times as long."""
CREDIT_S: Final = 1.0

_charge: ContextVar[Callable[[float], None] | None] = ContextVar("holdfast_loop_time", default=None)
"""What is told of the steps of the request at hand that took long; None for a short request, which is not measured."""


def charge_to(budget: Budget, whose: str) -> None:
    """Let this caller rest for what this task does in one go from now on, and those that it begins, where that is measured."""
    _charge.set(lambda spent_s: budget.charge(whose, spent_s, REST_OF_LOOP, CREDIT_S))


def measured(work: Callable[[], R]) -> R:
    """Do it now, and measure it."""
    charge = _charge.get()
    if charge is None:
        return work()
    with _noting(charge):
        return work()


def metered(work: Coroutine[Any, Any, R]) -> Coroutine[Any, Any, R]:
    """The same work, with each step of it measured."""
    charge = _charge.get()
    return work if charge is None else _Steps(work, charge)


class _Steps(Coroutine[Any, Any, R], Iterator[Any]):
    """A coroutine, of which the time between any two things that it waits for is measured."""

    def __init__(self, work: Coroutine[Any, Any, R], charge: Callable[[float], None]) -> None:
        self._work = work
        self._charge = charge

    def send(self, value: Any) -> Any:
        with _noting(self._charge):
            return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        with _noting(self._charge):
            return self._work.throw(*error)

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, R]:
        return self  # type: ignore[return-value]  # what `await` needs of a generator it has

    def __next__(self) -> Any:
        return self.send(None)


@contextmanager
def _noting(charge: Callable[[float], None]) -> Iterator[None]:
    began = time.thread_time()
    try:
        yield
    finally:
        spent_s = time.thread_time() - began - FREE_S
        if spent_s > 0:
            charge(spent_s)
