"""A process that stands still while another one takes its job over: the program that `test_durable_zombies.py` starts.

`python -m tests.workers.zombie URL GUARD COUNT` claims so many messages, stops itself, and writes a step of each when it goes on.
"""

import os
import signal
import sys

from msgspec import Raw

from holdfast import ControlPlaneClient
from holdfast.codec import encode_key
from holdfast.commands import Change, Claim, Extend, Together, Write
from holdfast.errors import ClaimLost, Refused
from holdfast.records import Message
from holdfast.stores import Store

LEASE_S = 0.2


def main(url: str, guard: str, count: str) -> None:
    """Be a zombie."""
    with ControlPlaneClient(url) as client:
        store = client.store
        messages = store.execute(Claim("jobs", "zombie", LEASE_S, int(count))).messages
        sys.stdout.write(f"claimed {len(messages)}\n")
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGSTOP)
        accepted = sum(is_accepted(store, guard, message) for message in messages)
        sys.stdout.write(f"{accepted} accepted\n")


def is_accepted(store: Store, guard: str, message: Message) -> bool:
    """Whether the store takes a step of a job that is another's by now."""
    fence = message.token if guard == "fence" else None
    write = Write("jobs-steps", [Change(encode_key((message.id, "step")), value=Raw(b'"zombie"'), fence=fence)], all_or_none=True)
    try:
        store.execute(Together([Extend([message.receipt], LEASE_S, progress=True), write]) if guard == "claim" else write)
    except (ClaimLost, Refused):
        return False
    return True


if __name__ == "__main__":
    main(*sys.argv[1:])
