"""A task that is cancelled hears of it wherever it is, its event loop ends, and nothing stays held that nobody has."""

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast import ControlPlaneClient, Dict, Lock, Queue
from holdfast.stores import Store
from holdfast.testing.conformance import threads
from holdfast.testing.conformance.factory import Conformance
from holdfast.testing.conformance.threads import Doing

ROUNDS = 6
ENDINGS = 3
STOCK = 1_000

Act = Callable[[], Awaitable[object]]


class CancellationConformance(Conformance):
    """Many tasks, each cancelled at a moment of its own."""

    def test_whoever_is_cancelled_at_any_moment_hears_it_and_leaves_nothing_held(self, store: Store) -> None:
        scene = Scene(store)
        for seed in range(ROUNDS):
            unheard = Doing(lambda seed=seed: asyncio.run(scene.cancel_each(random.Random(seed)))).result("an event loop")  # type: ignore[misc]
            assert not unheard, f"of those who did this, not all heard that they were cancelled: {unheard}"
        scene.check_nothing_is_held()

    def test_an_event_loop_ends_whatever_is_under_way(self, store: Store) -> None:
        scene = Scene(store)
        for seed in range(ENDINGS):
            Doing(lambda seed=seed: asyncio.run(scene.end_early(random.Random(seed)))).result("an event loop")  # type: ignore[misc]
        scene.check_nothing_is_held()


class Scene:
    """What tasks do until they are cancelled, over and over."""

    def __init__(self, store: Store) -> None:
        self.client: ControlPlaneClient = ControlPlaneClient.on(store)
        self.put: Queue[Any] = Queue.create("put", client=self.client)
        self.taken: Queue[Any] = Queue.create("taken", client=self.client)
        self.claimed: Queue[Any] = Queue.create("claimed", client=self.client)
        self.lock: Lock = Lock("lock", client=self.client, lease_s=3_600.0)
        for queue in (self.taken, self.claimed):
            queue.put_many(range(STOCK))
        self.gone: int = 0
        self.acts: list[Act] = [self.put_one, self.take_one, self.wait_in_vain, self.claim_one, self.hold_lock, self.hold_lock, self.step]

    async def put_one(self) -> None:
        await self.put.aio.put("one")

    async def take_one(self) -> None:
        if await self.taken.aio.get() is not None:
            self.gone += 1

    async def wait_in_vain(self) -> None:
        await Queue.from_name("empty", client=self.client).aio.get(timeout_s=math.inf)

    async def claim_one(self) -> None:
        async with self.claimed.aio.claimed(claimer="me", lease_s=3_600.0):
            await asyncio.sleep(0)

    async def hold_lock(self) -> None:
        async with self.lock.aio:
            await asyncio.sleep(0)

    async def step(self) -> None:
        async with self.client.aio.together() as together:
            together.put(self.put, "two")
            together.write(Dict.from_name("written", client=self.client), "key", 1)

    async def cancel_each(self, rng: random.Random) -> list[str]:
        """Cancel every task, each at a moment of its own; which of them did not hear it."""
        tasks = {begun(act): act for act in self.acts}
        for task in rng.sample(list(tasks), len(tasks)):
            await a_moment(rng)
            task.cancel()
        _, deaf = await asyncio.wait(tasks, timeout=threads.PATIENCE_S)
        for task in deaf:
            task.cancel()
        return [act.__name__ for task, act in tasks.items() if not task.cancelled()]

    async def end_early(self, rng: random.Random) -> None:
        """Return while all of them are in the middle of something."""
        tasks = [begun(act) for act in self.acts]
        await a_moment(rng)
        assert tasks

    def check_nothing_is_held(self) -> None:
        """See that what cancelled tasks were granted comes back, that nothing was lost on the way, and that all of it can be used."""
        end = time.monotonic() + threads.PATIENCE_S
        while (held := self.held()) and time.monotonic() < end:
            time.sleep(0.005)  # To look, not to make something happen.
        assert not held, f"nobody has them, and yet they are held: {held}"
        assert self.taken.length() == STOCK - self.gone, "what a cancelled task took was lost, or is there twice"
        with self.lock, self.claimed.claimed(claimer="another"):
            self.put.put("three")
        self.client.close()

    def held(self) -> list[str]:
        """What is held."""
        queues = [queue.name for queue in (self.put, self.taken, self.claimed) if queue.stats().leased]
        missing = self.taken.length() - (STOCK - self.gone)
        return [*queues, *(["lock"] if self.lock.holding() else []), *([f"{missing:+} of taken"] if missing else [])]


def begun(act: Act) -> asyncio.Task[None]:
    """A task that does it over and over. What it raises where a broken store is closed under it is not logged when it is collected."""
    task = asyncio.create_task(again_and_again(act))
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return task


async def again_and_again(act: Act) -> None:
    while True:
        await act()
        # Not every store lets others have their turn.
        await asyncio.sleep(0)


async def a_moment(rng: random.Random) -> None:
    """Let some time pass, or just a few turns of the event loop."""
    if rng.random() < 0.5:
        await asyncio.sleep(rng.uniform(0.0, 0.005))
    else:
        for _ in range(rng.randrange(8)):
            await asyncio.sleep(0)
