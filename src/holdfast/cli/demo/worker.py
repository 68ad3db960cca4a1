"""A worker process of the demo: claims a message, works on it while a thread renews the claim, settles it, and again."""

import io
import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Self

from msgspec import json

from holdfast._sync.flows.claiming import claim
from holdfast.cli.demo.protocol import ACCEPTED, LEASE_S, QUEUE, REFUSED, RESULTS, Report, Work, WorkerTask, say
from holdfast.codec import JSON, encode_key
from holdfast.commands import Change, Claim, Extend, Settle, Together, Write
from holdfast.connect import connect
from holdfast.errors import ClaimLost, Closed
from holdfast.records import Message, Receipt
from holdfast.stores import Store

STUCK_S = 60.0
"""How long a worker in trouble waits for it to come."""


def main() -> None:
    """Work as the first line of the input says until the input ends; each line between lets a stuck worker go on."""
    # Without a buffer: nobody waits for its lock when the interpreter ends.
    orders = io.FileIO(sys.stdin.fileno(), closefd=False)
    line = orders.readline()
    if not line:
        return
    task = json.decode(line, type=WorkerTask)
    store = connect(task.url)
    go_on = threading.Event()
    threading.Thread(target=follow, args=(orders, store, go_on), name="orders", daemon=True).start()
    # The demo is over, or whoever watched it is gone.
    with suppress(Closed, BrokenPipeError), Renewal(store) as renewal:
        Worker(task, store, renewal, go_on).work()


def follow(orders: io.FileIO, store: Store, go_on: threading.Event) -> None:
    """Let the worker go on at each line, and end all it does at the end of the input."""
    for _ in orders:
        go_on.set()
    store.close()
    go_on.set()


class Worker:
    """Works on one message after the other."""

    def __init__(self, task: WorkerTask, store: Store, renewal: "Renewal", go_on: threading.Event) -> None:
        self._task = task
        self._store = store
        self._renewal = renewal
        self._go_on = go_on

    def work(self) -> None:
        """Take whatever comes, until the store is closed."""
        while True:
            say(Report("ready"))
            for message in claim(self._store, Claim(QUEUE, self._task.name, LEASE_S), timeout_s=math.inf):
                self._work_on(message, json.decode(bytes(message.value), type=Work))

    def _work_on(self, message: Message, work: Work) -> None:
        say(Report("began", message.id, message.token, message.attempts, work))
        in_trouble = message.attempts == 1 and work.trouble in ("kill", "pause")
        with self._renewal.of(message.receipt):
            time.sleep(work.work_s / 2)
            if in_trouble:
                self._be_stuck(message, work)
            time.sleep(work.work_s / 2)
        self._finish(message)
        if in_trouble:
            self._write_late(message)

    def _be_stuck(self, message: Message, work: Work) -> None:
        """Stay in the middle of the work, away from the store, where a signal finds the worker."""
        with self._renewal.held_off():
            say(Report("stuck", message.id, message.token, message.attempts, work))
            self._go_on.wait(STUCK_S)

    def _finish(self, message: Message) -> None:
        accepted = Change(encode_key((message.id, message.token)), value=JSON.encode(self._task.name), expect="absent")
        done, accept = Settle([message.receipt]), Write(ACCEPTED, [accepted])
        try:
            if self._task.fenced:
                self._store.execute(Together([done, accept, self._result(message)]))
            else:
                self._store.execute(accept)
                self._store.execute(self._result(message))
                self._store.execute(done)
        except ClaimLost as lost:
            self._note_refusal(message, "settle", str(lost))
            say(Report("refused", message.id, message.token, refused="settle"))
        else:
            say(Report("finished", message.id, message.token, message.attempts))

    def _write_late(self, message: Message) -> None:
        """Write the result once more, as a program would that never looked whether its claim was still held."""
        [answer] = self._store.execute(self._result(message))
        if answer.because == "fence" and answer.entry is not None:
            self._note_refusal(message, "write", answer.because)
            say(Report("refused", message.id, message.token, refused="write", newer_token=answer.entry.fence))

    def _result(self, message: Message) -> Write:
        fence = message.token if self._task.fenced else None
        return Write(RESULTS, [Change(encode_key(message.id), value=JSON.encode(self._task.name), fence=fence)])

    def _note_refusal(self, message: Message, what: str, why: str) -> None:
        self._store.execute(Write(REFUSED, [Change(encode_key((message.id, message.token, what)), value=JSON.encode(why))]))


class Renewal:
    """The thread that renews the claim being worked on, three times a lease."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # Guards _receipt, and is held while the store is asked: whoever has it knows that this thread is not inside the store.
        self._lock = threading.Lock()
        self._receipt: Receipt | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="renewal", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @contextmanager
    def of(self, receipt: Receipt) -> Iterator[None]:
        """Renew this claim meanwhile."""
        with self._lock:
            self._receipt = receipt
        try:
            yield
        finally:
            with self._lock:
                self._receipt = None

    @contextmanager
    def held_off(self) -> Iterator[None]:
        """Renew nothing meanwhile."""
        with self._lock:
            yield

    def _renew(self) -> None:
        with suppress(Closed):
            while not self._ended.wait(LEASE_S / 3):
                with self._lock:
                    if self._receipt is not None:
                        self._store.execute(Extend([self._receipt], LEASE_S))


if __name__ == "__main__":
    main()
