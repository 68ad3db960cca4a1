"""The running jobs of a worker, and its free capacity."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from holdfast.commands import Claimed
from holdfast.holding.hold import Hold, lease_of
from holdfast.holding.keepalive import Keepalive
from holdfast.records import Message, Receipt
from holdfast.records.policies import Policy
from holdfast.workers.handlers.jobs import StopReason
from holdfast.workers.handlers.outcomes import LOST, RELEASED, Outcome
from holdfast.workers.orders import Options, Orders
from holdfast.workers.running.breaker import Circuit, SharedCircuit
from holdfast.workers.running.job_owner import JobOwner
from holdfast.workers.running.placement import Placement
from holdfast.workers.running.pools import Pools
from holdfast.workers.running.prefetch import Ahead
from holdfast.workers.running.runs import DONE, FAILED, Desk, Finished, Run
from holdfast.workers.running.settlements import decided, runs_alone
from holdfast.workers.running.tally import Tally
from holdfast.workers.running.wakeup import Bell

CLAIM_MOST = 500
"""How many messages one step claims at most."""

SETTLE_MOST = 500
"""How many runs one step settles at most."""

NO_POLICY = Policy()

_log = logging.getLogger("holdfast.worker")


class Crew:
    """Runs jobs and keeps track of them; knows no store.

    One flow calls `room`, `take_on`, `begin`, `give_back` and `collect`; everything else may be called from any thread.
    """

    now: Callable[[], float]
    bell: Bell
    desk: Desk
    circuit: Circuit | SharedCircuit
    abandoned: int
    started: int
    unstarted: int
    """How many were given back before they began, since that was last asked."""

    def __init__(self, orders: Orders, queue: str, keepalive: Keepalive, pools: Pools, *, until_empty: bool = False) -> None:
        self.orders = orders
        self.queue = queue
        self.now = keepalive.now
        self.bell = Bell()
        self.desk = Desk(self.bell, self.now)
        breaker = orders.breaker
        self.circuit = SharedCircuit(breaker) if breaker is not None and breaker.shared else Circuit(breaker)
        self.policy: Policy = NO_POLICY
        """What the queue's settings said when they were last read."""
        self._options: dict[str, Options] = {}
        """How the jobs of each function are run under that policy, as far as there were any."""
        self._is_careful = False
        self.running: dict[Receipt, Run] = {}
        self.tally: Tally = Tally(queue, self.running)
        self._owner = JobOwner(self.running, self.desk, keepalive)
        self.abandoned = self.started = self.unstarted = 0
        self._ahead = Ahead(orders.ahead, orders.concurrency)
        self._keepalive = keepalive
        self._next_start_at = 0.0
        self._cancelled: Mapping[str, int] = {}
        self._pools = pools
        self._until_empty = until_empty
        placed = [options for options in orders.table.placed if options.queue == queue]
        self._placement = Placement(placed, pools, self.now, self._give_back) if placed else None
        # A test owns the time: what waits for a moment looks again when it has moved.
        self._forget_clock = keepalive.clock.subscribe(self.bell.ring) if keepalive.clock is not None else None

    @property
    def seats(self) -> int:
        """How many jobs of its concurrency are taken: a batch is one."""
        return len(self.running) if self._placement is None else self._placement.seats(len(self.running))

    def slack(self, seats: int) -> int:
        """How many messages to ask for beyond so many free seats, because batches take them."""
        return 0 if self._placement is None else min(self._placement.slack(seats), CLAIM_MOST - seats)

    def room(self) -> int:
        """How many more jobs it may begin now."""
        now, orders = self.now(), self.orders
        if self._placement is not None and self._placement.waits_for_seat:
            return 0
        ahead = 0 if self._is_careful else self._ahead.size
        free = min(orders.concurrency + ahead - self.seats, CLAIM_MOST)
        if orders.breaker is not None:
            free = int(min(free, self.circuit.room(now, len(self.running))))
        if orders.min_interval_s and free > 0:
            # The pause is before the claim, so that nothing is held while nothing is done.
            free = 1 if now >= self._next_start_at else 0
        return max(0, free)

    def room_in_s(self) -> float | None:
        """How long time alone keeps it from taking on more, None if it does not."""
        now = self.now()
        pause_s = self._next_start_at - now if self.orders.min_interval_s else 0.0
        return self.circuit.closes_in_s(now) or (pause_s if pause_s > 0 else None)

    def take_on(self, claimed: Claimed, asked: int, started: float, seats: int) -> list[Run]:
        """Hold on to what was claimed by a request of that moment for so many, and return what is to begin, sooner or later.

        So many `seats` are for it; without batches it is the number that was asked for.

        Nothing of it may begin before what ended meanwhile, and must not be held beside it, is back in the store.
        """
        messages = claimed.messages
        if messages or claimed.careful:
            self._is_careful = claimed.careful
        free = max(0, self.orders.concurrency - self.seats)
        runs = [self._prepare(message, started) for message in messages]
        if runs:
            self._keepalive.add(*[run.hold for run in runs])
            self.started += len(runs)
            self._next_start_at = self.now() + self.orders.min_interval_s
        if self._placement is not None:
            return self._placement.sort(runs, min(free, seats), self.running.values(), until_empty=self._until_empty)
        at_once, ahead = runs[:free], runs[free:]
        if ahead and self._is_careful:
            # What waits here takes a place or a part of a rate from others.
            self.release([*self._ahead.withdraw(), *ahead])
            ahead = []
        if ahead and not self.orders.prefetch and any(runs_alone(run) for run in runs):
            self._ahead.be_careful()
            self.release([*self._ahead.withdraw(), *ahead])
            ahead = []
        self._ahead.claimed(ahead, self.now(), is_all=len(messages) >= asked)
        return at_once + ahead

    def release(self, runs: Iterable[Run]) -> None:
        """Give back what did not begin, and will not."""
        self._give_back(runs, RELEASED)

    def _give_back(self, runs: Iterable[Run], outcome: Outcome) -> None:
        for run in runs:
            self.started -= 1
            self.unstarted += 1
            self.finish(run, outcome)

    def begin_batches(self, *, at_once: bool) -> None:
        """Begin the batches that are full or have waited for long enough, or all of them."""
        if self._placement is not None:
            self._placement.begin(at_once=at_once)

    def batch_in_s(self) -> float | None:
        """When the next batch is to begin; None if none waits."""
        return None if self._placement is None else self._placement.due_in_s()

    def release_batches(self) -> None:
        """Give back the jobs of batches that have not begun."""
        if self._placement is not None:
            self.release(self._placement.withdraw())

    def _prepare(self, message: Message, started: float) -> Run:
        orders, receipt = self.orders, message.receipt
        hold = Hold(
            receipt,
            lease_of(message) if orders.by_policy else orders.lease_s,
            started,
            self.now,
            renew_interval_s=orders.renew_interval_s,
            max_hold_s=orders.max_hold_s,
        )
        way = self._pools.find(message)
        options = way.options if self.policy is NO_POLICY else self._under_policy(way.options)
        job = options.handler.job(message, way.setting, started)
        job.durable.owner = self._owner
        run = Run(message, hold, job, options, performance=way.performance, crew=self)
        run.is_careful = self._is_careful
        run.keeps_trace = self.policy.keep_done_s is not None
        # By its receipt: what knows its run in turn would leave both to the garbage collector.
        hold.on_lost(partial(self._is_lost, receipt))
        self.running[receipt] = run
        return run

    def _under_policy(self, options: Options) -> Options:
        known = self._options.get(options.key)
        if known is None:
            known = self._options[options.key] = options.under(self.policy)
        return known

    def learn(self, policy: Policy) -> None:
        """Go by these settings of the queue."""
        self.policy = policy
        self._options = {}

    def begin(self, runs: Sequence[Run]) -> None:
        """Let handlers run these."""
        executions = self._pools.executions
        if len(executions) == 1:
            for execution in executions.values() if runs else ():
                execution.start(runs)
            return
        for kind, execution in executions.items():
            if own := [run for run in runs if run.options.execution == kind]:
                execution.start(own)

    def finish(self, run: Run, outcome: Outcome) -> None:
        """Say how a run ended; only the first word counts."""
        if run.may_end():
            self._pools.timekeeper.ended(run)
            self.desk.finish(run, outcome)

    def give_back_in_s(self) -> float | None:
        """When to give back what was claimed ahead and did not begin; None if there is nothing of that."""
        return self._ahead.due_in_s(self.now())

    def give_back(self, *, at_once: bool) -> None:
        """Give back what was claimed ahead and cannot begin soon, or `at_once`; it burns nothing."""
        due_in_s = self._ahead.due_in_s(self.now())
        if at_once or (due_in_s is not None and due_in_s <= 0):
            self.release(self._ahead.withdraw())

    def collect(self) -> list[Finished]:
        """Those that ended, each once; they are renewed no longer."""
        collected: list[Finished] = []
        if not (finished := self.desk.take(SETTLE_MOST)):
            return collected
        self._keepalive.drop(*[run.hold for run, _ in finished])
        for run, outcome in finished:
            self.running.pop(run.receipt, None)
            if self._placement is not None:
                self._placement.ended(run)
            self._judge(outcome)
            if run.began_at is not None and run.ended_at is not None:
                self._ahead.ended(run.ended_at - run.began_at)
            if outcome.how == "settled":
                self.tally.count([(run, outcome)])
            elif outcome.how != "lost":
                collected.append((run, decided(run, outcome) if outcome.how == "failed" else outcome))
        return collected

    def _judge(self, outcome: Outcome) -> None:
        if outcome.how in DONE:
            self.circuit.succeeded()
        elif outcome.how in FAILED:
            self.circuit.failed(self.now())

    def keep_holding(self, finished: Iterable[Finished]) -> None:
        """Renew again what could not be settled yet."""
        if holds := [run.hold for run, _ in finished]:
            self._keepalive.add(*holds)

    def stop_holding(self, finished: Iterable[Finished]) -> None:
        """Renew no longer what is about to be settled: no renewal may take it for lost."""
        if holds := [run.hold for run, _ in finished if run.hold.keeper is not None]:
            self._keepalive.drop(*holds)

    def stop(self, run: Run, reason: StopReason) -> None:
        """Tell a run to end; the first reason counts."""
        if reason == "cancelled" and run.job.durable.request_cancel():
            return
        if run.job.stop_reason is None:
            run.job.stop_reason = reason
            if run.batch is None:
                self._pools.executions[run.options.execution].stop(run)
            elif reason == "stopping":  # For others the call goes on.
                run.batch.stop()

    def cancel(self, requests: Mapping[str, int] | None = None) -> None:
        """Tell the runs of these messages to end: ids, and when each was put, since an id may name another message later.

        Without requests, those of the last time.
        """
        if requests is not None:
            self._cancelled = requests
        if not (requests := self._cancelled):
            return
        for run in list(self.running.values()):
            if requests.get(run.message.id) == run.message.created_at:
                self.stop(run, "cancelled")

    def stop_all(self) -> None:
        """Tell every run to end with its worker."""
        for run in list(self.running.values()):
            self.stop(run, "stopping")

    def give_up_all(self) -> list[Finished]:
        """Wait no longer for anything that runs, and return how all of it ended: given back, unless it said otherwise just now."""
        for run in list(self.running.values()):
            self._give_up(run, LOST if run.hold.lost else RELEASED)
        ended: list[Finished] = []
        while self.running:  # Also those who say at this moment how they ended.
            ended += self.collect()
        return ended

    def close(self) -> None:
        """Follow the clock no more."""
        if self._forget_clock is not None:
            self._forget_clock()

    def _is_lost(self, receipt: Receipt) -> None:
        if (run := self.running.get(receipt)) is None:
            return
        max_hold_s = self.orders.max_hold_s
        self.stop(run, "lost")
        if max_hold_s is not None and self.now() >= run.hold.since + max_hold_s:
            # It hangs: whatever runs it is not coming back.
            self._leave_behind(run, LOST)

    def is_late(self, run: Run) -> None:
        """Tell a run that it has run for too long."""
        self.stop(run, "time")

    def is_too_late(self, run: Run) -> None:
        """Wait no longer for a run that is over its hard limit."""
        limit_s, stack = run.options.hard_limit_s, run.hold.stack()
        run.job.stop_reason = run.job.stop_reason or "time"
        if self._leave_behind(run, Outcome("failed", error=f"TimeLimitExceeded: it ran for more than hard_limit_s={limit_s}")):
            _log.error("job %s of queue %r has run for hard_limit_s=%s; it is at:\n%s", run.message.id, run.message.queue, limit_s, stack)

    def _leave_behind(self, run: Run, outcome: Outcome) -> bool:
        """Give up a run that hangs; False if it ended just now."""
        cannot_be_ended = run.has_begun and run.options.execution != "processes"
        is_given_up = self._give_up(run, outcome)
        self.abandoned += is_given_up and cannot_be_ended
        return is_given_up

    def _give_up(self, run: Run, outcome: Outcome) -> bool:
        """Wait no longer for a run; False if it ended just now."""
        if not run.may_end():
            return False
        self._pools.timekeeper.ended(run)
        if not run.may_begin():  # Else nobody will begin it now.
            self._pools.executions[run.options.execution].stop(run)
            self._pools.executions[run.options.execution].abandon(run)
            # Nobody knows how far it came, or will come: what was noted when it began stays.
            run.ledger_key = None
        self.desk.finish(run, outcome)
        return True
