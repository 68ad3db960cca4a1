"""Which claimed jobs begin at once, in a worker whose functions take batches or may not run more than so often at once."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, cast

from holdfast.records import seconds_in
from holdfast.workers.handlers.batches import BatchJob
from holdfast.workers.handlers.outcomes import RELEASED, Outcome
from holdfast.workers.orders import Options
from holdfast.workers.running.pools import Pools
from holdfast.workers.running.runs import Run

if TYPE_CHECKING:
    from holdfast.workers.handlers.jobs import JobContext
    from holdfast.workers.running.running_jobs import Crew

MIXED_CLAIMS = 50
"""For how many claims nothing is asked for beyond the seats, once a claim for a batch found other jobs."""

AGAIN_FIRST_S, AGAIN_MOST_S = 0.1, 15.0
"""How long a job waits before it is handed out again that may not begin because of `most=`: a tenth of its age, within these."""


class Batch:
    """The jobs of one call: they have one seat, and each its own lease. For the call it stands where a crew does."""

    lead: Run | None
    """What the execution runs, once it has begun."""

    def __init__(self, options: Options, since: float, pools: Pools) -> None:
        self.options: Options = options
        self.since: float = since
        self.runs: list[Run] = []
        self.left: int = 0
        """How many of its jobs have not been taken in yet."""
        self.lead = None
        self._pools = pools
        self._is_stopped = False

    def add(self, run: Run) -> None:
        """Take one more job."""
        run.batch = self
        self.runs.append(run)
        self.left += 1

    @property
    def free(self) -> int:
        """How many more jobs it takes."""
        terms = self.options.batch
        return 0 if terms is None else terms.size - len(self.runs)

    def begin(self) -> None:
        """Let the function run; those that were given back meanwhile are not part of it."""
        self.runs = [run for run in self.runs if run.may_begin()]
        if not self.runs:
            return
        first = self.runs[0]
        job = cast("JobContext", BatchJob([run.job for run in self.runs]))
        self.lead = lead = Run(first.message, first.hold, job, self.options, performance=first.performance, crew=cast("Crew", self))
        for run in self.runs[1:]:
            run.hold.where = first.hold.stack
        self._pools.executions[self.options.execution].start([lead])

    def stop(self) -> None:
        """Tell the call to end, once."""
        if self.lead is not None and not self._is_stopped:
            self._is_stopped = True
            self._pools.executions[self.options.execution].stop(self.lead)

    def is_over(self) -> bool:
        """One of its jobs was taken in: whether it was the last. What still runs then is left to itself."""
        self.left -= 1
        if self.left:
            return False
        if self.lead is not None and self.lead.may_end():
            self._pools.timekeeper.ended(self.lead)
            self._pools.executions[self.options.execution].abandon(self.lead)
        return True

    def finish(self, lead: Run, _outcome: Outcome) -> None:
        """Say how each of its jobs ended."""
        if not lead.may_end():
            return
        self._pools.timekeeper.ended(lead)
        batch = cast("BatchJob", lead.job)
        for run, outcome in zip(self.runs, batch.outcomes, strict=True):
            run.began_at = lead.began_at
            run.crew.finish(run, RELEASED if outcome is None else outcome)

    def is_late(self, _lead: Run) -> None:
        """Its soft limit is over."""
        for run in self.runs:
            run.job.stop_reason = run.job.stop_reason or "time"
        self.stop()

    def is_too_late(self, lead: Run) -> None:
        """Its hard limit is over."""
        for run in self.runs:
            run.began_at = lead.began_at
            run.crew.is_too_late(run)
        self.stop()


class Placement:
    """Gathers the jobs of batches, and counts those of functions that may not run more than so often at once."""

    def __init__(
        self, functions: Sequence[Options], pools: Pools, now: Callable[[], float], give_back: Callable[[Iterable[Run], Outcome], None]
    ) -> None:
        self._pools = pools
        self._now = now
        self._give_back = give_back
        self._largest = max((options.batch.size for options in functions if options.batch is not None), default=0)
        self._gathering: dict[str, Batch] = {}
        self._going: set[Batch] = set()
        self._in_batches = 0
        self._mixed_for = 0
        self.waits_for_seat: bool = False
        """Whether nothing may be asked for until a job has ended: a job that may not begin would come again."""

    def seats(self, running: int) -> int:
        """How many seats are taken by so many jobs: a batch has one."""
        return running - self._in_batches + len(self._gathering) + len(self._going)

    def slack(self, seats: int) -> int:
        """How many jobs to ask for beyond the free seats, because they fit into batches."""
        if self._mixed_for or self.waits_for_seat:
            return 0
        return sum(batch.free for batch in self._gathering.values()) + (max(0, self._largest - 1) if seats > 0 else 0)

    def sort(self, runs: Sequence[Run], free: int, running: Iterable[Run], *, until_empty: bool) -> list[Run]:
        """Those that may begin in so many free seats; the others are given back, and burn nothing."""
        counts = self._counts(running)
        counts.subtract(run.options.key for run in runs if run.options.most is not None and run.options.batch is None)
        self._mixed_for = max(0, self._mixed_for - 1)
        placed: list[Run] = []
        for run in runs:
            options = run.options
            if options.batch is not None and (batch := self._gathering.get(options.key)) is not None and batch.free:
                self._join(batch, run)
            elif options.most is not None and counts[options.key] >= options.most:
                self.waits_for_seat = until_empty
                self._give_back([run], RELEASED if until_empty else _later(run))
            elif free <= 0:
                self._mixed_for = MIXED_CLAIMS
                self._give_back([run], RELEASED)
            else:
                free -= 1
                counts[options.key] += options.most is not None
                if options.batch is None:
                    placed.append(run)
                else:
                    self._join(self._open(options), run)
        return placed

    def _counts(self, running: Iterable[Run]) -> Counter[str]:
        """How often functions with `most=` run at this moment; a batch counts once."""
        counts = Counter(run.options.key for run in running if run.options.most is not None and run.batch is None and not run.has_ended)
        counts.update(batch.options.key for batch in (*self._gathering.values(), *self._going))
        return counts

    def _open(self, options: Options) -> Batch:
        if (full := self._gathering.pop(options.key, None)) is not None:
            self._going.add(full)  # It begins with the next `begin`.
        batch = self._gathering[options.key] = Batch(options, self._now(), self._pools)
        return batch

    def _join(self, batch: Batch, run: Run) -> None:
        batch.add(run)
        self._in_batches += 1

    def begin(self, *, at_once: bool) -> None:
        """Begin the batches that are full or have waited for long enough, or all of them."""
        now = self._now()
        for key, batch in list(self._gathering.items()):
            if at_once or not batch.free or now >= _due_at(batch):
                del self._gathering[key]
                self._going.add(batch)
        for batch in self._going:
            if batch.lead is None:
                batch.begin()

    def due_in_s(self) -> float | None:
        """When the next batch is to begin; None if none waits."""
        return min((max(0.0, _due_at(batch) - self._now()) for batch in self._gathering.values()), default=None)

    def withdraw(self) -> list[Run]:
        """Those of batches that have not begun: they will not begin now."""
        return [run for batch in (*self._gathering.values(), *self._going) if batch.lead is None for run in batch.runs if run.may_begin()]

    def ended(self, run: Run) -> None:
        """A run was taken in."""
        if run.began_at is not None:
            self.waits_for_seat = False
        if run.batch is None:
            return
        self._in_batches -= 1
        if run.batch.is_over():
            self._going.discard(run.batch)
            if self._gathering.get(run.options.key) is run.batch:
                del self._gathering[run.options.key]


def _due_at(batch: Batch) -> float:
    terms = batch.options.batch
    return batch.since + (0.0 if terms is None else terms.within_s)


def _later(run: Run) -> Outcome:
    """Give it back for a while, in which other workers may have room for it."""
    age_s = seconds_in(run.message.since - run.message.created_at)
    return Outcome("released", delay_s=min(max(age_s / 10, AGAIN_FIRST_S), AGAIN_MOST_S))
