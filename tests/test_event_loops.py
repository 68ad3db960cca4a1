"""A coroutine that is interrupted before it begins."""

import asyncio
import gc
from collections.abc import Callable, Coroutine

import pytest

from holdfast.process.event_loops import run_coroutine


async def begin() -> str:
    return "begun"


def interrupt() -> asyncio.AbstractEventLoop:
    raise KeyboardInterrupt


def interrupted(run: Callable[[Coroutine[object, object, str]], object]) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(begin())
    gc.collect()


def test_it_runs_to_its_end() -> None:
    assert run_coroutine(begin()) == "begun"


def test_an_interrupt_before_it_begins_leaves_no_warning() -> None:
    interrupted(lambda coroutine: run_coroutine(coroutine, interrupt))


def test_control_a_runner_alone_warns() -> None:
    def run(coroutine: Coroutine[object, object, str]) -> None:
        with asyncio.Runner(loop_factory=interrupt) as runner:
            runner.run(coroutine)

    with pytest.warns(RuntimeWarning, match="never awaited"):
        interrupted(run)
