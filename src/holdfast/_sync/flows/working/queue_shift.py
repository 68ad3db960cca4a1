# Generated from src/holdfast/_async/flows/working/queue_shift.py by tools/unasync.py; do not edit.
"""The part of a worker's shift that serves one queue: claims, runs and settles its jobs."""

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from msgspec import Raw

from holdfast._sync.flows.working.admitting import admit
from holdfast._sync.flows.working.pacing import set_rates
from holdfast._sync.flows.working.registering import policy_of
from holdfast._sync.flows.working.shared_breaker import SharedBreaker
from holdfast._sync.flows.working.stepping import NOTHING, step
from holdfast.backoff import Backoff
from holdfast.client import ControlPlaneClient
from holdfast.commands import Claim, Claimed
from holdfast.commands.topics import worker_topic
from holdfast.errors import Closed, StoreFull, StoreUnavailable
from holdfast.stores.waiting.waiters import Mark
from holdfast.wording import counted
from holdfast.workers.orders import Orders
from holdfast.workers.running.breaker import SharedCircuit
from holdfast.workers.running.log_lines import log
from holdfast.workers.running.places import Place
from holdfast.workers.running.running_jobs import Crew
from holdfast.workers.running.runs import Finished, Run
from holdfast.workers.running.shift_state import ShiftState

AWAY = Backoff(first_s=0.1, factor=2.0, most_s=5.0)
"""How long to wait before trying a store again that could not be reached."""

LAST_CALL_S = 2.0
"""How long jobs that were told to end have for that."""


class QueueShift:
    """Serves one queue until the worker is told to stop; `end` tells the whole worker to."""

    def __init__(
        self,
        client: ControlPlaneClient,
        orders: Orders,
        crew: Crew,
        place: Place,
        state: ShiftState,
        *,
        incarnation: str,
        until_empty: bool,
        beat: Callable[[], None],
        end: Callable[[], None],
    ) -> None:
        self._store = client.store
        self._orders = orders
        self.crew = crew
        self._place = place
        self._state = state
        self._topic = worker_topic(incarnation)
        self._claimer = f"{orders.name}/{incarnation[-12:]}"
        self._is_once = any(options.idempotent for options in orders.table.all())
        self._until_empty = until_empty
        self._beat = beat
        self._end = end
        self._breaker: SharedBreaker | None = None
        if isinstance(crew.circuit, SharedCircuit):
            self._breaker = SharedBreaker(client, orders, crew.queue, self._claimer, crew.circuit)
        self._unpaced = [options for options in orders.table.rated if options.queue == crew.queue]
        self._look_at = -math.inf
        self._unsettled: list[Finished] = []
        self._unbegun: list[Run] = []
        self._unreported: dict[Run, Raw] = {}

    def run(self) -> None:
        """Work until the worker is told to stop, then let jobs finish."""
        try:
            while not self._state.is_stopping:
                self._turn(claims=True)
            self._wind_down()
        except BaseException:
            # Cancelled, interrupted, or closed: nothing is waited for, and what is held is given back if the store can still be asked.
            self._end()
            self._give_back(self.crew.give_up_all())
            raise
        finally:
            self._place.leave()

    def _turn(self, *, claims: bool, until: float = math.inf) -> None:
        """Settle what is done, claim what there is room for, and wait for more of either."""
        # First of all: what rings from now on was not looked at yet.
        self.crew.bell.clear()
        if claims and self._state.is_stopping:
            return
        try:
            self._beat()
            self._learn()
            self.crew.give_back(at_once=self._state.is_paused or not claims)
            has_ended = self._collect()
            if self._breaker is not None:
                self._breaker.look(len(self.crew.running), may_claim=claims and not self._state.is_paused)
            room = self._room() if claims else 0
            with self._stand(room) as mark:
                claimed = self._ask(room)
                if claimed.messages:
                    mark.used()
                    return
                if claims and self._is_done(has_ended=has_ended, is_empty=room > 0):
                    self._end()
                elif self._until_empty and has_ended:
                    return  # What was just given back is due, perhaps; the step saw what was before it.
                elif claimed.due_in_s != 0.0 and (room or not has_ended) and not self._breaker_has_closed():
                    # What ended without room for more may have been the last, or have made room.
                    self._rest(mark, claimed.due_in_s, until)
        except (StoreUnavailable, StoreFull) as error:
            self._wait_for_store(error, until)

    def _learn(self) -> None:
        """Read the queue's policy, as often as the worker shows that it lives; before the first claim, set the rates of its tasks."""
        now, heartbeat_s = self.crew.now(), self._orders.heartbeat_s
        if now < self._look_at:
            return
        set_rates(self._store, self.crew.queue, self._unpaced)
        self._unpaced = []
        self.crew.learn(policy_of(self._store, self.crew.queue))
        self._look_at = math.inf if heartbeat_s is None else now + heartbeat_s

    def _stand(self, room: int) -> AbstractContextManager[Mark]:
        """What to wait on in this turn."""
        place = self._place.stand(room)
        if room or self._breaker is None or not self._is_open():
            return place
        return self._store.mark(self._breaker.topic)

    def _is_open(self) -> bool:
        return self.crew.circuit.state(self.crew.now()) == "open"

    def _breaker_has_closed(self) -> bool:
        """Whether the breaker that all share was closed before the caller could wait for that."""
        if self._breaker is None or self._state.is_paused or self._state.is_stopping or not self._is_open():
            return False
        self._breaker.look(len(self.crew.running), may_claim=True)
        return not self._is_open()

    def leave(self) -> None:
        """Leave to others what only one worker has."""
        if self._breaker is not None:
            self._breaker.leave()

    def _collect(self) -> bool:
        """Take in what has ended; whether anything had."""
        running, seats = len(self.crew.running), self.crew.seats
        self._unsettled += self.crew.collect()
        has_ended = running > len(self.crew.running)
        if has_ended:
            unstarted, self.crew.unstarted = self.crew.unstarted, 0
            self._place.ended(seats - self.crew.seats, unstarted)
        return bool(self._unsettled) or has_ended

    def _is_done(self, *, has_ended: bool, is_empty: bool) -> bool:
        """Whether nothing is left to do, as the worker was told."""
        if self.crew.running or self._unsettled:
            return False
        if self._place.is_used_up(self.crew.started):
            return True
        return self._until_empty and self._place.is_done(is_empty=is_empty and not has_ended)

    def _room(self) -> int:
        if self._state.is_paused or self._unbegun:
            return 0
        if self._gives_back:
            return 0  # First back to their places: a claim in the same step would not see them, and take what stands behind them.
        seats = self.crew.room()
        return self._place.room(seats, self.crew.slack(seats), self.crew.started)

    @property
    def _gives_back(self) -> bool:
        """Whether something is still to be given back that did not, or not wholly, run, or to be throttled."""
        return any(outcome.how == "released" or outcome.throttles is not None for _, outcome in self._unsettled)

    def _ask(self, room: int) -> Claimed:
        """Take the one step, and begin what it claimed."""
        crew = self.crew
        claim = self._claim(room) if room else None
        self._unreported |= crew.desk.take_progress()
        claimed = NOTHING
        started = crew.now()
        crew.stop_holding(self._unsettled)
        if self._unsettled or self._unreported or claim:
            claimed = self._claimed(claim)
            self._unreported = {}
            self._state.came_back()
        if room:
            seats = crew.seats
            self._unbegun += crew.take_on(claimed, room, started, self._place.granted)
            self._place.claimed(room, claimed, crew.seats - seats)
            if claimed.messages:
                self._collect()
        if not self._gives_back:
            if self._unbegun:
                self._begin()
            crew.begin_batches(at_once=self._until_empty and not claimed.messages)
        return claimed

    def _claimed(self, claim: Claim | None) -> Claimed:
        """What the step claimed."""
        settles = bool(self._unsettled)
        try:
            claimed = self._step(claim)
        except BaseException:
            self._place.unclaimed()
            raise
        if settles:
            self._place.settled()
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
            self.crew.tally.count(settled)
        self._unsettled = []
        return claimed

    def _claim(self, room: int) -> Claim:
        orders = self._orders
        max_attempts, dead_letter = orders.fallback(self.crew.queue, self.crew.policy)
        return Claim(
            self.crew.queue,
            self._claimer,
            orders.lease_s,
            room,
            expired_to=orders.expired_to,
            max_attempts=max_attempts,
            dead_letter=dead_letter,
            by_policy=orders.by_policy,
        )

    def _begin(self) -> None:
        self.crew.cancel()
        admitted, ended = self._unbegun, list[Finished]()
        if self._is_once:
            admitted, ended = admit(self._store, self.crew.queue, self._unbegun)
            self._state.came_back()
        self._unbegun = []
        self.crew.begin(admitted)
        for run, outcome in ended:
            self.crew.finish(run, outcome)

    def _rest(self, mark: Mark, due_in_s: float | None, until: float) -> None:
        """Wait for a wake-up of the store, the end of a job, or a moment."""
        crew = self.crew
        if not crew.desk.is_empty or not crew.bell.listen(mark):
            return
        moments = [until - time.monotonic(), self._state.next_beat_at - crew.now()]
        moments += [
            in_s for in_s in (crew.room_in_s(), crew.give_back_in_s(), crew.batch_in_s(), crew.desk.progress_in_s()) if in_s is not None
        ]
        try:
            self._store.wait(mark, max(0.0, min(moments)), self._place.due_in_s(due_in_s), self._orders.poll_interval_s)
            self._place.woke()
        finally:
            crew.bell.ignore()

    def _wait_for_store(self, error: Exception, until: float) -> None:
        """Go on by itself when the store is there again."""
        tries = self._state.lost(error)
        self.crew.keep_holding(self._unsettled)
        delay_s = min(AWAY.delay_s(tries), max(0.0, until - time.monotonic()))
        with self._store.mark(self._topic) as mark:
            if self.crew.bell.listen(mark):
                self._store.wait(mark, delay_s)
        self.crew.bell.ignore()

    def _wind_down(self) -> None:
        """Let jobs finish within the grace time, tell the rest to end, and give back what still does not."""
        began = time.monotonic()
        self._place.leave()
        self.crew.release(self._unbegun)
        self.crew.release_batches()
        self._unbegun = []
        while self._is_busy() and time.monotonic() < began + (self._state.grace_s or 0.0):
            self._turn(claims=False, until=began + (self._state.grace_s or 0.0))
        self.crew.stop_all()
        last_call = time.monotonic() + LAST_CALL_S
        while self._is_busy() and time.monotonic() < last_call:
            self._turn(claims=False, until=last_call)
        self._give_back(self.crew.give_up_all())

    def _is_busy(self) -> bool:
        return bool(self.crew.running or self._unsettled)

    def _give_back(self, finished: list[Finished]) -> None:
        self._unsettled += finished
        if not self._unsettled:
            return
        try:
            self._step()
        except (StoreUnavailable, StoreFull, Closed) as error:
            jobs = counted(len(self._unsettled), "job")
            log.warning("%s could not be given back, and will be run again when the lease ends: %s", jobs, error)
        self._unsettled = []
