"""Handlers that children find by name."""

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
