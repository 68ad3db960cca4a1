"""Handlers that children find by name."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

from holdfast import JobContext, Snooze, worker


def double(value: int) -> int:
    return 2 * value


async def double_async(value: int) -> int:
    return 2 * value


def where(value: int) -> int:
    return os.getpid()


def die(value: str) -> None:
    if value == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif value == "exit":
        os._exit(3)


def obey(value: str, job: JobContext) -> str:
    """Say that it runs, then wait for the interrupt in a system call."""
    Path(value).touch()
    time.sleep(60)
    return "not interrupted"


async def obey_async(value: str, job: JobContext) -> str:
    """Say that it runs, then wait to be cancelled."""
    Path(value).touch()  # noqa: ASYNC240 - it takes no time
    await asyncio.Event().wait()
    return "not cancelled"


def chatter(value: str, job: JobContext) -> None:
    """Report so much that it is nearly always in the middle of a sentence."""
    while True:
        job.report("x" * 500_000)
        Path(value).touch()


def defy(value: str, job: JobContext) -> None:
    """Say that it runs, and ignore every interrupt."""
    Path(value).touch()
    while True:
        try:
            time.sleep(60)
        except Exception:  # noqa: BLE001, S112 - that is what it is to show
            continue


def follow(value: int, job: JobContext) -> None:
    job.report({"half": True})
    job.put("next", value + 1)
    job.write("totals", "sum", value)


def snooze(value: int) -> None:
    raise Snooze(60.0)


@worker("decorated", execution="processes", results=True)
def decorated(value: int) -> int:
    return value + 1


def judge(error: BaseException, job: JobContext) -> Any:
    return None


def fail_with_a_reason(value: int) -> None:
    raise ValueError("raised in a child")
