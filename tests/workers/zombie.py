"""A process that stands still while another one takes its job over: the program that `test_durable_zombies.py` starts.

`python -m tests.workers.zombie URL GUARD` claims one message, stops itself, and writes a step when it goes on.
"""

import os
import signal
import sys

from msgspec import Raw

from holdfast import ControlPlaneClient
from holdfast.codec import encode_key
from holdfast.commands import Change, Claim, Extend, Together, Write
from holdfast.errors import ClaimLost, Refused

LEASE_S = 0.2


def main(url: str, guard: str) -> None:
    """Be a zombie."""
    with ControlPlaneClient(url) as client:
        store = client.store
        (message,) = store.execute(Claim("jobs", "zombie", LEASE_S)).messages
        sys.stdout.write("claimed\n")
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGSTOP)
        fence = message.token if guard == "fence" else None
        write = Write("jobs-steps", [Change(encode_key((message.id, "step")), value=Raw(b'"zombie"'), fence=fence)], all_or_none=True)
        try:
            store.execute(Together([Extend([message.receipt], LEASE_S, progress=True), write]) if guard == "claim" else write)
        except (ClaimLost, Refused):
            sys.stdout.write("refused\n")
        else:
            sys.stdout.write("accepted\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
