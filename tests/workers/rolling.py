"""A deploy: workers of one version of the code are killed one by one, and workers of the other take their places.

    python -m tests.workers.rolling URL FOLDER ROUNDS old|new [burning]

Producers of both versions put jobs of all their tasks in every round. `old` and `new` say which version is there first. Each execution is
a line of the file `ran`: the id of the job, the version of the code, the failures that were counted so far, and how each claim ended. With
`burning` a worker that does not know a job counts that as a failure.
"""

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from holdfast import Backoff, ControlPlaneClient, JobContext, Queue, Tasks
from holdfast.commands import Browse, Move
from holdfast.workers.handlers import judgement
from holdfast.workers.handlers.outcomes import Outcome, UnknownTask, shown

NUMBERS = range(40)
QUEUES = ("high", "default", "low")
CODES = {
    "old": [number for number in NUMBERS if not 8 <= number < 16],
    "new": [number for number in NUMBERS if number >= 8],
}
"""Eight tasks are dropped by the new code, and eight are added. Eight have another version in it, and eight another parameter."""
VERSIONED, EXTENDED = range(16, 24), range(24, 32)
CREW = 3
PATIENCE_S = 100.0


def app_of(code: str, client: ControlPlaneClient, file: Path) -> Tasks:
    """The tasks of one version of the code."""
    app = Tasks("shop", client=client, max_attempts=20, backoff=Backoff(0.0, jitter=0.0), results=False)

    def note(job: JobContext) -> None:
        message = job.message
        with file.open("a") as lines:
            lines.write(f"{message.id} {code} {message.failures} {'+'.join(ending.how for ending in message.history)}\n")

    def plain(job: JobContext, number: int) -> None:
        note(job)

    def extended(job: JobContext, number: int, colour: str = "red") -> None:
        note(job)

    for number in CODES[code]:
        function = extended if number in EXTENDED and code == "new" else plain
        version = {"old": "1", "new": "2"}[code] if number in VERSIONED else None
        app.task(name=name_of(number), queue=QUEUES[number % len(QUEUES)], version=version)(function)
    return app


def name_of(number: int) -> str:
    return f"task-{number:02}"


def put_all(code: str, folder: Path, label: str, client: ControlPlaneClient) -> None:
    """Put a job of each task of the code, and write down what was put."""
    app = app_of(code, client, folder / "ran")
    for number in CODES[code]:
        more = {"colour": "blue"} if number in EXTENDED and code == "new" else {}
        job = app.find(name_of(number)).using(id=f"{label}-{code}-{number}").put(number, **more)
        with (folder / "put").open("a") as lines:
            lines.write(f"{job.id}\n")


def work(code: str, client: ControlPlaneClient, folder: Path) -> None:
    app_of(code, client, folder / "ran").run(signals=False, name=f"{code}-{os.getpid()}", lease_s=1.0, concurrency=2, schedules=False)


def finish(client: ControlPlaneClient, late: str) -> None:
    """Say who knows a job that waits, and then hand out at once what was given back, until nothing is left."""
    queue = Queue[int](QUEUES[8 % len(QUEUES)], client=client)
    wait(lambda: "is known to: new-" in queue.explain(late).sentence)
    assert "old-" not in queue.explain(late).sentence
    queues = [Queue[int](name, client=client) for name in QUEUES]

    def is_over() -> bool:
        for name in QUEUES:
            client.store.execute(Move(name, to="due", ids=[message.id for message in client.store.execute(Browse(name)).messages]))
        return all(stats.total == stats.dead for stats in (one.stats() for one in queues))

    wait(is_over)


def wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("it did not happen")
        time.sleep(0.02)


class Deploy:
    """The processes of a deploy; this one opens no store."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.crew: list[int] = []

    def fork(self, work: Callable[[ControlPlaneClient], object]) -> int:
        child = os.fork()
        if not child:
            try:
                with ControlPlaneClient(self.url) as client:
                    work(client)
            except BaseException as error:  # noqa: BLE001 - a child of a fork must not go on as its parent
                sys.stderr.write(f"{error!r}\n")
                os._exit(1)
            os._exit(0)
        return child

    def do(self, work: Callable[[ControlPlaneClient], object]) -> None:
        _, status = os.waitpid(self.fork(work), 0)
        if status:
            sys.exit("a process of the deploy failed")

    def add_worker(self, code: str) -> None:
        self.crew.append(self.fork(lambda client: work(code, client, self.folder)))

    def kill_worker(self, place: int) -> None:
        victim = self.crew.pop(place)
        os.kill(victim, signal.SIGKILL)
        _, status = os.waitpid(victim, 0)
        if status != signal.SIGKILL:
            sys.exit("a worker ended by itself")

    def ran(self) -> int:
        file = self.folder / "ran"
        return file.read_bytes().count(b"\n") if file.exists() else 0


def deploy(url: str, folder: Path, rounds: int, first: str) -> None:
    made, chance = Deploy(url, folder), random.Random(first)
    second = "new" if first == "old" else "old"
    for _ in range(CREW):
        made.add_worker(first)
    for number in range(rounds):
        before = made.ran()
        for code in CODES:
            made.do(partial(put_all, code, folder, str(number)))
        # The next kill comes in the middle of their work.
        wait(lambda before=before: made.ran() > before + 10)  # type: ignore[misc] # as above
        made.kill_worker(chance.randrange(CREW))
        made.add_worker(first if number < rounds // 3 else second)
    while made.crew:
        made.kill_worker(0)
    late = "late-new-8"
    made.do(lambda client: app_of("new", client, folder / "ran").find(name_of(8)).using(id=late, delay_s=3_600.0).put(8))
    for code in CODES:
        made.add_worker(code)
    made.do(lambda client: finish(client, late))
    for _ in CODES:
        made.kill_worker(0)


def burning(error: UnknownTask, *_: object) -> Outcome:
    return Outcome("failed", error=shown(error), delay_s=0.0)


if __name__ == "__main__":
    if "burning" in sys.argv:
        judgement.unknown = burning  # type: ignore[attr-defined, assignment] # what the control is about
    deploy(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
