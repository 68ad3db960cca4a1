"""Awaits the results of tenacity strategies, for tasks."""

from collections.abc import Awaitable
from inspect import isawaitable
from typing import Any


async def async_answer(answered: Any | Awaitable[Any]) -> Any:
    """The result of a function or of a coroutine function."""
    return await answered if isawaitable(answered) else answered


def answer(answered: Any) -> Any:
    """The result of a function."""
    return answered
