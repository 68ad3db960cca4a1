"""Processes that stand still while another one takes their jobs over: the program that `test_durable_zombies.py` starts.

`python -m tests.workers.zombie URL GUARD FIRST LAST` forks a process for each of these numbers. Each claims the message of its own queue
and stops itself. They go on at a line on the standard input, and then each of them writes a step of its job: every other one the first
step, which comes with the head of the history.
"""

import os
import signal
import sys
import traceback

from msgspec import Raw

from holdfast import ControlPlaneClient
from holdfast.codec import encode_key
from holdfast.commands import Browse, Change, Claim, Extend, Together, Write
from holdfast.errors import ClaimLost, Refused
from holdfast.stores import Store
from holdfast.workers.steps.rows import steps_of

LEASE_S = 0.2

ACCEPTED = 17
"""The exit code of a zombie whose step was accepted."""


def main(url: str, guard: str, first: str, last: str) -> None:
    """Be the parent of the zombies; when it forks it has no connection of its own."""
    with ControlPlaneClient(url) as client:
        client.store.execute(Browse("jobs"))  # It imports what each of them needs.
    pids = [fork(url, guard, number) for number in range(int(first), int(last))]
    stopped = sum(os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1]) for pid in pids)
    sys.stdout.write(f"{stopped} stopped\n")
    sys.stdout.flush()
    sys.stdin.readline()
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    refused, accepted = codes.count(0), codes.count(ACCEPTED)
    sys.stdout.write(f"{refused} {accepted}\n")


def fork(url: str, guard: str, number: int) -> int:
    """Start a zombie."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        with ControlPlaneClient(url) as client:
            code = ACCEPTED if is_accepted(client.store, guard, number) else 0
    except Exception:  # noqa: BLE001 - nothing behind the fork may go on
        traceback.print_exc()
    finally:
        os._exit(code)


def is_accepted(store: Store, guard: str, number: int) -> bool:
    """Claim, stop, go on: whether the store takes a step of a job that is another's by now."""
    queue = f"jobs-{number}"
    (message,) = store.execute(Claim(queue, "zombie", LEASE_S)).messages
    os.kill(os.getpid(), signal.SIGSTOP)
    fence = message.token if guard == "fence" else None
    parts = ("step", "head") if number % 2 else ("step",)
    changes = [Change(encode_key((message.id, part)), value=Raw(b'"zombie"'), fence=fence) for part in parts]
    try:
        if guard == "claim":  # As durable jobs do it: of one change stores make a command of its own.
            store.execute(Together([Extend([message.receipt], LEASE_S, progress=True), Write(steps_of(queue), changes)]))
        else:
            store.execute(Write(steps_of(queue), changes, all_or_none=True))
    except (ClaimLost, Refused):
        return False
    return True


if __name__ == "__main__":
    main(*sys.argv[1:])
