"""One shift of a worker: from its first claim to the last job settled."""

import logging
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress

from holdfast._async.flows.ticking import AsyncTicker
from holdfast._async.flows.working.cancelling import hear_cancellations
from holdfast._async.flows.working.janitor import AsyncJanitor
from holdfast._async.flows.working.queue_shift import AsyncQueueShift
from holdfast._async.flows.working.registering import AsyncRegistration
from holdfast.client import ControlPlaneClient
from holdfast.errors import Closed, HoldfastError, StoreFull, StoreUnavailable
from holdfast.ids import new_id
from holdfast.passwords import without_password
from holdfast.views.task_work import TaskWork
from holdfast.wording import counted, seconds
from holdfast.workers.orders import Orders
from holdfast.workers.registry import WorkerHealth, WorkerState
from holdfast.workers.running.background import AsyncSide
from holdfast.workers.running.log_lines import log_begin
from holdfast.workers.running.places import OnlyPlace, Place, SharedPlace
from holdfast.workers.running.pools import Pools
from holdfast.workers.running.running_jobs import Crew
from holdfast.workers.running.seats import Seats
from holdfast.workers.running.shift_state import ShiftState
from holdfast.workers.running.wakeup import Bell

_log = logging.getLogger("holdfast.worker")


class AsyncShift:
    """Claims, runs and settles until it is told to stop: one part for each queue, which share the concurrency of the worker.

    `stop`, `pause`, `resume` and `health` may be called from any thread.
    """

    def __init__(self, client: ControlPlaneClient, orders: Orders, *, until_empty: bool = False, max_jobs: int | None = None) -> None:
        self.incarnation = new_id()
        self.orders = orders
        self._store = client.async_store
        self._state = ShiftState(orders)
        self._until_empty = until_empty
        self._registration = AsyncRegistration(self._store, orders, self.incarnation)
        self._pools = Pools(orders, client, self._store.limits)
        self._crews = [Crew(orders, queue, client.keepalive, self._pools, until_empty=until_empty) for queue in orders.queues]
        self._queues = [
            AsyncQueueShift(
                client,
                orders,
                crew,
                place,
                self._state,
                incarnation=self.incarnation,
                until_empty=until_empty,
                beat=self._beat,
                end=self._end,
            )
            for crew, place in zip(self._crews, self._places(max_jobs), strict=True)
        ]

    def _places(self, max_jobs: int | None) -> Sequence[Place]:
        orders = self.orders
        if len(orders.queues) == 1:
            return [OnlyPlace(self._store, orders.queues[0], self.incarnation, max_jobs)]
        seats = Seats(orders.concurrency, orders.queues, orders.weights, max_jobs=max_jobs)
        return [SharedPlace(self._store, crew.queue, self.incarnation, seats, bell=crew.bell, now=crew.now) for crew in self._crews]

    def stop(self, grace_s: float | None = None) -> None:
        """Claim no more; let what runs finish within `grace_s`, by default as the worker was told. Again: at once."""
        grace_s = self._state.stop(grace_s)
        begun = sum(crew.tally.begun for crew in self._crews)
        if begun:
            _log.info("worker %s stops: %s may finish within %s", self.orders.name, counted(begun, "job"), seconds(grace_s))
        self._ring()

    def _end(self) -> None:
        """Stop because there is nothing left to do, or because one part failed."""
        if not self._state.is_stopping:
            self._state.stop()
        self._ring()

    def pause(self) -> None:
        """Claim no more until `resume`."""
        self._state.is_paused = True
        self._ring()

    def resume(self) -> None:
        """Claim again."""
        self._state.is_paused = False
        self._ring()

    def _ring(self) -> None:
        for crew in self._crews:
            crew.bell.ring()

    @property
    def health(self) -> WorkerHealth:
        """How it is at this moment."""
        crews, state = self._crews, self._state
        return WorkerHealth(
            self._name_state(),
            sum(crew.tally.begun for crew in crews),
            sum(crew.tally.done for crew in crews),
            sum(crew.tally.failed for crew in crews),
            sum(crew.abandoned for crew in crews),
            state.error,
            state.outages,
        )

    def _name_state(self) -> WorkerState:
        state = self._state
        if state.is_over:
            return "stopped"
        if state.failed_asks:
            return "away"
        if state.is_stopping:
            return "stopping"
        if state.is_paused:
            return "paused"
        return "open" if any(crew.circuit.state(crew.now()) == "open" for crew in self._crews) else "working"

    async def run(self) -> None:
        """Work until `stop`, until its queues are empty or until so many jobs were run, as it was told."""
        bell = Bell()

        async def hear() -> None:
            await hear_cancellations(self._store, self._crews, bell)

        sides = [AsyncSide(hear, "holdfast-cancellations")]
        ticker = AsyncTicker(self._store, self.incarnation, self.orders.declared)
        janitor = AsyncJanitor(self._store, self.orders.queues, self.incarnation)
        if not self._until_empty:
            sides.append(AsyncSide(janitor.run, "holdfast-janitor"))
        place = without_password(self._store.url) or "the default store"
        log_begin(self.orders, place)
        try:
            if self.orders.schedules:
                await ticker.begin()
                sides.append(AsyncSide(ticker.run, "holdfast-schedules"))
            await self._serve()
        except BaseException as error:
            if isinstance(error, HoldfastError):
                _log.error("worker %s ends: %s", self.orders.name, error)
            elif isinstance(error, Exception):
                _log.error("worker %s ends because of an error", self.orders.name, exc_info=error)
            raise
        finally:
            self._state.is_over = True
            await self._close()
            bell.ring()
            ticker.stop()
            janitor.stop()
            await self._leave()
            for side in sides:
                await side.join()
            health = self.health
            _log.info("worker %s has stopped: %d done, %d failed", self.orders.name, health.done, health.failed)

    async def _serve(self) -> None:
        """Serve every queue, the first of them here and the others beside it."""
        others = [AsyncSide(queue.run, "holdfast-queue") for queue in self._queues[1:]]
        try:
            await self._queues[0].run()
        except BaseException:
            self._end()
            self._state.stop(0.0)
            for side in others:
                with suppress(BaseException):  # What the first raised counts.
                    await side.join()
            raise
        for side in others:
            await side.join()

    async def _close(self) -> None:
        try:
            await self._pools.aclose()
        except Exception:  # noqa: BLE001 - foreign code, and the jobs are settled
            _log.exception("worker %s could not clean up what its jobs used", self.orders.name)
        for crew in self._crews:
            crew.close()

    async def _beat(self) -> None:
        """Show in the registry that it lives, when it is time for that."""
        state, now = self._state, self._crews[0].now()
        if now < state.beat_at or state.is_beating:
            return
        state.is_beating = True
        heartbeat_s = self.orders.heartbeat_s
        try:
            await self._registration.beat(self.health, self._work())
        finally:
            state.is_beating = False
        state.beat_at = math.inf if heartbeat_s is None else now + heartbeat_s
        if heartbeat_s is not None:
            state.came_back()

    def _work(self) -> dict[str, Mapping[str, TaskWork]]:
        return {crew.queue: work for crew in self._crews if (work := crew.tally.work.told())}

    async def _leave(self) -> None:
        try:
            for queue in self._queues:
                await queue.leave()
            if work := self._work():
                await self._registration.beat(self.health, work)  # What it did since the last one.
            await self._registration.end()
        except (StoreUnavailable, StoreFull, Closed) as error:
            _log.debug("worker %s could not leave the registry; its entry ends by itself: %s", self.orders.name, error)
