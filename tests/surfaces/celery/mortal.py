"""A worker of a chord whose members kill it with SIGKILL, each the first time that it runs.

    python -m tests.surfaces.celery.mortal FOLDER

The store is that of HOLDFAST_URL; what ran is noted in a file of the folder.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from holdfast.surfaces.celery import Celery, chord

MEMBERS = 3


def notes(folder: Path) -> list[str]:
    """What ran so far."""
    file = folder / "notes"
    return file.read_text().splitlines() if file.exists() else []


def note(folder: Path, text: str) -> None:
    with (folder / "notes").open("a") as file:
        file.write(text + "\n")


def app_of(folder: Path) -> Celery:
    app = Celery("mortal")

    @app.task(name="member", max_retries=10)
    def member(number: int) -> int:
        if f"killed {number}" not in notes(folder):
            note(folder, f"killed {number}")
            os.kill(os.getpid(), signal.SIGKILL)
        note(folder, f"member {number}")
        return number

    @app.task(name="body")
    def body(numbers: list[int]) -> int:
        note(folder, "body")
        return sum(numbers)

    return app


def chord_of(app: Celery) -> Any:
    member, body = app.tasks["member"], app.tasks["body"]
    return chord([member.s(number) for number in range(MEMBERS)], body.s())()


def main() -> None:
    app = app_of(Path(sys.argv[1]))
    worker = app.holdfast.worker(concurrency=1, lease_s=1.0)
    worker.run(until_empty=True)


if __name__ == "__main__":
    main()
