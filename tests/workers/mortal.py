"""A program that forks workers which kill themselves at a chosen step, round after round, and then lets one live to finish.

    python -m tests.workers.mortal FOLDER ROUNDS once|plain|poison [URL]

Without a URL the jobs are in a file of the folder. Each round puts a job, and dies at the next of POINTS; the effects are rows of another
file, which no transaction of the store covers.
"""

import os
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from holdfast import MISSING, Backoff, ControlPlaneClient, Queue, Worker, connect
from holdfast.commands import Claim, Put, Settle, Together, Write

POINTS = [f"{when} {what}" for what in ("put", "claim", "note", "effect", "settle") for when in ("before", "after")]


class Mortal:
    """Kills its process at one point, the first time it is reached."""

    def __init__(self, point: str) -> None:
        self.point = point

    def reach(self, point: str) -> None:
        if point == self.point:
            os.kill(os.getpid(), signal.SIGKILL)


class MortalStore:
    """A store whose caller dies before or after a command."""

    def __init__(self, store: Any, mortal: Mortal) -> None:
        self._store = store
        self._mortal = mortal

    def execute(self, command: Any) -> Any:
        what = kind_of(command)
        self._mortal.reach(f"before {what}")
        answer = self._store.execute(command)
        if what != "claim" or answer.messages:
            self._mortal.reach(f"after {what}")
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def kind_of(command: Any) -> str:
    match command:
        case Put():
            return "put"
        case Claim():
            return "claim"
        case Write(dict="jobs-once"):
            return "note"
        case Settle():
            return "settle"
        case Together(commands=[Settle(), *_]):
            return "settle"
        case _:
            return "other"


def rows_of(folder: Path, key: str) -> int:
    with closing(sqlite3.connect(folder / "effects.db", timeout=60)) as file:
        return int(file.execute("select count(*) from effects where key = ?", (key,)).fetchone()[0])


def live(url: str, folder: Path, kind: str, point: str, job: str | None) -> None:
    """What a forked child does: put a job, and work on whatever is due until that is nothing, or death comes."""
    mortal = Mortal(point)
    client = ControlPlaneClient.on(MortalStore(connect(url), mortal))

    def handle(key: str) -> str:
        mortal.reach("before effect")
        with closing(sqlite3.connect(folder / "effects.db", timeout=60)) as file, file:
            file.execute("insert into effects values (?)", (key,))
        if kind == "poison":
            os.kill(os.getpid(), signal.SIGKILL)
        mortal.reach("after effect")
        return f"did {key}"

    def look(key: str) -> Any:
        return f"did {key}" if rows_of(folder, key) else MISSING

    worker = Worker(
        handle,
        "jobs",
        client=client,
        lease_s=0.2,
        max_attempts=None,
        backoff=Backoff(0.0, jitter=0.0),
        idempotent=kind == "once",
        reconcile=look if kind == "once" else None,
        heartbeat_s=None,
        grace_s=60.0,
    )
    if kind == "poison":
        worker.put("poison", id="poison", max_attempts=3)
        worker.run(max_jobs=1, signals=False)
    elif job is not None:
        worker.put(job, id=job)
        worker.run(until_empty=True, signals=False)
    else:
        queue = Queue[str]("jobs", client=client)
        while queue.stats().total:
            # The leases of the dead end by themselves, and bring what they held.
            worker.run(max_jobs=1, signals=False)


def main(folder: Path, rounds: int, kind: str, url: str = "") -> None:
    with closing(sqlite3.connect(folder / "effects.db")) as file:
        file.execute("create table effects (key text not null)")
    for number in range(rounds + (kind != "poison")):
        child = os.fork()
        if not child:
            last = number == rounds
            live(
                url or f"sqlite:///{folder}/jobs.db?durability=process",
                folder,
                kind,
                "never" if last or kind == "poison" else POINTS[number % len(POINTS)],
                None if last else f"job-{number}",
            )
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status not in {0, signal.SIGKILL}:
            sys.exit(f"round {number} ended with status {status}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
