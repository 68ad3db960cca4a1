"""A job with everything that a durable job can do, run by processes that die."""

import asyncio
from typing import Any

from holdfast import MISSING, AsyncJobContext, ControlPlaneClient, JobContext, Queue, Tasks
from holdfast.commands import Browse, Names, Read
from holdfast.errors import Closed
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from holdfast.workers.steps.rows import maps_prefix, signals_of, steps_of
from tests.workers.mortal_store import Fate, MortalStore

ID = "order"
LEASE_S = 60.0
LIVES = 40
"""After so many lives the job does not get on."""


class World:
    """What the effects of all processes did."""

    def __init__(self) -> None:
        self.charges: list[str] = []
        self.plain: list[str] = []
        self.fate = Fate()

    def charge(self, order: str) -> str:
        self.charges.append(order)
        self.fate.effect()
        return f"charge-{order}"

    def find_charge(self, order: str) -> Any:
        return f"charge-{order}" if order in self.charges else MISSING

    def note(self, text: str) -> str:
        self.plain.append(text)
        self.fate.effect()
        return text


def tasks_of(client: ControlPlaneClient, world: World, *, is_async: bool) -> Tasks:
    """The tasks of one process."""
    app = Tasks("flow", client=client, max_attempts=3)

    @app.task(name="page")
    def page(number: int) -> int:
        world.note(f"page {number}")
        return number * 10

    if not is_async:

        @app.task(name="order")
        def order(job: JobContext, id: str) -> list[Any]:
            begun = job.step("begin", world.note, "begin")
            job.sleep(3_600)
            charged = job.options(once=True, reconcile=world.find_charge).step("charge", world.charge, id)
            approved = job.wait("approved", str, timeout_s=1e6)
            pages = job.call(page, 1) + sum(job.map(page, [page.args(2), page.args(3)]))
            job.put("follow-ups", id)
            return [begun, charged, approved, pages]

        return app

    @app.task(name="order")
    async def order_in_tasks(job: AsyncJobContext, id: str) -> list[Any]:
        begun = await job.step("begin", world.note, "begin")
        await job.sleep(3_600)
        once = job.options(once=True, reconcile=world.find_charge)
        charged, approved = await asyncio.gather(once.step("charge", world.charge, id), job.wait("approved", str, timeout_s=1e6))
        first, others = await asyncio.gather(job.call(page, 1), job.map(page, [page.args(2), page.args(3)]))
        pages = first + sum(others)
        job.put("follow-ups", id)
        return [begun, charged, approved, pages]

    return app


class Flow:
    """Runs the job through the deaths of its processes, and looks at what is left."""

    def __init__(self, store: Store, clock: FakeClock, *, is_async: bool) -> None:
        self._store = store
        self._clock = clock
        self._is_async = is_async

    def run(self, fate: Fate) -> World:
        """Let the processes have this fate until one died of it, and all others live."""
        world = World()
        world.fate = fate
        for _ in range(LIVES):
            self._live(world.fate, world, puts=not self._has_job())
            if self._is_done():
                self.check(world)
                return world
            self._clock.advance(max(LEASE_S + 1.0, self._next_due_s()))
            if world.fate.is_dead:
                world.fate = Fate()
        raise AssertionError(f"not done after {LIVES} lives")

    def _live(self, fate: Fate, world: World, *, puts: bool) -> None:
        client = ControlPlaneClient.on(MortalStore(self._store, fate))
        app = tasks_of(client, world, is_async=self._is_async)
        task = next(task for task in app.tasks if task.name == "order")
        try:
            if puts:
                task.using(id=ID).put(ID)
            if not self._is_done():
                task.job(ID).send("approved", "ann", id="the one")
            app.run(until_empty=True, signals=False, heartbeat_s=None, schedules=False, lease_s=LEASE_S, poll_interval_s=0.05)
        except Closed:
            assert fate.is_dead
        finally:
            client.close()

    def _has_job(self) -> bool:
        return bool(self._store.execute(Browse("default", ids=[ID])).messages)

    def _is_done(self) -> bool:
        return not self._has_job() and bool(self._store.execute(Browse("follow-ups")).messages)

    def _next_due_s(self) -> float:
        browsed = self._store.execute(Browse("default"))
        return max((message.position - browsed.now) / 1e6 for message in browsed.messages) if browsed.messages else 0.0

    def check(self, world: World) -> None:
        """One follow-up, one charge, the right result, and nothing left behind."""
        client = ControlPlaneClient.on(MortalStore(self._store, Fate()))
        job = tasks_of(client, world, is_async=self._is_async).tasks[-1].job(ID)
        assert job.result(timeout_s=0) == ["begin", f"charge-{ID}", "ann", 60]
        assert world.charges == [ID]
        assert [message.value for message in Queue[str]("follow-ups", client=client).browse()] == [ID]
        for name in (steps_of("default"), signals_of("default")):
            assert [entry.key for entry in self._store.execute(Read(name)).entries] == []
        assert self._store.execute(Names("dict", maps_prefix("default"))).settings == []
        for state in ("ready", "leased", "dead"):
            assert not self._store.execute(Browse("default", state=state)).messages
        client.close()
