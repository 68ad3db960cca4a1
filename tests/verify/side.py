"""One of two processes of different releases that work on one store; so this must run with the code of old releases, too.

    python side.py URL NAME ROUNDS

A round is ten commands. Prints what it did as JSON.
"""

import sys
from contextlib import closing
from typing import Any

from msgspec import Raw, json

from holdfast import Queue
from holdfast.commands import Acquire, Change, Claim, Command, Item, Put, Release, Settle, Together, Write
from holdfast.commands.leases import LeaseName
from holdfast.connect import connect

LEASE_S = 60.0


class Side:
    """Puts and claims from one queue, counts in one dict, takes one lock, and keeps the sums."""

    def __init__(self, url: str, name: str) -> None:
        self.store = connect(url)
        self.name = name
        self.put = self.done = self.counted = self.commands = 0
        self.tokens: list[int] = []
        self.revisions: list[int] = []

    def ask(self, command: Command[Any]) -> Any:
        self.commands += 1
        return self.store.execute(command)

    def round(self, number: int) -> None:
        value = Raw(json.encode(number))
        options: dict[str, Any] = {"priority": number % 3, "max_attempts": 3} if number % 2 else {}
        items = [Item(f"{self.name}-{number}-{part}", value, **options) for part in range(2)]
        self.put += sum(number for item in self.ask(Put("shared", items)).created if item)
        self.ask(Put("keyed", [Item(f"{self.name}-{number}-k", value, key=f"key-{number % 7}")]))
        self.settle(self.ask(Claim("shared", self.name, LEASE_S, 2)).messages, by_step=number % 5 == 0)
        self.settle_keyed(self.ask(Claim("keyed", self.name, LEASE_S)).messages)
        (written,) = self.ask(Write("sums", [Change("count", do="increment", by=number)]))
        self.counted += number
        self.revisions.append(written.entry.revision)
        self.lock(number)

    def settle(self, messages: list[Any], *, by_step: bool) -> None:
        """Acknowledge; sometimes one is given back first, and sometimes a step counts it."""
        if not messages:
            return
        total = sum(json.decode(message.value) for message in messages)
        ended = Settle([message.receipt for message in messages], all_or_none=True)
        if by_step:
            self.ask(Together([ended, Write("sums", [Change("stepped", do="increment", by=total)])]))
        else:
            self.ask(ended)
        self.done += total
        self.tokens += {message.token for message in messages}

    def settle_keyed(self, messages: list[Any]) -> None:
        if messages:
            self.ask(Settle([message.receipt for message in messages], "done"))

    def lock(self, number: int) -> None:
        """Write under a fence while the lock is ours; nobody may meet a larger one."""
        lease_id = f"{self.name}-{number}"
        lease = self.ask(Acquire(None, "lock", self.name, lease_id, LEASE_S)).lease
        if lease.lease_id != lease_id:
            return
        (written,) = self.ask(Write("sums", [Change("holder", value=Raw(json.encode(self.name)), fence=lease.token)]))
        if written.because:
            raise RuntimeError(f"{written.because} refused the holder of {lease.token}")
        self.ask(Release([LeaseName(None, "lock", lease_id)]))
        self.tokens.append(lease.token)

    def drain(self) -> None:
        while messages := self.ask(Claim("shared", self.name, LEASE_S, 100)).messages:
            self.settle(messages, by_step=False)


def ping(url: str, name: str, rounds: int) -> None:
    """Hand a ball to the other side and wait for it: wake-ups pass between the releases."""
    here, there = (Queue.create(f"to-{side}", base_url=url) for side in (name, {"old": "new", "new": "old"}[name]))
    if name == "old":
        there.put("ball")
    for _ in range(rounds):
        with here.claimed(claimer=name, timeout_s=60.0):
            there.put("ball")


def main(url: str, name: str, rounds: int) -> None:
    side = Side(url, name)
    with closing(side.store):
        print("ready", flush=True)  # noqa: T201 - to whoever started it
        sys.stdin.readline()
        for number in range(1, rounds + 1):
            side.round(number)
        ping(url, name, 50)
        side.drain()
        told = {what: getattr(side, what) for what in ("put", "done", "counted", "commands", "tokens", "revisions")}
        print(json.encode(told).decode(), flush=True)  # noqa: T201 - as above


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
