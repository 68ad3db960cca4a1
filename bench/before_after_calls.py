"""The calls that `before_after.py` measures, through public names alone: it runs with the code of any release.

It is given the URL of a store, or `http` for a server on a store in memory of its own, which then runs in this process. On each line of
its input is a call and how many messages to make it about; it prints how many CPU seconds these calls took.
"""

import gc
import itertools
import json
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from holdfast import Dict, Lock, Queue
from holdfast.testing import servers

VALUE = {"to": "someone@example.com", "subject": "hello", "tries": 3}
METADATA = {"trace": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
BATCH = 100


class Calls:
    """The calls on one queue; claims wait here for their acknowledgements."""

    def __init__(self, url: str) -> None:
        self.queue: Queue[Any] = Queue.create("jobs", base_url=url)
        self.dict: Dict[Any] = Dict.create("state", base_url=url)
        self.lock = Lock("turn", base_url=url)
        self.claims: deque[Any] = deque()
        self.keys = itertools.count()
        self.by_name: dict[str, Callable[[], object]] = {
            "put": lambda: self.queue.put(VALUE),
            "put with max_attempts": lambda: self.queue.put(VALUE, max_attempts=5),
            "put with metadata": lambda: self.queue.put(VALUE, metadata=METADATA),
            "put with key": lambda: self.queue.put(VALUE, key=f"order-{next(self.keys)}"),
            "claim": lambda: self.claims.append(self.queue.claim()),
            "ack": lambda: self.queue.ack(self.claims.popleft()),
            "put 100": lambda: self.queue.put_many([VALUE] * BATCH),
            "put 100 with max_attempts": lambda: self.queue.put_many([VALUE] * BATCH, max_attempts=5),
            "claim 100": lambda: self.claims.append(self.queue.claim_many(BATCH)),
            "ack 100": lambda: self.queue.ack(self.claims.popleft()),
            "write": lambda: self.dict.put(f"order-{next(self.keys)}", VALUE),
            "lock + unlock": self._lock_and_unlock,
        }

    def measure(self, name: str, messages: int) -> float:
        call, times = self.by_name[name], messages // BATCH if "100" in name else messages
        if name.startswith("claim"):
            self._fill(messages)
        gc.collect()
        gc.disable()
        start = time.process_time()
        for _ in range(times):
            call()
        cost_s = time.process_time() - start
        gc.enable()
        if not name.startswith("claim"):
            self._drain()
        return cost_s

    def _lock_and_unlock(self) -> None:
        with self.lock:
            pass

    def _fill(self, messages: int) -> None:
        for _ in range(0, messages, BATCH):
            self.queue.put_many([VALUE] * BATCH)

    def _drain(self) -> None:
        while self.queue.get_many(1_000):
            pass


def main() -> None:
    with ExitStack() as stack:
        url = sys.argv[1]
        if url == "http":
            url = stack.enter_context(servers.holdfast()).url
        calls = Calls(url)
        for line in sys.stdin:
            print(calls.measure(*json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
