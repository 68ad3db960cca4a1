"""What the tests of durable jobs share: a worker that is drained on a clock of the test, on any store."""

from typing import Any

from holdfast import ControlPlaneClient, Dict, Tasks, Worker
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.jobs import Drain, Drained

QUEUE = "default"


class Bench:
    """A store on a clock of the test, and what runs the jobs in it."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.clock = clock
        self.client = ControlPlaneClient.on(store)
        self._drain = Drain(self.client, clock)

    def tasks(self, **options: Any) -> Tasks:
        """A collection of tasks in this store."""
        return Tasks("tests", client=self.client, **options)

    def drain(self, app: Tasks, *, delayed: bool = False) -> Drained:
        """Run what is due."""
        return self._drain(app, delayed=delayed)

    def drain_workers(self, *workers: Worker[Any, Any, Any], delayed: bool = False) -> Drained:
        """Run what is due for these workers."""
        return self._drain(*workers, delayed=delayed)

    def left(self, queue: str = QUEUE) -> dict[str, Any]:
        """What is recorded of durable jobs."""
        return {name: list(Dict(f"{queue}-{name}", client=self.client).items()) for name in ("steps", "signals")}
