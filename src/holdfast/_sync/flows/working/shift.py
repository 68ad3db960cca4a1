# Generated from src/holdfast/_async/flows/working/shift.py by tools/unasync.py; do not edit.
"""One shift of a worker: from its first claim to the last job settled."""

import logging
import math
import time

from msgspec import Raw

from holdfast._sync.flows.ticking import Ticker
from holdfast._sync.flows.working.admitting import admit
from holdfast._sync.flows.working.cancelling import hear_cancellations
from holdfast._sync.flows.working.registering import Registration
from holdfast._sync.flows.working.stepping import NOTHING, step
from holdfast.backoff import Backoff
from holdfast.client import ControlPlaneClient
from holdfast.commands import Claim, Claimed
from holdfast.commands.topics import queue_topic, worker_topic
from holdfast.errors import Closed, HoldfastError, StoreFull, StoreUnavailable
from holdfast.ids import new_id
from holdfast.passwords import without_password
from holdfast.stores.waiting.waiters import Mark
from holdfast.wording import counted, seconds
from holdfast.workers.handlers.outcomes import shown
from holdfast.workers.orders import Orders
from holdfast.workers.registry import WorkerHealth, WorkerState
from holdfast.workers.running.background import Side
from holdfast.workers.running.running_jobs import Crew
from holdfast.workers.running.runs import Finished, Run
from holdfast.workers.running.wakeup import Bell

AWAY = Backoff(first_s=0.1, factor=2.0, most_s=5.0)
"""How long to wait before trying a store again that could not be reached."""

LAST_CALL_S = 2.0
"""How long jobs that were told to end have for that."""

_log = logging.getLogger("holdfast.worker")


class Shift:
    """Claims, runs and settles until it is told to stop.

    `stop`, `pause`, `resume` and `health` may be called from any thread.
    """

    def __init__(self, client: ControlPlaneClient, orders: Orders, *, until_empty: bool = False, max_jobs: int | None = None) -> None:
        self.incarnation = new_id()
        self.orders = orders
        self._client = client
        self._store = client.store
        self._until_empty = until_empty
        self._max_jobs = max_jobs
        self._claimer = f"{orders.name}/{self.incarnation[-12:]}"
        self._fallback = orders.fallback
        self._is_once = any(options.idempotent for options in orders.table.all())
        self._registration = Registration(self._store, orders, self.incarnation)
        self._crew = Crew(orders, client, self._store.limits)
        self._unsettled: list[Finished] = []
        self._unbegun: list[Run] = []
        self._unreported: dict[Run, Raw] = {}
        self._cancelled: dict[str, int] = {}
        self._is_paused = False
        self._is_over = False
        self._grace_s: float | None = None
        self._beat_at = -math.inf
        self._failed_asks = 0
        self._error: str | None = None
        self._outages = 0

    def stop(self, grace_s: float | None = None) -> None:
        """Claim no more; let what runs finish within `grace_s`, by default as the worker was told. Again: at once."""
        if self._grace_s is not None:
            self._grace_s = 0.0
        else:
            self._grace_s = self.orders.grace_s if grace_s is None else grace_s
        if self._crew.begun:
            _log.info(
                "worker %s stops: %s may finish within %s", self.orders.name, counted(self._crew.begun, "job"), seconds(self._grace_s)
            )
        self._crew.bell.ring()

    def pause(self) -> None:
        """Claim no more until `resume`."""
        self._is_paused = True
        self._crew.bell.ring()

    def resume(self) -> None:
        """Claim again."""
        self._is_paused = False
        self._crew.bell.ring()

    @property
    def health(self) -> WorkerHealth:
        """How it is at this moment."""
        crew = self._crew
        return WorkerHealth(self._state(), crew.begun, crew.done, crew.failed, crew.abandoned, self._error, self._outages)

    def _state(self) -> WorkerState:
        if self._is_over:
            return "stopped"
        if self._failed_asks:
            return "away"
        if self._grace_s is not None:
            return "stopping"
        if self._is_paused:
            return "paused"
        return "open" if self._crew.circuit.state(self._crew.now()) == "open" else "working"

    def run(self) -> None:
        """Work until `stop`, until the queue is empty or until so many jobs were run, as it was told."""
        bell = Bell()

        def hear() -> None:
            hear_cancellations(self._store, self._crew, bell, self._cancelled)

        listener = Side(hear, "holdfast-cancellations")
        ticker = Ticker(self._store, self.incarnation, self.orders.declared)
        schedules = Side(ticker.run, "holdfast-schedules") if self.orders.schedules else None
        place = without_password(self._store.url) or "the default store"
        _log.info("worker %s begins: %s on %s", self.orders.name, self.orders.summary, place)
        try:
            while self._grace_s is None and not self._has_done_its_share():
                self._turn(claims=True)
            self._wind_down()
        except BaseException as error:
            # Cancelled, interrupted, or closed: nothing is waited for, and what is held is given back if the store can still be asked.
            if isinstance(error, HoldfastError):
                _log.error("worker %s ends: %s", self.orders.name, error)
            elif isinstance(error, Exception):
                _log.error("worker %s ends because of an error", self.orders.name, exc_info=error)
            self._give_back(self._crew.give_up_all())
            raise
        finally:
            self._is_over = True
            self._crew.close()
            bell.ring()
            ticker.stop()
            self._leave()
            listener.join()
            if schedules is not None:
                schedules.join()
            _log.info("worker %s has stopped: %d done, %d failed", self.orders.name, self._crew.done, self._crew.failed)

    def _has_done_its_share(self) -> bool:
        is_idle = not self._crew.running and not self._unsettled
        return is_idle and self._max_jobs is not None and self._crew.started >= self._max_jobs

    def _turn(self, *, claims: bool, until: float = math.inf) -> None:
        """Settle what is done, claim what there is room for, and wait for more of either."""
        # First of all: what rings from now on was not looked at yet.
        self._crew.bell.clear()
        if claims and self._grace_s is not None:
            return
        try:
            self._beat()
            self._crew.give_back(at_once=self._is_paused or not claims)
            running = len(self._crew.running)
            self._unsettled += self._crew.collect()
            has_ended = bool(self._unsettled) or len(self._crew.running) < running
            room = self._room() if claims else 0
            # With no room it stands in no line: a wake-up there is for somebody who can use it.
            topic = queue_topic(self.orders.queue) if room else worker_topic(self.incarnation)
            with self._store.mark(topic) as mark:
                claimed = self._ask(room)
                if claimed.messages:
                    mark.used()
                elif self._until_empty and room and not self._crew.running:
                    if not has_ended:  # What was just given back is due, perhaps; the step saw what was before it.
                        self.stop()
                elif claimed.due_in_s != 0.0 and (room or not has_ended):
                    # What ended without room for more may have been the last, or have made room.
                    self._rest(mark, claimed.due_in_s, until)
        except (StoreUnavailable, StoreFull) as error:
            self._wait_for_store(error, until)

    def _room(self) -> int:
        if self._is_paused or self._unbegun:
            return 0
        if self._gives_back:
            return 0  # First back to their places: a claim in the same step would not see them, and take what stands behind them.
        room = self._crew.room()
        return room if self._max_jobs is None else min(room, self._max_jobs - self._crew.started)

    @property
    def _gives_back(self) -> bool:
        """Whether something is still to be given back that did not, or not wholly, run."""
        return any(outcome.how == "released" for _, outcome in self._unsettled)

    def _ask(self, room: int) -> Claimed:
        """Take the one step, and begin what it claimed."""
        crew = self._crew
        claim = self._claim(room) if room else None
        self._unreported |= crew.desk.take_progress()
        claimed = NOTHING
        started = crew.now()
        crew.stop_holding(self._unsettled)
        if self._unsettled or self._unreported or claim:
            claimed = self._step(claim)
            self._unreported = {}
            self._came_back()
        if room:
            self._unbegun += crew.take_on(claimed.messages, room, started)
            self._unsettled += crew.collect() if claimed.messages else []
        if self._unbegun and not self._gives_back:
            self._begin()
        return claimed

    def _step(self, claim: Claim | None = None) -> Claimed:
        """Settle what ended, and claim."""
        settled: list[Finished] = []
        try:
            claimed = step(self._store, self._unsettled, settled, progress=self._unreported, claim=claim)
        except BaseException:
            gone = {run for run, _ in settled}
            self._unsettled = [(run, outcome) for run, outcome in self._unsettled if run not in gone]
            raise
        finally:
            self._crew.count(settled)
        self._unsettled = []
        return claimed

    def _claim(self, room: int) -> Claim:
        orders = self.orders
        max_attempts, dead_letter = self._fallback
        return Claim(
            orders.queue,
            self._claimer,
            orders.lease_s,
            room,
            expired_to=orders.expired_to,
            max_attempts=max_attempts,
            dead_letter=dead_letter,
        )

    def _begin(self) -> None:
        if self._cancelled:
            self._crew.cancel(self._cancelled)
        admitted, ended = self._unbegun, list[Finished]()
        if self._is_once:
            admitted, ended = admit(self._store, self.orders.queue, self._unbegun)
            self._came_back()
        self._unbegun = []
        self._crew.begin(admitted)
        for run, outcome in ended:
            self._crew.finish(run, outcome)

    def _rest(self, mark: Mark, due_in_s: float | None, until: float) -> None:
        """Wait for a wake-up of the store, the end of a job, or a moment."""
        if not self._crew.desk.is_empty or not self._crew.bell.listen(mark):
            return
        moments = [until - time.monotonic(), self._beat_at - self._crew.now()]
        moments += [in_s for in_s in (self._crew.room_in_s(), self._crew.give_back_in_s()) if in_s is not None]
        try:
            self._store.wait(mark, max(0.0, min(moments)), due_in_s, self.orders.poll_interval_s)
        finally:
            self._crew.bell.ignore()

    def _beat(self) -> None:
        now = self._crew.now()
        if now < self._beat_at:
            return
        heartbeat_s = self.orders.heartbeat_s
        self._registration.beat(self.health)
        self._beat_at = math.inf if heartbeat_s is None else now + heartbeat_s
        if heartbeat_s is not None:
            self._came_back()

    def _wait_for_store(self, error: Exception, until: float) -> None:
        """Go on by itself when the store is there again."""
        if not self._failed_asks:
            _log.warning("worker %s cannot reach its store, and continues once it can: %s", self.orders.name, error)
        self._failed_asks += 1
        self._error = shown(error)
        self._beat_at = -math.inf
        self._crew.keep_holding(self._unsettled)
        delay_s = min(AWAY.delay_s(self._failed_asks), max(0.0, until - time.monotonic()))
        with self._store.mark(worker_topic(self.incarnation)) as mark:
            if self._crew.bell.listen(mark):
                self._store.wait(mark, delay_s)
        self._crew.bell.ignore()

    def _came_back(self) -> None:
        if self._failed_asks:
            _log.warning("worker %s reaches its store again, after %s", self.orders.name, counted(self._failed_asks, "try", "tries"))
            self._outages += 1
            self._failed_asks = 0

    def _wind_down(self) -> None:
        """Let jobs finish within the grace time, tell the rest to end, and give back what still does not."""
        began = time.monotonic()
        self._crew.release(self._unbegun)
        self._unbegun = []
        self._grace_s = self.orders.grace_s if self._grace_s is None else self._grace_s
        while self._is_busy() and time.monotonic() < began + self._grace_s:
            self._turn(claims=False, until=began + self._grace_s)
        self._crew.stop_all()
        last_call = time.monotonic() + LAST_CALL_S
        while self._is_busy() and time.monotonic() < last_call:
            self._turn(claims=False, until=last_call)
        self._give_back(self._crew.give_up_all())

    def _is_busy(self) -> bool:
        return bool(self._crew.running or self._unsettled)

    def _give_back(self, finished: list[Finished]) -> None:
        self._unsettled += finished
        if not self._unsettled:
            return
        try:
            self._step()
        except (StoreUnavailable, StoreFull, Closed) as error:
            jobs = counted(len(self._unsettled), "job")
            _log.warning("%s could not be given back, and will be run again when the lease ends: %s", jobs, error)
        self._unsettled = []

    def _leave(self) -> None:
        try:
            self._registration.end()
        except (StoreUnavailable, StoreFull, Closed) as error:
            _log.debug("worker %s could not leave the registry; its entry ends by itself: %s", self.orders.name, error)
