"""A worker of durable jobs that kills itself at its n-th command or in its n-th effect: tests/workers/test_durable_sigkill.py starts it.

`python -m tests.workers.mortal_durable URL FILE N [effects]` puts the job if it is not there, runs it, and notes its effects in the file.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from holdfast import MISSING, ControlPlaneClient, JobContext, Tasks
from holdfast.commands import Command
from holdfast.commands.together import only_reads
from holdfast.errors import JobGone
from tests.workers.mortal_store import Fate

ID = "order"


class Killer(Fate):
    """Kills the process."""

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def notes(file: Path) -> list[str]:
    """The effects so far."""
    return file.read_text().splitlines() if file.exists() else []


def tasks_of(client: ControlPlaneClient, file: Path, fate: Fate) -> Tasks:
    """A job with a step, a sleep, a step that must happen once, a signal and a child."""
    app = Tasks("mortal", client=client, max_attempts=3)

    def note(text: str) -> str:
        with file.open("a") as effects:
            effects.write(text + "\n")
        fate.effect()
        return text

    def find(text: str) -> Any:
        return text if text in notes(file) else MISSING

    @app.task(name="page")
    def page(number: int) -> int:
        return number * 10

    @app.task(name="order")
    def order(job: JobContext, id: str) -> list[Any]:
        begun = job.step("begin", note, "begin")
        job.sleep(0.05)
        charged = job.options(once=True, reconcile=find).step("charge", note, "charge")
        approved = job.wait("approved", str, timeout_s=3_600.0)
        number = job.call(page, 3)
        job.put("follow-ups", id)
        return [begun, charged, approved, number]

    return app


def main(url: str, file: str, number: str, where: str = "commands") -> None:
    """Live until the n-th command or effect, or until nothing is due."""
    n = abs(int(number)) or None
    killer = Killer(n, after=int(number) < 0) if where == "commands" else Killer(effect=n)
    with ControlPlaneClient(url) as client:
        store, execute = client.store, client.store.execute

        def mortal(command: Command[Any]) -> Any:
            is_last = killer.before(command) if not only_reads(command) else False
            answer = execute(command)
            if is_last:
                killer.die()
            return answer

        store.execute = mortal  # type: ignore[method-assign] # the store of this process alone
        app = tasks_of(client, Path(file), killer)
        order = app.find("order")
        if not notes(Path(file)) and order.job(ID).status().state == "gone":
            order.using(id=ID).put(ID)
        try:
            order.job(ID).send("approved", "ann", id="1")
        except JobGone:
            return
        app.run(until_empty=True, signals=False, heartbeat_s=None, schedules=False, lease_s=0.5)


if __name__ == "__main__":
    main(*sys.argv[1:])
