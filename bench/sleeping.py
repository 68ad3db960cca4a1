"""What many sleeping durable jobs cost a worker: its memory beside an empty store, and how late it wakes those that are due.

python -P bench/sleeping.py URL [jobs]

All but the last are brought to sleep a thousand at a time, by the commands with which a worker does it.
"""

import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Raw, json

from holdfast import ControlPlaneClient, JobContext, Tasks
from holdfast.commands import Change, Claim, Item, Put, Settle, Together, Write
from holdfast.ids import new_id
from holdfast.workers.steps.rows import Head, Row, hash_of, head_key, row_key, timer_key

QUEUE = "naps"
PAGE = 1_000
DAY_S = 86_400.0
WOKEN = 400
"""How many are woken while it is measured how late they are."""

WITHIN_S = 20.0
REST_S = 6.0
"""How long a worker is left alone before its memory is read."""


def tasks_of(client: ControlPlaneClient, late: list[float]) -> Tasks:
    """A job that sleeps, and notes how late it was woken."""
    app = Tasks("bench", client=client, results=False, queue=QUEUE)

    @app.task(name="nap")
    def nap(job: JobContext, seconds: float) -> None:
        began = job.now()
        job.sleep(seconds)
        late.append((datetime.now(UTC) - began).total_seconds() - seconds)

    return app


def put_to_sleep(client: ControlPlaneClient, count: int) -> None:
    """Let so many jobs sleep for days, as a worker leaves them."""
    store = client.store
    arguments, metadata = Raw(json.encode({"seconds": DAY_S})), Raw(json.encode({"task": "nap"}))
    now, timer = Row("done", Raw(json.encode(datetime.now(UTC)))), Row("timer", at=time.time())
    for _ in range(0, count, PAGE):
        store.execute(Put(QUEUE, [Item(new_id(), arguments, metadata=metadata, max_attempts=3) for _ in range(PAGE)]))
        messages = store.execute(Claim(QUEUE, "bench", 600.0, PAGE)).messages
        changes: list[Change] = []
        for message in messages:
            run = message.token
            key = ("", "~sleep", hash_of((DAY_S,), {}), 0)
            changes += [
                Change(head_key(message.id), value=Head(run, waits=("time to pass",)).raw),
                Change(row_key(message.id, run, ("", "~now", "", 0)), value=now.raw),
                Change(row_key(message.id, run, key), value=timer.raw),
                Change(timer_key(message.id, run, key), value=Raw(b"null"), ttl_s=DAY_S),
            ]
        settle = Settle([message.receipt for message in messages], "ready", delay_s=DAY_S)
        store.execute(Together([Write(f"{QUEUE}-steps", changes), settle]))


def resident_kib(url: str) -> int:
    """The memory of a worker in a process of its own that has nothing to do."""
    with subprocess.Popen([sys.executable, "-P", __file__, "--rest", url]) as process:
        time.sleep(REST_S)
        status = Path(f"/proc/{process.pid}/status").read_text()
        process.terminate()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def lateness(client: ControlPlaneClient) -> list[float]:
    """How late jobs are woken that are due one after the other, in seconds."""
    late: list[float] = []
    app = tasks_of(client, late)
    nap = app.find("nap")
    worker = app.worker(schedules=False, heartbeat_s=None)
    thread = threading.Thread(target=lambda: worker.run(signals=False))
    thread.start()
    nap.put_many([nap.args(2.0 + WITHIN_S * number / WOKEN) for number in range(WOKEN)])
    deadline = time.monotonic() + 10 * WITHIN_S
    while len(late) < WOKEN and time.monotonic() < deadline:
        time.sleep(0.1)
    worker.stop()
    thread.join()
    if len(late) < WOKEN:
        raise RuntimeError(f"{len(late)} of {WOKEN} jobs were woken")
    return sorted(late)


def main(url: str, count: int = 100_000) -> None:
    """Measure with none and with many."""
    with ControlPlaneClient(url) as client:
        for jobs in (0, count):
            put_to_sleep(client, jobs)
            used, late = resident_kib(url), lateness(client)
            shown = ", ".join(f"{name} {late[int(part * (len(late) - 1))] * 1e3:.0f} ms" for name, part in (("p50", 0.5), ("p99", 0.99)))
            sys.stdout.write(f"{url.partition(':')[0]}: {jobs:,} asleep: a worker has {used / 1024:.1f} MiB; woken late by {shown}\n")


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "--rest":
        with ControlPlaneClient(rest[0]) as client:
            tasks_of(client, []).run(schedules=False)
    else:
        main(what, *map(int, rest))
