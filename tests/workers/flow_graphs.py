"""Random graphs of jobs, run as flows by processes that die, with nodes that kill them."""

import random
from collections import Counter
from itertools import count
from typing import Any

from holdfast import ControlPlaneClient, Job, JobContext, Tasks
from holdfast.commands import Browse
from holdfast.stores import Store
from holdfast.testing.clock import FakeClock
from tests.workers.mortal_store import Fate, MortalStore

LEASE_S = 60.0
ADVANCE_S = 310.0
"""Longer than a lease, and than a flow sleeps before it looks at its jobs."""

REDRIVES = 5


def graph(chosen: random.Random, size: int) -> list[list[int]]:
    """For each node those before it."""
    before: list[list[int]] = []
    for number in range(size):
        shape = chosen.random()
        if not number or shape < 0.1:
            before.append([])
        elif shape < 0.11:  # Many at once.
            before.append(sorted(chosen.sample(range(number), min(number, 200))))
        elif shape < 0.2:  # The first ones have many behind them.
            before.append([chosen.randrange(min(number, 3))])
        else:
            before.append(sorted({chosen.randrange(max(0, number - 300), number) for _ in range(chosen.randint(1, 3))}))
    return before


class GraphRun:
    """One flow, through the lives of its workers."""

    def __init__(self, store: Store, clock: FakeClock, before: list[list[int]], *, poison: set[int], concurrency: int = 8) -> None:
        self.store = store
        self.clock = clock
        self.before = before
        self.poison = poison
        """Nodes that kill the process that runs them."""
        self.concurrency = concurrency
        self.lives = 0
        self._times = count()
        self._begun: dict[int, int] = {}
        self._ended: dict[int, int] = {}
        app = self._tasks(Fate())
        add, flow, nodes = app.find("add"), app.flow("graph", on_failure="run_all"), list[Any]()
        for number, others in enumerate(before):
            nodes.append(flow.add(add.args(number), after=[nodes[other] for other in others], name=str(number)))
        self.job: Job[dict[str, Any]] = flow.put()

    def _tasks(self, fate: Fate) -> Tasks:
        app = Tasks("graphs", client=ControlPlaneClient.on(MortalStore(self.store, fate)))

        @app.task(name="add", max_attempts=3)
        def add(job: JobContext, number: int) -> int:
            self._begun.setdefault(number, next(self._times))
            if number in self.poison:
                fate.die()
            job.put("callbacks", number)
            self._ended[number] = next(self._times)  # Of the runs of a node the last one counts: the others were not recorded.
            return number

        return app

    def live(self, fate: Fate) -> None:
        """One process, until it dies or has nothing to do; then time passes."""
        self.lives += 1
        try:
            self._tasks(fate).run(
                until_empty=True, signals=False, heartbeat_s=None, schedules=False, concurrency=self.concurrency, lease_s=LEASE_S
            )
        except Exception:  # noqa: BLE001 - the process died
            assert fate.is_dead
        self.clock.advance(ADVANCE_S)

    def live_until(self, states: tuple[str, ...], most: int) -> str:
        """Live without deaths but those of poison, until the flow has ended so, for at most so many lives."""
        for _ in range(most):
            state: str = self.job.status().state
            if state in states:
                break
            self.live(Fate())
        return str(self.job.status().state)

    def check(self) -> None:
        """Each node after those before it, the callback of each once, and every result."""
        self.check_results()
        assert self._callbacks() == dict.fromkeys(range(len(self.before)), 1)

    def check_results(self) -> None:
        """Each node after those before it, and every result."""
        assert self.job.result(timeout_s=0) == {str(number): number for number in range(len(self.before))}
        early = [(one, number) for number, others in enumerate(self.before) for one in others if self._ended[one] > self._begun[number]]
        assert early == []

    def _callbacks(self) -> dict[int, int]:
        found: Counter[int] = Counter()
        page = self.store.execute(Browse("callbacks", limit=1_000))
        while page.messages:
            found.update(int(bytes(message.value)) for message in page.messages)
            if page.after is None:
                break
            page = self.store.execute(Browse("callbacks", after=page.after, limit=1_000))
        return dict(found)


def run_through(run: GraphRun, chosen: random.Random, deaths: int) -> None:
    """Let processes die, let poison bury nodes, redrive the flow once they are healed, and check how it ended."""
    size = len(run.before)
    for _ in range(deaths):
        run.live(Fate(chosen.randint(1, max(20, 2 * size // run.concurrency)), after=chosen.random() < 0.5))
    assert run.live_until(("dead", "done"), 400) == "dead"
    run.poison = set()
    for _ in range(REDRIVES):  # What ran beside poison may have died with it, and the flow itself.
        assert run.job.retry()
        if run.live_until(("dead", "done"), 400) == "done":
            break
    run.check()
