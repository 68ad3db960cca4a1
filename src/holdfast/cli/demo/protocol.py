"""What the processes of the demo are given to do and report, one line of JSON each."""

import os
import sys
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, json

QUEUE = "messages"
ACCEPTED = "accepted"
"""A dict with a key for every settled claim, written in the same step: a message accepted twice would have two."""
RESULTS = "results"
REFUSED = "refused"

LEASE_S = 1.5
"""Short, so that the work of a dead worker is soon handed out again; a real queue would take half a minute."""

Trouble = Literal["kill", "pause", "long"]
"""What happens to the first worker that gets a message."""


class Work(Struct, frozen=True):
    """The value of a message: how long it takes, and what will go wrong meanwhile."""

    work_s: float
    trouble: Trouble | None = None


class ProducerTask(Struct, frozen=True):
    """What a producer has to put, by message id."""

    url: str
    messages: dict[str, Work]


class WorkerTask(Struct, frozen=True):
    """Who a worker is; without `fenced` it forgets to check whether it still holds its claim, as a test of the counts."""

    url: str
    name: str
    fenced: bool = True


class Report(Struct, frozen=True, omit_defaults=True):
    """What a process reports; a worker names the message and its token."""

    what: Literal["put", "ready", "began", "stuck", "finished", "refused"]
    message: str = ""
    token: int = 0
    attempts: int = 0
    work: Work | None = None
    refused: Literal["settle", "write"] | None = None
    newer_token: int = 0
    """The token that has written in between, and so refused the write."""
    ids: Sequence[str] = ()
    """What a producer has put."""


def say(report: Report) -> None:
    """Report to the process that started this one; BrokenPipeError when it is gone."""
    os.write(sys.stdout.fileno(), json.encode(report) + b"\n")
